"""A link to a host of the same machine, through the socket that it listens on: frames of sealed
records, as through a relay. The channel in it proves both hosts; the socket proves nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from holdfast.dial.frame_pipe import FramePipe
from holdfast.model.device import Device
from holdfast.model.errors import HoldfastError, HostLost, from_code, why_not
from holdfast.model.limits import RELAY_FRAME_MAX_BYTES, SNAPSHOT_MAX_BYTES
from holdfast.wire.frames import decode, encode
from holdfast.wire.messages import session as m
from holdfast.wire.messages.host_links import LinkOpened, OpenLink

_CONNECT_S = 10.0
_UNSENT_BYTES = 4 * RELAY_FRAME_MAX_BYTES  # not taken by the socket; then whoever sends waits


class LocalStream:
    """The source's end: what dial.secure_channel.dial needs of a stream."""

    def __init__(self, sock: socket.socket, host: Device, on_room: Callable[[], None]) -> None:
        self.host = host
        self.on_data: Callable[[bytes], None] = lambda _: None
        self.on_closed: Callable[[str], None] = lambda _: None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pipe = FramePipe(sock, self._on_body, self._on_end, on_room, SNAPSHOT_MAX_BYTES)

    @classmethod
    async def open(cls, path: str, host: Device, on_room: Callable[[], None]) -> LocalStream:
        """Raises HostLost, or what the host refuses with."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            async with asyncio.timeout(_CONNECT_S):
                await asyncio.get_running_loop().sock_connect(sock, path)
                stream = cls(sock, host, on_room)
                try:
                    stream._ask()
                    await stream._opened
                except BaseException:
                    stream.close()
                    raise
        except OSError as error:  # a timeout is one too
            sock.close()
            raise HostLost(f"no host answers at {path}: {why_not(error)}") from error
        return stream

    def _ask(self) -> None:
        self._pipe.read(True)
        self._pipe.write(encode(OpenLink())[4:])

    def _on_body(self, body: bytes) -> None:
        if self._opened.done():
            self.on_data(body)
            return
        try:
            match decode(body):
                case LinkOpened():
                    self._opened.set_result(None)
                case m.Failed(code=code, message=message, hint=hint):
                    self._opened.set_exception(from_code(code, message, hint))
        except HoldfastError as error:
            self._opened.set_exception(error)

    def _on_end(self) -> None:
        if not self._opened.done():
            self._opened.set_exception(HostLost("the host closed the connection"))
        self._pipe.close(at_once=True)
        self.on_closed("the host closed the connection")

    @property
    def has_room(self) -> bool:
        return self._pipe.waiting_bytes < _UNSENT_BYTES

    def send(self, data: bytes) -> None:
        self._pipe.write(data)

    def close(self) -> None:
        self._pipe.close()


class LocalCarrier:
    """The target's end: of a connection that asked for a link, and is used for nothing else from
    then on."""

    def __init__(
        self,
        sock: socket.socket,
        on_record: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_room: Callable[[], None],
    ) -> None:
        self._pipe = FramePipe(sock, on_record, on_end, on_room, RELAY_FRAME_MAX_BYTES)
        self._pipe.write(encode(LinkOpened())[4:])
        self._pipe.read(True)

    @property
    def has_room(self) -> bool:
        return self._pipe.waiting_bytes < _UNSENT_BYTES

    def carry(self, record: bytes) -> None:
        self._pipe.write(record)

    def close(self) -> None:
        self._pipe.close()

    def drop(self) -> None:
        """At once, with the descriptor."""
        self._pipe.close(at_once=True)
