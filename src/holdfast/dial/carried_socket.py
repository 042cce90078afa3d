"""Sockets whose bytes are multiplexed over one shared transport: the same code at both ends.

    socket  ── read when the transport takes more ──▶  words, in turns  ──▶  transport
    socket  ◀── as it takes them ──  what came, within the window  ◀──  transport

A socket is read only when the transport accepts another piece and the other end has room, so
nothing that was read is buffered here. Data for a socket waits until the socket takes it; that is
never more than the window, because room is announced only as the socket takes data. So a slow
socket, at either end, blocks only its own connection.

Not here: the messages on the wire, and who may open a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Callable

from holdfast.model.errors import ConnectionReset, HoldfastError, ProtocolViolation
from holdfast.model.forward_words import CarriedClosed, CarriedData, CarriedEnd, Room, Word
from holdfast.model.limits import FORWARD_PIECE_BYTES, FORWARD_WINDOW_BYTES

_TELL_BYTES = FORWARD_WINDOW_BYTES // 4  # taken by the socket before room is announced
_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: the peer gets a reset


class Carrier:
    """All connections of one transport. `pump` is called when there is something to send,
    `on_closed` when a connection is closed: by both its ends, or by a reset."""

    def __init__(
        self, pump: Callable[[], None], on_closed: Callable[[CarriedSocket], None]
    ) -> None:
        self._pump, self._on_closed = pump, on_closed
        self.open: dict[int, CarriedSocket] = {}
        self._ready: deque[CarriedSocket] = deque()

    def next(self) -> tuple[CarriedSocket, Word] | None:
        """The next event to send, round robin; None: nothing for now."""
        while self._ready:
            each = self._ready.popleft()
            word = each.next_word()
            if word is not None and not isinstance(word, CarriedClosed):
                self._ready.append(each)
                return each, word
            each.queued = False
            if each.done:
                self._on_closed(each)
            if word is not None:
                return each, word
        return None

    def has_something(self, each: CarriedSocket) -> None:
        if not each.queued:
            each.queued = True
            self._ready.append(each)
        self._pump()


class CarriedSocket:
    """One connection. While it has no socket yet, its data waits."""

    def __init__(self, carrier: Carrier, number: int) -> None:
        self._carrier, self.number = carrier, number
        self.queued = False  # whether the carrier has queued it to send
        self._loop = asyncio.get_running_loop()
        self._sock: socket.socket | None = None
        self._room = FORWARD_WINDOW_BYTES  # room at the other end for what we read
        self._allowed = FORWARD_WINDOW_BYTES  # what the other end may still send
        self._waiting = bytearray()  # for the socket
        self._taken = 0  # by the socket, not announced yet
        self._readable = self._writing = False
        self._last_word = self._passed_on = (
            False  # the other end has ended; and the socket was shut down
        )
        self._ended = self._told_end = False  # the socket has ended; and the other end was told
        self.over: HoldfastError | None = None  # why it was reset
        self.done = False  # nothing more is sent or taken
        self.read_bytes = self.written_bytes = 0

    # -- life -----------------------------------------------------------------------------------

    def begin(self, sock: socket.socket) -> None:
        """Attach a non-blocking socket; waiting data is written first. The connection may be closed
        by then."""
        self._sock = sock
        if self.over is not None or self.done:
            self._shut(abort=True)
            if not self.done:
                self._carrier.has_something(self)
            return
        self._loop.add_reader(sock, self._on_readable)
        self._write()

    def cut(self, error: HoldfastError) -> None:
        """Reset the connection at both ends, with this error."""
        if self.over is None and not self.done:
            self.over = error
            self._shut(abort=True)
            if self._sock is not None:
                self._carrier.has_something(self)

    def drop(self, *, abort: bool = True) -> None:
        """Close without telling the other end."""
        self.done = True
        self._shut(abort=abort)

    def may_read(self) -> bool:
        """Whether data of the socket may be sent now."""
        return True

    def _shut(self, *, abort: bool) -> None:
        sock = self._sock
        self._waiting.clear()
        if sock is None or sock.fileno() < 0:
            return
        self._loop.remove_reader(sock)
        self._loop.remove_writer(sock)
        if abort:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        sock.close()

    def _broke(self, error: OSError) -> None:
        self.over = ConnectionReset(f"the connection was lost: {error.strerror or error}")
        self._shut(abort=True)

    # -- from the socket ------------------------------------------------------------------------

    def next_word(self) -> Word | None:
        """The next event to send; None: nothing for now."""
        if self.done:
            return None
        if self._taken >= _TELL_BYTES and self.over is None:
            size, self._taken = self._taken, 0
            self._allowed += size
            return Room(size)
        if self._readable and self._room > 0 and self.over is None:
            data = self._read()
            if data:
                return CarriedData(data)
        if self.over is not None:
            self.done = True
            return CarriedClosed(self.over.code, self.over.message)
        if self._ended and not self._told_end:
            self._told_end = True
            return CarriedEnd()
        if self._told_end and self._passed_on:
            self.drop(abort=False)  # the other end closes by itself
        return None

    def _read(self) -> bytes:
        assert self._sock is not None
        if not self.may_read():
            return b""
        try:
            data = self._sock.recv(min(FORWARD_PIECE_BYTES, self._room))
        except BlockingIOError:
            self._readable = False
            self._loop.add_reader(self._sock, self._on_readable)
            return b""
        except OSError as error:
            self._broke(error)
            return b""
        self._room -= len(data)
        self.read_bytes += len(data)
        if not data:
            self._ended, self._readable = True, False
        return data

    def _on_readable(self) -> None:
        assert self._sock is not None
        self._loop.remove_reader(self._sock)
        self._readable = True
        self._carrier.has_something(self)

    # -- to the socket --------------------------------------------------------------------------

    def take(self, word: Word) -> None:
        """Handle an event of the other end, except a close. Raises ProtocolViolation when it sends
        more than there is room for."""
        if self.done or self.over is not None:
            return
        if isinstance(word, CarriedData):
            self._take(word.data)
        elif isinstance(word, Room):
            if not 0 < word.size <= FORWARD_WINDOW_BYTES - self._room:
                raise ProtocolViolation("the peer announced room for data that was never sent")
            self._room += word.size
            if self._readable:
                self._carrier.has_something(self)
        elif isinstance(word, CarriedEnd):
            self._last_word = True
            self._write()

    def _take(self, data: bytes) -> None:
        if self._last_word or len(data) > min(self._allowed, FORWARD_PIECE_BYTES):
            raise ProtocolViolation("the peer sent more data than there was room for")
        self._allowed -= len(data)
        self._waiting += data
        if not self._writing:
            self._write()

    def _write(self) -> None:
        """Write as much as the socket accepts, then shut it down if the other end has ended."""
        sock = self._sock
        if sock is None or self.done or self.over is not None:
            return
        try:
            self._send(sock)
        except OSError as error:
            self._broke(error)
            self._carrier.has_something(self)
            return
        if self._writing is not bool(self._waiting):
            self._writing = bool(self._waiting)
            if self._writing:
                self._loop.add_writer(sock, self._write)
            else:
                self._loop.remove_writer(sock)
        if self._taken >= _TELL_BYTES or (self._passed_on and self._ended):
            self._carrier.has_something(self)

    def _send(self, sock: socket.socket) -> None:
        try:
            while self._waiting:
                sent = sock.send(self._waiting)
                del self._waiting[:sent]
                self._taken += sent
                self.written_bytes += sent
        except BlockingIOError:
            return
        if self._last_word and not self._passed_on:
            self._passed_on = True
            sock.shutdown(socket.SHUT_WR)
