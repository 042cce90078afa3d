"""Telling subscribers that a screen or a journal changed. One watch per resource, however many
subscribe to it, and only while somebody does; at most two tellings a second, the last one always.

Two generations of the protocol ask for it in two ways: `subscriptions/listen`, whose answer is the
stream, and `resources/subscribe`, which lasts as long as its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp_types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams
from pydantic import BaseModel

from holdfast.mcp.desk import Desk
from holdfast.mcp.resources import SCREEN, parts_of
from holdfast.model.errors import HoldfastError
from holdfast.sdk.aio.session import Session

log = logging.getLogger(__name__)

_APART_S = 0.5
_AGAIN_S = 2.0  # after a failure: the host may be away
LISTEN = "subscriptions/listen"

Context = ServerRequestContext[Any, Any]
Handled = BaseModel | dict[str, Any] | None


class Changes:
    """The subscriptions of one server."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.bus = InMemorySubscriptionBus()
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, int] = {}  # URI -> how many subscribe
        self._lasting: dict[tuple[int, str], Callable[[], None]] = {}

    async def middleware(
        self, ctx: Context, call_next: Callable[[Context], Awaitable[Handled]]
    ) -> Handled:
        """Watch what a `subscriptions/listen` names for as long as it is being answered."""
        if ctx.method != LISTEN:
            return await call_next(ctx)
        asked = (ctx.params or {}).get("notifications") or {}
        uris = [uri for uri in asked.get("resourceSubscriptions") or () if isinstance(uri, str)]
        with contextlib.ExitStack() as watched:
            for uri in uris:
                watched.enter_context(self._watched(uri))
            return await call_next(ctx)

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        key = (id(context.session), str(params.uri))
        if key not in self._lasting:
            session, uri = context.session, str(params.uri)
            watched = self._watched(uri)
            watched.__enter__()
            tasks: set[asyncio.Task[None]] = set()

            def deliver(event: object) -> None:
                if isinstance(event, ResourceUpdated) and event.uri == uri:
                    task = asyncio.ensure_future(session.send_resource_updated(uri))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

            unsubscribe = self.bus.subscribe(deliver)

            def end() -> None:
                unsubscribe()
                watched.__exit__(None, None, None)

            self._lasting[key] = end
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        end = self._lasting.pop((id(context.session), str(params.uri)), None)
        if end is not None:
            end()
        return EmptyResult()

    def close(self) -> None:
        for end in self._lasting.values():
            end()
        self._lasting.clear()

    # -- watching -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _watched(self, uri: str) -> Iterator[None]:
        self._wanted[uri] = self._wanted.get(uri, 0) + 1
        if uri not in self._watches and parts_of(uri) is not None:
            self._watches[uri] = asyncio.ensure_future(self._watch(uri))
        try:
            yield
        finally:
            self._wanted[uri] -= 1
            if not self._wanted[uri]:
                del self._wanted[uri]
                if uri in self._watches:
                    self._watches.pop(uri).cancel()

    async def _watch(self, uri: str) -> None:
        parts = parts_of(uri)
        assert parts is not None
        name, kind = parts
        while True:
            try:
                session = await self._desk.session(name)
                stirs = _printed(session) if kind == SCREEN else _recorded(session)
                async for _ in _apart(stirs):
                    await self.bus.publish(ResourceUpdated(uri=uri))
                return  # it ended
            except HoldfastError as error:
                log.info("not watching %s for now: %s", uri, error.message)
                await asyncio.sleep(_AGAIN_S)


async def _printed(session: Session) -> AsyncIterator[None]:
    async for _ in session.output():
        yield


async def _recorded(session: Session) -> AsyncIterator[None]:
    """What is printed and what happens both stir it; whether there is more in it is looked up."""
    last = (await session.catch_up()).through_seq
    async for _ in _printed(session):
        now = (await session.catch_up()).through_seq
        if now > last:
            last = now
            yield


async def _apart(stirs: AsyncIterator[None]) -> AsyncIterator[None]:
    """The same, never two within a moment, and the last one never lost."""
    stirred, over = asyncio.Event(), False

    async def read() -> None:
        nonlocal over
        try:
            async for _ in stirs:
                stirred.set()
        finally:
            over = True
            stirred.set()

    reader = asyncio.ensure_future(read())
    try:
        while True:
            await stirred.wait()
            stirred.clear()
            yield
            if over:
                await reader  # its error, if it had one
                return
            await asyncio.sleep(_APART_S)
    finally:
        reader.cancel()
