"""Telling subscribers that a screen or a journal changed. One watch per resource, however many
subscribe to it, and only while somebody does; at most two tellings a second, the last one always.

Two generations of the protocol ask for it in two ways: `subscriptions/listen`, whose answer is the
stream, and `resources/subscribe`, which lasts until it is taken back or its connection goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp_types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams
from pydantic import BaseModel

from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.resources import JOURNAL, head, parts_of
from holdfast.model.errors import HoldfastError

log = logging.getLogger(__name__)

_APART_S = 0.5
_AGAIN_S = 2.0  # after a failure: the host may be away
LISTEN = "subscriptions/listen"
_KNOWN = "holdfast.subscribes"  # in a connection's state: it is told when it goes

Context = ServerRequestContext[Any, Any]
Handled = BaseModel | dict[str, Any] | None


class Changes:
    """The subscriptions of one server."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk
        self.bus = InMemorySubscriptionBus()
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, int] = {}  # URI -> how many subscribe
        self._lasting: dict[tuple[Connection, str], contextlib.ExitStack] = {}

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
        connection, uri = _connection(context), str(params.uri)
        if (connection, uri) not in self._lasting:
            ends_with = contextlib.ExitStack()
            ends_with.enter_context(self._watched(uri))
            ends_with.callback(self.bus.subscribe(_teller(connection, uri)))
            self._lasting[connection, uri] = ends_with
        if not connection.state.get(_KNOWN):
            connection.state[_KNOWN] = True
            connection.exit_stack.callback(self._gone, connection)
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._end((_connection(context), str(params.uri)))
        return EmptyResult()

    def close(self) -> None:
        for key in tuple(self._lasting):
            self._end(key)

    def _gone(self, connection: Connection) -> None:
        for key in [key for key in self._lasting if key[0] is connection]:
            self._end(key)

    def _end(self, key: tuple[Connection, str]) -> None:
        if (lasting := self._lasting.pop(key, None)) is not None:
            lasting.close()

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
        while True:
            try:
                async with aclosing(self._news(*parts)) as news:
                    async for _ in news:
                        await self.bus.publish(ResourceUpdated(uri=uri))
                break
            except HoldfastError as error:
                log.info("not watching %s for now: %s", uri, error.message)
                await asyncio.sleep(_AGAIN_S)
        # The session ended: there will be no more to tell, to whomever.
        self._watches.pop(uri, None)
        for key in [key for key in self._lasting if key[1] == uri]:
            self._end(key)

    async def _news(self, name: str, kind: str) -> AsyncGenerator[None, None]:
        """Each time there is more on the screen, or in the journal; until the session ends. What is
        printed and what happens both stir a journal; whether there is more in it is looked up."""
        session, info = await self._desk.found(name)
        if info.ending is not None:
            yield
            return
        sources = [session.output(), *([session.events()] if kind == JOURNAL else [])]
        last, heads = 0, self._desk.heads
        async with aclosing(_apart(*sources)) as stirs:
            async for _ in stirs:
                if kind == JOURNAL:
                    heads[session.id] = await head(session, heads.get(session.id, 1))
                    if heads[session.id] == last:
                        continue
                    last = heads[session.id]
                yield


def _connection(context: Context) -> Connection:
    """Which lives as long as the client's connection; `context.session` is of one request."""
    return context.session._connection  # there is no public way to it


def _teller(connection: Connection, uri: str) -> Callable[[object], None]:
    """Tells this connection of each change."""
    tasks: set[asyncio.Task[None]] = set()

    def tell(event: object) -> None:
        if isinstance(event, ResourceUpdated) and event.uri == uri:
            task = asyncio.ensure_future(connection.send_resource_updated(uri))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return tell


async def _apart(*sources: AsyncGenerator[object, None]) -> AsyncGenerator[None, None]:
    """When one of them stirs: never twice within a moment, and the last one never lost. Until one
    of them ends."""
    stirred = asyncio.Event()

    async def read(source: AsyncGenerator[object, None]) -> None:
        try:
            async with aclosing(source):
                async for _ in source:
                    stirred.set()
        finally:
            stirred.set()

    readers = [asyncio.ensure_future(read(source)) for source in sources]
    try:
        while True:
            await stirred.wait()
            stirred.clear()
            over = [reader for reader in readers if reader.done()]
            yield
            for reader in over:
                reader.result()  # its error, if it had one
            if over:
                return
            await asyncio.sleep(_APART_S)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
