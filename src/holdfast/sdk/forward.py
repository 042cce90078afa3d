"""Ports of a session on this machine: connections that come in here are carried to a port on which
a program of that session listens.

    forwarder = Forwarder("build")
    await forwarder.start()
    await forwarder.listen(3000)
    await forwarder.run()

It has a connection to the host of its own, so that nobody's keys wait behind a download. When that
is lost, what is open is closed, and `tell` hears how many; it is made again, and new connections
wait for it meanwhile. Who may do this is the host's to say, at each connection.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from holdfast.dial.carried_socket import CarriedSocket, Carrier
from holdfast.model.errors import (
    ActorRevoked,
    EnvelopeExpired,
    GrantExpired,
    GrantRevoked,
    HoldfastError,
    HostLost,
    InvalidArgument,
    NotPermitted,
    from_code,
    session_over,
)
from holdfast.model.info import SessionInfo
from holdfast.model.record import Record
from holdfast.model.state import Ending
from holdfast.sdk.aio.driver import AsyncDriver, Inbox, answer_in
from holdfast.sdk.client_core.client_machine import expect, reconnect
from holdfast.sdk.client_core.retry_policy import FORWARD, RECONNECTABLE
from holdfast.sdk.connection import Connection, new_operator, target_host
from holdfast.sdk.identity import Identity
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.frames import encode
from holdfast.wire.messages import forward as f
from holdfast.wire.messages import session as m

T = TypeVar("T")

_BACKLOG = 128
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
    """One connection to the host, and what is carried over it. `over` ends with the session's
    ending, or with why it cannot go on."""

    def __init__(self, tell: Callable[[ForwardEvent], None]) -> None:
        self._tell = tell
        self._driver: AsyncDriver
        self.session = ""
        self._loop = asyncio.get_running_loop()
        self._carrier = Carrier(self._pump, self._closed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._shut = False
        self.over: asyncio.Future[Ending] = self._loop.create_future()

    async def begin(self, connection: Connection, session: str) -> SessionInfo:
        """To this session, by name or id. Raises that there is no such live one."""
        self._driver = await AsyncDriver.over(connection, self._on_event)
        self._driver.on_room = self._pump
        info = expect(await self._driver.ask(m.Show(0, session, exact=True)), m.Shown).info
        if info.ending is not None:
            raise session_over(f"the session {info.name}", info.ending)
        self.session = info.id  # another may get its name
        await self._driver.ask(m.Watch(0, info.id))
        return info

    # -- out ------------------------------------------------------------------------------------

    def open(self, number: int, port: int, sock: socket.socket, peer: str) -> None:
        """The host is asked for it; what it says goes right behind the question."""
        local = _Local(self._carrier, number, port, peer)
        self._carrier.open[number] = local
        try:
            asked = self._driver.send_now(f.Forward(0, self.session, number, port))
        except HoldfastError as error:
            self._end(error)
        else:
            task = self._loop.create_task(self._opened(local, asked))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        local.begin(sock)

    async def _opened(self, local: _Local, asked: Inbox) -> None:
        try:
            got = expect(await answer_in(asked), f.Forwarded)
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
        """As much as the connection takes: what a socket here has is pulled, not kept."""
        while not self._shut and self._driver.has_room:
            said = self._carrier.next()
            if said is None:
                return
            self._driver.write(encode(f.message_of(self.session, said[0].number, said[1])))

    # -- in -------------------------------------------------------------------------------------

    def _on_event(self, message: m.Message | None) -> None:
        if message is None:
            self._end(self._driver.error or HostLost("the connection to the host was lost"))
        elif isinstance(message, f.Carried):
            self._carried(message)
        elif isinstance(message, m.StateEvent) and message.ending and not self.over.done():
            asleep = bool(message.ending.checkpoint)  # it may wake by a connection
            if not asleep:
                self.over.set_result(message.ending)

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
        self._driver.close()
        self.over.cancel()
        return len(cut)


class Forwarder:
    """Of one session. `tell` hears what happens."""

    def __init__(
        self,
        session: str,
        *,
        path: str | Machine | None = None,
        client: str = "hold forward",
        acting: Identity | None = None,
        tell: Callable[[ForwardEvent], None] = lambda _: None,
    ) -> None:
        """`acting`: the actor to act as; None: as the environment says."""
        self._session, self._target, self._client = session, path or target_host(), client
        self._acting, self.tell = acting, tell
        self._operator = new_operator()
        self._listeners: dict[socket.socket, int] = {}
        self._last_number = 0
        self._transport: ForwardTransport | None = None
        self.info: SessionInfo

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> SessionInfo:
        """To the host; raises what prevents it, or that there is no such live session."""
        self._transport = await self._reach()
        return self.info

    async def run(self) -> Ending:
        """Until the session ends. Raises what cannot be got over: no right to it, first of all."""
        try:
            while True:
                assert self._transport is not None
                self._accept(True)
                try:
                    return await self._transport.over
                except RECONNECTABLE as error:
                    self._accept(False)
                    self.tell(ForwardLost(self._transport.close(), error.message))
                self._transport = await reconnect(self, self._reach, FORWARD)
                self.tell(ForwardReconnected())
        finally:
            self.close()

    def close(self) -> None:
        self._accept(False)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        if self._transport is not None:
            self._transport.close()

    async def listen(
        self, port: int, local: int | None = None, address: str = "127.0.0.1"
    ) -> tuple[str, int]:
        """Where connections to this port of the session are taken in. `local`: at this port here; 0
        is any; None: the same, or if somebody else has that one, any."""
        wanted = port if local is None else local
        try:
            listener = _listening(address, wanted)
        except OSError as error:
            if local is not None or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InvalidArgument(
                    f"cannot listen on {address} port {wanted}: {error.strerror or error}",
                    hint="choose another: PORT:LOCALPORT, or PORT:0 for any",
                ) from error
            listener = _listening(address, 0)
        self._listeners[listener] = port
        where = listener.getsockname()
        return where[0], where[1]

    # -- the connection to the host -------------------------------------------------------------

    async def _reach(self) -> ForwardTransport:
        connection = await _in_thread(
            lambda: Connection(self._target, self._operator, self._client, self._acting)
        )
        transport = ForwardTransport(self.tell)
        try:
            self.info = await transport.begin(connection, self._session)
        except BaseException:
            transport.close()
            raise
        self._session = self.info.id
        return transport

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # -- connections here -----------------------------------------------------------------------

    def _accept(self, wanted: bool) -> None:
        """While there is no connection to the host, new ones wait in the kernel's queue."""
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            if wanted:
                loop.add_reader(listener, self._on_connection, listener)
            else:
                loop.remove_reader(listener)

    def _on_connection(self, listener: socket.socket) -> None:
        assert self._transport is not None
        try:
            sock, peer = listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_number += 1
        self._transport.open(
            self._last_number, self._listeners[listener], sock, f"{peer[0]}:{peer[1]}"
        )


def _listening(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


async def _in_thread(work: Callable[[], T]) -> T:
    """Something that blocks. Not in the loop's own threads: those are waited for at the end, and
    a relay that does not answer takes its time."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on it cannot be cancelled half-way

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
