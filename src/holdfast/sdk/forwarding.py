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
import contextlib
import errno
import socket
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.model.errors import InvalidArgument, SessionEnded
from holdfast.model.info import SessionInfo
from holdfast.model.state import Ending
from holdfast.sdk.connection import AWAY, Connection, new_operator, place
from holdfast.sdk.forward_way import ForwardEvent, ForwardLost, ForwardReconnected, ForwardTransport
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.reach.machines import Machine

T = TypeVar("T")

_BACKLOG = 128
_RETRY_S, _RETRY_MAX_S = 0.1, 2.0


class Forwarder:
    """Of one session. `tell` hears what happens."""

    def __init__(
        self,
        session: str,
        *,
        path: str | Machine | None = None,
        client: str = "hold forward",
        tell: Callable[[ForwardEvent], None] = lambda _: None,
    ) -> None:
        self._named, self._path, self._client = session, path or place(), client
        self._tell = tell
        self._operator = new_operator()
        self._listeners: dict[socket.socket, int] = {}
        self._last_number = 0
        self._way: ForwardTransport | None = None
        self.info: SessionInfo

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> SessionInfo:
        """To the host; raises what stands in the way, or that there is no such live session."""
        self._way = await self._reach()
        return self.info

    async def run(self) -> Ending:
        """Until the session ends. Raises what cannot be got over: no right to it, first of all."""
        try:
            while True:
                assert self._way is not None
                self._accept(True)
                try:
                    return await self._way.over
                except AWAY as error:
                    self._accept(False)
                    self._tell(ForwardLost(self._way.close(), error.message))
                self._way = await self._back()
                self._tell(ForwardReconnected())
        finally:
            self.close()

    def close(self) -> None:
        self._accept(False)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        if self._way is not None:
            self._way.close()

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

    # -- the way to the host --------------------------------------------------------------------

    async def _reach(self) -> ForwardTransport:
        connection = await _in_thread(lambda: Connection(self._path, self._operator, self._client))
        way = ForwardTransport(connection, self._tell)
        try:
            self.info = (await way.ask(m.Show(0, self._named), m.Shown)).info
            if self.info.ending is not None:
                raise SessionEnded(f"the session {self.info.name} has ended: {self.info.ending}")
            self._named = way.session = self.info.id  # another may get its name
            await way.ask(m.Watch(0, self._named), m.Done)
        except BaseException:
            way.close()
            raise
        return way

    async def _back(self) -> ForwardTransport:
        delay = _RETRY_S
        while True:
            try:
                return await self._reach()
            except AWAY:
                await asyncio.sleep(delay)
                delay = min(2 * delay, _RETRY_MAX_S)

    # -- connections here -----------------------------------------------------------------------

    def _accept(self, wanted: bool) -> None:
        """While there is no way to the host, who comes waits in the kernel's queue."""
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            if wanted:
                loop.add_reader(listener, self._on_connection, listener)
            else:
                loop.remove_reader(listener)

    def _on_connection(self, listener: socket.socket) -> None:
        assert self._way is not None
        try:
            sock, peer = listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_number += 1
        self._way.open(self._last_number, self._listeners[listener], sock, f"{peer[0]}:{peer[1]}")


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
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = work(), None
        except BaseException as error:
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants it any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await done
