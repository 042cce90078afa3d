"""The connection under everything, and getting back when it is lost.

One operator for the whole life of the link, so that inputs are counted across its connections.
Whoever waits for something when the connection goes is told; what may be asked twice is asked
again, what may not is reported as unknown. Streams come back by themselves, by their position.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from holdfast.model.errors import HoldfastError, HostDown, HostLost
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.sdk.aio.carrier import AsyncDriver
from holdfast.sdk.connection import AWAY, NOT_SENT, Connection, new_operator
from holdfast.sdk.identity import Identity
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.messages import session as m

A = TypeVar("A", bound=m.Answer)

_RETRY_S = 0.02
REDIAL_S = 0.3  # of a relay, which others dial too


class Numbers:
    """Of the inputs to one session: the host counts them by operator, so all handles on it that
    this link has count together."""

    def __init__(self) -> None:
        self.last = 0
        self.one = asyncio.Lock()  # at a time


class HostLink:
    """A host, kept in reach."""

    def __init__(
        self,
        place: str | Machine,
        client: str,
        acting: Identity | None,
        patience_s: float = RECONNECT_DEADLINE_S,
    ) -> None:
        self._place, self._client, self._acting = place, client, acting
        self._patience_s = patience_s
        self.operator = new_operator()
        self._carrier: AsyncDriver | None = None
        self._connecting: asyncio.Task[AsyncDriver] | None = None
        self._listeners: set[Callable[[m.Message | None], None]] = set()
        self._numbers: dict[str, Numbers] = {}
        self._closed = False

    # -- being connected ------------------------------------------------------------------------

    async def carrier(self) -> AsyncDriver:
        """The connection, made anew if it has to be. Several may wait for it; one that is
        cancelled does not keep the others from it."""
        if self._closed:
            raise HostLost("the connection was closed by this program")
        if self._carrier is not None and self._carrier.error is None:
            return self._carrier
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(again=self._carrier is not None))
            self._connecting.add_done_callback(self._connected)
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if self._closed and connecting.cancelled():
                raise HostLost("the connection was closed by this program") from None
            raise

    def _connected(self, task: asyncio.Task[AsyncDriver]) -> None:
        self._connecting = None
        if task.cancelled() or task.exception() is not None:
            return  # whoever waits is told; nobody waiting is no mistake
        if self._closed:
            task.result().close()

    async def _connect(self, *, again: bool) -> AsyncDriver:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                self._carrier = await AsyncDriver.over(await self._greeted(), self._on_event)
                return self._carrier
            except AWAY as error:
                if again and _is_stopped(error):
                    raise HostLost("the host was stopped", hint="`hold up -d` starts it") from error
                if not again or time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_RETRY_S if isinstance(self._place, str) else REDIAL_S)

    async def _greeted(self) -> Connection:
        """By a thread: dialling a relay takes a while, and greeting is written once for all."""
        made = asyncio.get_running_loop().run_in_executor(
            None, Connection, self._place, self.operator, self._client, self._acting
        )
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            made.add_done_callback(_close_unwanted)
            raise

    async def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._carrier is not None:
            self._carrier.close()
            await self._carrier.gone()

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine."""
        return isinstance(self._place, str)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def patience(self) -> RetryDeadline:
        """For something new that is to be tried again when the connection is lost."""
        return RetryDeadline(self._patience_s)

    def numbers(self, session: str) -> Numbers:
        """Of the inputs to the session of this id."""
        return self._numbers.setdefault(session, Numbers())

    # -- asking ---------------------------------------------------------------------------------

    async def ask(self, request: m.Request, kind: type[A], *, once: bool = False) -> A:
        """Ask, and ask again when the connection is lost; `once`: what must not be done twice."""
        patience = self.patience
        while True:
            carrier = await self.carrier()
            try:
                answer = await carrier.ask(request)
            except HostLost:
                if once:
                    raise
                patience.lost(self._closed)
            except NOT_SENT:  # the host is there, but nobody leads to the session yet
                await patience.not_yet()
            else:
                if not isinstance(answer, kind):
                    raise HostLost(f"the host answered {answer.tag} instead of {kind.tag}")
                return answer

    # -- events ---------------------------------------------------------------------------------

    async def watch(self, session: str) -> None:
        """From now on events of this session ("" is all) are told to the listeners, its present
        state first. There is no end to it but the connection's."""
        patience = self.patience
        while True:
            carrier = await self.carrier()
            try:
                await carrier.ask(m.Watch(0, session))
                return
            except HostLost:
                patience.lost(self._closed)
            except NOT_SENT:
                await patience.not_yet()

    def listen(self, heard: Callable[[m.Message | None], None]) -> None:
        """Every event from now on; None when the connection is lost."""
        self._listeners.add(heard)

    def listen_no_more(self, heard: Callable[[m.Message | None], None]) -> None:
        self._listeners.discard(heard)

    def _on_event(self, message: m.Message | None) -> None:
        for heard in tuple(self._listeners):
            heard(message)


class RetryDeadline:
    """How long something is tried again after the connection was lost. Call its methods where the
    failure is caught: when it is at its end they raise that again."""

    def __init__(self, seconds: float = RECONNECT_DEADLINE_S) -> None:
        self._seconds = seconds
        self._deadline: float | None = None

    def lost(self, closed: bool = False) -> None:
        """The connection was lost; it is made anew at once."""
        if closed or self.over:
            raise
        self._deadline = self._deadline or time.monotonic() + self._seconds

    async def not_yet(self) -> None:
        """A relay does not lead there. At first that is an answer; after a loss the host may still
        be on its way back."""
        if self._deadline is None or self.over:
            raise
        await asyncio.sleep(REDIAL_S)

    @property
    def over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline


def _is_stopped(error: HoldfastError) -> bool:
    """While a daemon is only being replaced the keeper holds the listening socket, so its absence
    is certain knowledge."""
    gone = isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)
    return isinstance(error, HostDown | HostLost) and gone


def _close_unwanted(made: asyncio.Future[Connection]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
