"""The client in an event loop: one connection, what comes on it to each reader, and the port of
`client_core` carried out by asyncio.

A frame is handed to the transport in one call and never awaited half-way, so a caller that is
cancelled has either sent its request or not. What a cancelled caller left behind does no harm: an
answer nobody waits for is dropped, and a channel nobody reads is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, cast

from holdfast.model.errors import HoldfastError, HostLost, InvalidArgument, from_code
from holdfast.model.limits import FRAME_MAX_BYTES, RECONNECT_DEADLINE_S
from holdfast.sdk.client_core import client_machine
from holdfast.sdk.client_core.output_reader import FellBehind
from holdfast.sdk.client_core.retry_policy import LOCAL, RELAY
from holdfast.sdk.connection import Connection, new_operator
from holdfast.sdk.identity import Identity
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.frames import encode
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.sdk.forward import Forwarder  # which is made of what is here

A = TypeVar("A", bound=m.Answer)

_OF_A_CHANNEL = m.Output | m.Gap | m.Resync | m.Closed | m.Dismissed | m.Answering
_UNREAD_MAX_BYTES = 256 << 10  # of the transport's buffer; then requests wait to be sent
_BEHIND_BYTES = 1 << 20  # of a channel, held for a reader; then the host is to hold the rest
_EVENTS_MAX = 1024  # for a reader that is slow; then the oldest go, and it learns how many


class Inbox:
    """Messages for one reader, until it takes them."""

    def __init__(self) -> None:
        self._waiting: deque[m.Message] = deque()
        self._over: Exception | None = None
        self._came = asyncio.Event()
        self.on_release: Callable[[], object] = lambda: None

    def put(self, message: m.Message) -> None:
        self._waiting.append(message)
        self._came.set()

    def end(self, why: Exception) -> None:
        """Nothing more comes."""
        self._over = self._over or why
        self._came.set()

    async def next(self) -> m.Message:
        while not self._waiting:
            if self._over is not None:
                raise self._over
            self._came.clear()
            await self._came.wait()
        return self._take()

    def _take(self) -> m.Message:
        return self._waiting.popleft()


class ChannelInbox(Inbox):
    """A reader that falls behind loses its channel; it opens another where it is."""

    _bytes = 0

    def put(self, message: m.Message) -> None:
        if self._over is not None:
            return
        super().put(message)
        self._bytes += len(message.data) if isinstance(message, m.Output) else 0
        if self._bytes > _BEHIND_BYTES:
            self.end(FellBehind())
            self.on_release()

    def _take(self) -> m.Message:
        message = super()._take()
        self._bytes -= len(message.data) if isinstance(message, m.Output) else 0
        return message


class EventInbox(Inbox):
    """Events of one session, or of all ("")."""

    _dropped = 0

    def __init__(self, session: str) -> None:
        super().__init__()
        self._session = session

    def put(self, message: m.Message) -> None:
        if self._session and getattr(message, "session", self._session) != self._session:
            return
        if len(self._waiting) >= _EVENTS_MAX:
            self._dropped += 1
            self._waiting.popleft()
        super().put(message)

    def _take(self) -> m.Message:
        if self._dropped:
            count, self._dropped = self._dropped, 0
            return m.EventsDropped(count)
        return super()._take()


class AsyncDriver(asyncio.Protocol):
    """A greeted connection in an event loop. `on_event` gets what is for no request and channel,
    and None when the connection is lost."""

    def __init__(
        self, connection: Connection, on_event: Callable[[m.Message | None], None]
    ) -> None:
        self.welcome = connection.welcome
        self._transport: asyncio.Transport
        self._decoder = connection.decoder  # the beginning of a frame may be in it already
        self._last_id = connection.last_id
        self._last_channel = 0
        self._asked: dict[int, Inbox] = {}
        self._channels: dict[int, Inbox] = {}
        self._on_event = on_event
        self.on_room: Callable[[], None] = lambda: None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.error: HoldfastError | None = None  # why it is over
        self._gone = asyncio.Event()
        for message in iter(connection.take, None):  # said right behind the greeting
            self._take(message)

    @classmethod
    async def over(
        cls, connection: Connection, on_event: Callable[[m.Message | None], None]
    ) -> AsyncDriver:
        loop = asyncio.get_running_loop()
        connection.sock.setblocking(False)
        try:
            _, made = await loop.create_unix_connection(
                lambda: cls(connection, on_event), sock=connection.sock
            )
        except BaseException:
            connection.close()
            raise
        return made

    # -- out ------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether the transport takes more for now; `on_room` is called when it does again."""
        return self._may_write.is_set() and self.error is None

    def write(self, frame: bytes) -> None:
        if self.error is not None:
            raise self.error
        self._transport.write(frame)

    async def send(self, request: m.Request) -> Inbox:
        """Send it, whole; every answer to it comes into the inbox until that is released."""
        await self._may_write.wait()
        return self.send_now(request)

    def send_now(self, request: m.Request) -> Inbox:
        """The same for a caller that does not wait for room."""
        number = self._write_numbered(request)
        inbox = self._asked[number] = Inbox()
        inbox.on_release = lambda: self._asked.pop(number, None)
        return inbox

    def _write_numbered(self, request: m.Request) -> int:
        self._last_id += 1
        frame = encode(request.replace(id=self._last_id))
        if len(frame) > FRAME_MAX_BYTES:  # the host would end the connection, which others use
            raise InvalidArgument(
                f"a request of {len(frame)} bytes is over the limit of {FRAME_MAX_BYTES}",
                hint="shorten its longest text",
            )
        self.write(frame)
        return self._last_id

    async def ask(self, request: m.Request) -> m.Answer:
        """Send and wait for the answer. A Failed is raised as the error it names."""
        return await answer_in(await self.send(request))

    async def attach(self, request: m.Attach) -> tuple[m.Attached, Inbox]:
        """Open a channel of a number that no other has here."""
        number = self._last_channel = self._last_channel + 1
        inbox = self._channels[number] = ChannelInbox()
        inbox.on_release = lambda: self._close_channel(number)
        try:
            answer = await self.ask(request.replace(channel=number))
            return client_machine.expect(answer, m.Attached), inbox
        except BaseException:
            inbox.on_release()
            raise

    def _close_channel(self, number: int) -> None:
        """Whoever read it does so no longer. The answer is not waited for."""
        if self._channels.pop(number, None) is not None and self.error is None:
            self._write_numbered(m.Detach(0, number))

    # -- in -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own are not of that class
        self._transport.set_write_buffer_limits(high=_UNREAD_MAX_BYTES)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._decoder.feed(data):
                self._take(message)
        except HoldfastError as error:
            self._end(error)
            self._transport.abort()

    def _take(self, message: m.Message) -> None:
        if isinstance(message, m.Failed) and message.id == 0:
            raise from_code(message.code, message.message, message.hint, message.ending)
        if isinstance(message, m.Answer):
            inbox = self._asked.get(message.id)
        elif isinstance(message, _OF_A_CHANNEL):
            inbox = self._channels.get(message.channel)
        else:
            self._on_event(message)
            return
        if inbox is not None:
            inbox.put(message)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()
        self.on_room()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(HostLost("the connection to the host was lost"))
        self._gone.set()

    def _end(self, error: HoldfastError) -> None:
        if self.error is not None:
            return
        self.error = error
        self._may_write.set()
        for inbox in [*self._asked.values(), *self._channels.values()]:
            inbox.end(error)
        self._asked.clear()
        self._channels.clear()
        self._on_event(None)

    def close(self) -> None:
        self._end(HostLost("this program closed the connection"))
        self._transport.close()

    async def gone(self) -> None:
        """Until what was sent is out and the socket is closed."""
        await self._gone.wait()


async def answer_in(inbox: Inbox) -> m.Answer:
    """The one answer to a request. A Failed is raised as the error it names."""
    try:
        message = await inbox.next()
    finally:
        inbox.on_release()
    if isinstance(message, m.Failed):
        raise from_code(message.code, message.message, message.hint, message.ending)
    assert isinstance(message, m.Answer)
    return message


class InputCounter:
    """The inputs to one session: the host counts them by operator, so all handles on it that this
    link has count together."""

    def __init__(self) -> None:
        self._last = 0
        self._one = asyncio.Lock()

    @asynccontextmanager
    async def next(self) -> AsyncIterator[int]:
        """The number of the next input; others wait until this one's outcome is known: one that
        has to be sent again must not be overtaken, or it would be taken for done."""
        async with self._one:
            self._last += 1
            yield self._last


class AsyncHostClient:
    """A host, kept in reach: one operator across its connections, so that inputs are counted
    across them. It is the ClientIo of asyncio."""

    def __init__(
        self,
        target: str | Machine,
        client: str,
        acting: Identity | None,
        patience_s: float = RECONNECT_DEADLINE_S,
    ) -> None:
        self._target, self._client, self._acting = target, client, acting
        self.patience_s = patience_s
        self.operator = new_operator()
        self._carrier: AsyncDriver | None = None
        self._connecting: asyncio.Task[AsyncDriver] | None = None
        self._listeners: set[EventInbox] = set()
        self._counters: dict[str, InputCounter] = {}
        self._closed = False

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine."""
        return isinstance(self._target, str)

    def inputs(self, session: str) -> InputCounter:
        """Of the session of this id."""
        return self._counters.setdefault(session, InputCounter())

    def forwarder(self, session: str) -> Forwarder:
        """Of the session of this id, over a connection of its own, as the same actor."""
        from holdfast.sdk.forward import Forwarder

        return Forwarder(session, path=self._target, client=self._client, acting=self._acting)

    async def ask(self, request: m.Request, kind: type[A], *, once: bool = False) -> A:
        """Ask, and ask again when the connection is lost; `once`: what must not be done twice."""
        return await client_machine.ask(self, request, kind, once=once)

    # -- being connected ------------------------------------------------------------------------

    async def carrier(self) -> AsyncDriver:
        """The connection, a new one if it was lost. Several may wait for it; one that is cancelled
        does not keep the others from it."""
        if self._closed:
            raise HostLost("the connection was closed by this program")
        if self._carrier is not None and self._carrier.error is None:
            return self._carrier
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
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
            return  # raised to whoever waits; nobody waiting is no mistake
        if self._closed:
            task.result().close()

    async def _connect(self) -> AsyncDriver:
        if self._carrier is None:
            return await self._dial()
        policy = (LOCAL if self.is_here else RELAY).replace(patience_s=self.patience_s)
        return await client_machine.reconnect(self, self._dial, policy)

    async def _dial(self) -> AsyncDriver:
        self._carrier = await AsyncDriver.over(await self._greeted(), self._on_event)
        return self._carrier

    async def _greeted(self) -> Connection:
        """By a thread: dialling a relay takes a while, and greeting is written once for all."""
        made = asyncio.get_running_loop().run_in_executor(
            None,
            Connection,
            *(self._target, self.operator, self._client, self._acting),
            self._on_event,  # of the loop: nothing is asked before the driver has it
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

    # -- the port of client_core ----------------------------------------------------------------

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def connect(self) -> None:
        await self.carrier()

    async def exchange(self, request: m.Request) -> m.Answer:
        return await self._there().ask(request)

    async def send(self, request: m.Request) -> Inbox:
        return await self._there().send(request)

    async def attach(self, request: m.Attach) -> tuple[m.Attached, Inbox]:
        return await self._there().attach(request)

    async def watch(self, session: str) -> Inbox:
        inbox = EventInbox(session)
        inbox.on_release = lambda: self._listeners.discard(inbox)
        self._listeners.add(inbox)
        try:
            await self.exchange(m.Watch(0, session))
        except BaseException:
            inbox.on_release()
            raise
        return inbox

    async def next(self, inbox: Inbox, pause_s: float | None = None) -> m.Message | None:
        try:
            return await asyncio.wait_for(inbox.next(), pause_s)
        except TimeoutError:
            return None

    def release(self, inbox: Inbox) -> None:
        inbox.on_release()

    def _there(self) -> AsyncDriver:
        assert self._carrier is not None
        return self._carrier

    def _on_event(self, message: m.Message | None) -> None:
        for inbox in tuple(self._listeners):
            if message is None:
                inbox.end(HostLost("the connection to the host was lost"))
            else:
                inbox.put(message)


def _close_unwanted(made: asyncio.Future[Connection]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
