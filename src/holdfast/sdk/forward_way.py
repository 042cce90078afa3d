"""One connection to a host, in an event loop, over which connections that came in here are carried
to ports of a session (forwarding.py). What happens is told in the words that stand first."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.dial.carried_socket import CarriedSocket, Carrier
from holdfast.model.errors import (
    ActorRevoked,
    EnvelopeExpired,
    GrantExpired,
    GrantRevoked,
    HoldfastError,
    HostLost,
    NotPermitted,
    from_code,
)
from holdfast.model.record import Record
from holdfast.model.state import Ending
from holdfast.sdk.connection import Connection
from holdfast.wire.frames import encode
from holdfast.wire.messages import forward as f
from holdfast.wire.messages import session as m

A = TypeVar("A", bound=m.Answer)

_READ_BYTES = 96 << 10
_OUT_BYTES = 64 << 10  # made ready for the host before it has taken some; then nothing is pulled
# Of a refused connection: no other will fare better.
_FINAL = (NotPermitted, EnvelopeExpired, ActorRevoked, GrantExpired, GrantRevoked)


class ConnectionOpened(Record):
    """A connection is open: from here, to that process."""

    number: int
    port: int
    peer: str
    address: str
    pid: int
    process: str


class ConnectionClosed(Record):
    """It is over; `code`: it was cut off."""

    number: int
    port: int
    sent_bytes: int
    received_bytes: int
    code: str = ""
    message: str = ""


class ForwardRefused(Record):
    """The host let none be opened; this time."""

    port: int
    code: str
    message: str
    hint: str


class ForwardLost(Record):
    """The way to the host was lost, and so many connections with it. It is looked for again."""

    connections: int
    message: str


class ForwardReconnected(Record):
    """It was found again."""


ForwardEvent = (
    ConnectionOpened | ConnectionClosed | ForwardRefused | ForwardLost | ForwardReconnected
)


class _Local(CarriedSocket):
    """A connection that came in here."""

    def __init__(self, carrier: Carrier, number: int, port: int, peer: str) -> None:
        super().__init__(carrier, number)
        self.port, self.peer = port, peer


class ForwardTransport:
    """One greeted connection to the host, in the event loop. `over` ends with the session's ending,
    or with why it cannot go on."""

    def __init__(self, connection: Connection, tell: Callable[[ForwardEvent], None]) -> None:
        self._connection, self._tell = connection, tell
        self.session = ""
        self._loop = asyncio.get_running_loop()
        self._carrier = Carrier(self._pump, self._closed)
        self._answers: dict[int, asyncio.Future[m.Answer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._out = bytearray()
        self._awaits_room = self._shut = False
        self.over: asyncio.Future[Ending] = self._loop.create_future()
        connection.sock.setblocking(False)
        self._loop.add_reader(connection.sock, self._on_readable)
        self._loop.call_soon(self._take)  # something may have come with the greeting

    # -- out ------------------------------------------------------------------------------------

    def ask(self, request: m.Request, kind: type[A]) -> Awaitable[A]:
        """It is on its way when this returns."""
        number = self._connection.next_id()
        answer = self._answers[number] = self._loop.create_future()
        self._out += encode(request.replace(id=number))
        self._pump()

        async def answered() -> A:
            try:
                got = await answer
            finally:
                del self._answers[number]
            if not isinstance(got, kind):
                raise HostLost(f"the host answered {got.tag} instead of {kind.tag}")
            return got

        return answered()

    def open(self, number: int, port: int, sock: socket.socket, peer: str) -> None:
        """The host is asked for it; what it says goes right behind the question."""
        local = _Local(self._carrier, number, port, peer)
        self._carrier.open[number] = local
        asked = self.ask(f.Forward(0, self.session, number, port), f.Forwarded)
        task = self._loop.create_task(self._opened(local, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        local.begin(sock)

    async def _opened(self, local: _Local, asked: Awaitable[f.Forwarded]) -> None:
        try:
            got = await asked
        except HoldfastError as error:
            if not self._shut:
                self._refused(local, error)
        else:
            came = ConnectionOpened(
                local.number, local.port, local.peer, got.address, got.pid, got.process
            )
            self._tell(came)

    def _refused(self, local: _Local, error: HoldfastError) -> None:
        local.drop()
        self._carrier.open.pop(local.number, None)
        self._tell(ForwardRefused(local.port, error.code, error.message, error.hint))
        if isinstance(error, _FINAL):
            self._end(error)

    def _pump(self) -> None:
        if self._awaits_room or self._shut:
            return
        try:
            while True:
                while len(self._out) < _OUT_BYTES and (said := self._carrier.next()) is not None:
                    self._out += encode(f.message_of(self.session, said[0].number, said[1]))
                if not self._out:
                    return
                del self._out[: self._connection.sock.send(self._out)]
        except BlockingIOError:
            self._awaits_room = True
            self._loop.add_writer(self._connection.sock, self._on_writable)
        except OSError:
            self._end(HostLost("the connection to the host was lost"))

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._connection.sock)
        self._awaits_room = False
        self._pump()

    # -- in -------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        try:
            data = self._connection.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(HostLost("the host closed the connection"))
            return
        self._take(data)

    def _take(self, data: bytes = b"") -> None:
        try:
            self._connection.take_in(data)
            while not self._shut and (message := self._connection.take()) is not None:
                self._on_message(message)
        except HoldfastError as error:
            self._end(error)

    def _on_message(self, message: m.Message) -> None:
        if isinstance(message, m.Answer):
            self._answered(message)
        elif isinstance(message, f.Carried):
            self._carried(message)
        elif isinstance(message, m.StateEvent) and message.ending and not self.over.done():
            self.over.set_result(message.ending)

    def _answered(self, answer: m.Answer) -> None:
        waiting = self._answers.get(answer.id)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, m.Failed):
            waiting.set_exception(from_code(answer.code, answer.message, answer.hint))
        else:
            waiting.set_result(answer)

    def _carried(self, message: f.Carried) -> None:
        local = self._carrier.open.get(message.number)
        if local is None:
            return
        if isinstance(message, f.ForwardClosed):
            local.drop()
            local.over = from_code(message.code, message.message, "")
            self._closed(local)
        else:
            local.take(f.word_of(message))

    # -- the end --------------------------------------------------------------------------------

    def _closed(self, local: CarriedSocket) -> None:
        assert isinstance(local, _Local)
        self._carrier.open.pop(local.number, None)
        code, message = (local.over.code, local.over.message) if local.over else ("", "")
        sent, received = local.read_bytes, local.written_bytes
        self._tell(ConnectionClosed(local.number, local.port, sent, received, code, message))

    def _end(self, error: HoldfastError) -> None:
        if not self.over.done():
            self.over.set_exception(error)

    def close(self) -> int:
        """Gives how many connections were cut off by it."""
        if self._shut:
            return 0
        self._shut = True
        cut = list(self._carrier.open.values())
        for local in cut:
            local.drop()
        self._carrier.open.clear()
        self._loop.remove_reader(self._connection.sock)
        self._loop.remove_writer(self._connection.sock)
        self._connection.close()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(HostLost("the connection to the host was lost"))
        self.over.cancel()
        return len(cut)
