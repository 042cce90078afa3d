"""Frames of the protocol over one end of a socketpair, in an event loop: whole bodies in, bodies
out as the socket accepts them. At the other end is a program or an operator that knows nothing of
relays."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

_READ_BYTES = 64 << 10
_LENGTH_BYTES = 4
_LINGER_S = 10.0


class FramePipe:
    """`on_body` gets each body from the other end, `on_end` is called once when it is gone,
    `on_room` when everything written was taken."""

    def __init__(
        self,
        sock: socket.socket,
        on_body: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_room: Callable[[], None],
        body_max: int,
    ) -> None:
        self._sock, self._on_body, self._on_end = sock, on_body, on_end
        self._on_room, self._body_max = on_room, body_max
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._arrived = bytearray()
        self._waiting = bytearray()
        self._reading = self._over = self._closing = False

    @property
    def waiting_bytes(self) -> int:
        """Written and not yet taken."""
        return len(self._waiting)

    def read(self, wanted: bool) -> None:
        """Start or stop reading."""
        wanted = wanted and not (self._over or self._closing)
        if wanted and not self._reading:
            self._loop.add_reader(self._sock, self._on_readable)
        elif not wanted and self._reading:
            self._loop.remove_reader(self._sock)
        self._reading = wanted

    def write(self, body: bytes) -> None:
        if self._over or self._closing:
            return
        frame = len(body).to_bytes(_LENGTH_BYTES) + body
        if not self._waiting:
            try:
                frame = frame[self._sock.send(frame) :]
            except BlockingIOError:
                pass
            except OSError:
                self._gone()
                return
        if frame:
            if not self._waiting:
                self._loop.add_writer(self._sock, self._on_writable)
            self._waiting += frame

    def close(self, *, at_once: bool = False) -> None:
        """Close after sending what was written, or at once. No callback is called afterwards."""
        if self._over:
            return
        self.read(False)
        self._closing = True
        if at_once:
            self._shut()
        elif not self._waiting:
            self._over = True
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)
            # The other end may be about to write: let it read our last messages first, so that its
            # write does not fail.
            self._loop.add_reader(self._sock, self._discard)
            self._loop.call_later(_LINGER_S, self._shut)

    def _discard(self) -> None:
        try:
            if self._sock.recv(_READ_BYTES):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._shut()

    def _shut(self) -> None:
        self._over = True
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()

    def _on_readable(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        self._arrived += data
        start = 0
        while len(self._arrived) - start >= _LENGTH_BYTES and not (self._over or self._closing):
            size = int.from_bytes(self._arrived[start : start + _LENGTH_BYTES])
            if size > self._body_max:
                self._gone()
                return
            if len(self._arrived) - start - _LENGTH_BYTES < size:
                break
            start += _LENGTH_BYTES + size
            self._on_body(bytes(self._arrived[start - size : start]))
        del self._arrived[:start]

    def _on_writable(self) -> None:
        try:
            del self._waiting[: self._sock.send(self._waiting)]
        except BlockingIOError:
            return
        except OSError:
            self._waiting.clear()
            self._gone()
            return
        if not self._waiting:
            self._loop.remove_writer(self._sock)
            if self._closing:
                self.close()
            else:
                self._on_room()

    def _gone(self) -> None:
        self.read(False)
        if self._closing:
            self.close(at_once=True)
        elif not self._over:
            self._on_end()
