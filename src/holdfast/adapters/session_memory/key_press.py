"""A key press and its echo without Python in between, by native/key_press.c.

`press` takes a key from an operator's socket to the terminal, recorded and in custody on the way,
and its echo back. `look` is the echo alone: an operator has just typed, and what the program prints
next is due at any moment. Without the compiled code there is no `press` (its caller goes the
ordinary way, which leaves the same behind), and `look` asks `Ring.pump` again and again. Decides
neither who may write nor who reads nor when to look.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import Any

from holdfast.adapters import compiled
from holdfast.adapters.session_memory.output_ring import (
    BURST_AT,
    DATA_AT,
    HEAD_AT,
    LEDGER_AT,
    PAGE,
    Hangup,
    Ring,
)
from holdfast.model.patience import KEYS_MAX_BYTES
from holdfast.model.record import Record

# `struct echo` and `struct press` of native/key_press.c.
_ECHO = struct.Struct("4i5Q64sI3iQ")
_ECHO_RESULT = struct.Struct("=3iQ")  # the last of them: error, moved, sent, head
_ECHO_RESULT_AT = _ECHO.size - _ECHO_RESULT.size
_HEAD_MAX_BYTES = 64
_PRESS = struct.Struct("2i8Q40s16s32s2I2Qd2q2i16s")
_PRESS_EACH = struct.Struct("=I2Qd")  # what differs from key to key: begins, next_seq, size, time
_PRESS_RESULT = struct.Struct("=2q2i16s")
_PRESS_RESULT_AT = _PRESS.size - _PRESS_RESULT.size
_PRESS_EACH_AT = _PRESS_RESULT_AT - _PRESS_EACH.size
_SESSION_MAX_BYTES, _ACTOR_MAX_BYTES = 40, 32
RECEIVE_BYTES = 16 << 10  # a key needs far less, and a paste comes again


class Hand(Record):
    """Whose keys go this way, from which socket, by which numbers of the session."""

    sock: int
    conduit: int  # of inputs
    session: str
    actor: str
    operator: str
    row_at: int  # of the operator in the ledger, in bytes


class Pressed(Record):
    """What became of what was received. `request` < 0: it was no key, and is the caller's."""

    received: int  # bytes, 0 at the end; -errno
    request: int
    data: bytes = b""
    untyped: int = 0
    moved: int = 0
    sent: int = 0


class KeyPress:
    """The keys and the echo of one session."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._echo = bytearray(_ECHO.size)
        self._press, self._press_echo = bytearray(_PRESS.size), bytearray(_ECHO.size)
        self._received = bytearray()
        self._run: Callable[[], object] | None = None
        self._run_press: Callable[[], object] | None = None
        self._hand: Hand | None = None
        self._map = 0
        self._sought = False

    @property
    def is_native(self) -> bool:
        """Whether one look costs no more than asking the PTY once, and there is `press`."""
        return self._run is not None

    # -- the echo -------------------------------------------------------------------------------

    def look(self, master: int, reader: int, frame_head: bytes, look_s: float) -> tuple[int, int]:
        """Look for so long, and once at least. Gives how many bytes of output came into the ring,
        and how many of the frame that begins with `frame_head` (see wire.frames.output_head) the
        socket `reader` took. Raises Hangup as `Ring.pump` does."""
        if not self._sought:
            self._load()
        if self._run is None or len(frame_head) > _HEAD_MAX_BYTES:
            return self._look_in_python(master, look_s), 0
        self._pack(self._echo, master, reader, frame_head, look_s)
        self._run()
        error, moved, sent, self._ring.head = _ECHO_RESULT.unpack_from(self._echo, _ECHO_RESULT_AT)
        if error == errno.EIO and not moved:
            raise Hangup
        if error:
            raise OSError(error, os.strerror(error))
        return moved, sent

    def _pack(
        self, echo: bytearray, master: int, reader: int, frame_head: bytes, look_s: float
    ) -> None:
        ring = self._ring
        _ECHO.pack_into(
            echo, 0,
            master, ring.conduit, ring.memfd, reader if frame_head else -1,
            self._map, HEAD_AT, DATA_AT, ring.capacity, int(look_s * 1e9),
            frame_head, len(frame_head), 0, 0, 0, ring.head,
        )  # fmt: skip

    def _look_in_python(self, master: int, look_s: float) -> int:
        until = perf_counter() + look_s
        while not (moved := self._ring.pump(master, PAGE)) and perf_counter() < until:
            pass
        return moved

    # -- the key --------------------------------------------------------------------------------

    def may_press(self, hand: Hand) -> bool:
        """Whether `press` can be used for these."""
        if not self._sought:
            self._load()
        fits = len(hand.session) <= _SESSION_MAX_BYTES and len(hand.actor) <= _ACTOR_MAX_BYTES
        return self._run_press is not None and fits

    def aim(self, hand: Hand, master: int, reader: int, frame_head: bytes, look_s: float) -> None:
        """For the next `press`, and all that follow until the ring's head is another: whose key it
        is, and who is sent its echo, as for `look`."""
        if hand is not self._hand:
            self._hold(hand)
        wanted = look_s if len(frame_head) <= _HEAD_MAX_BYTES else 0.0
        self._pack(self._press_echo, master, reader, frame_head, wanted)

    def press(self, next_seq: int, gathered: int | None, at: float) -> Pressed:
        """Receive from the socket. If it is the quiet Input of this number, of a key's size and no
        secret, it is recorded (behind so many bytes gathered; None begins a burst), taken, typed,
        and its echo looked for as `look` does. The caller has judged that such an input is to be
        taken, and that nothing waits to be typed before it."""
        assert self._run_press is not None
        begins = gathered is None
        _PRESS_EACH.pack_into(self._press, _PRESS_EACH_AT, begins, next_seq, gathered or 0, at)
        self._run_press()
        received, request, size, untyped, data = _PRESS_RESULT.unpack_from(
            self._press, _PRESS_RESULT_AT
        )
        if request < 0:
            return Pressed(received, request)
        # What went wrong with the echo goes wrong again for whoever reads the terminal next.
        _, moved, sent, self._ring.head = _ECHO_RESULT.unpack_from(
            self._press_echo, _ECHO_RESULT_AT
        )
        return Pressed(received, request, data[:size], untyped, moved, sent)

    def received(self, size: int) -> bytes:
        """What the last `press` received and did not take."""
        return bytes(memoryview(self._received)[:size])

    def _hold(self, hand: Hand) -> None:
        who = int(hand.operator[:16], 16), int(hand.operator[16:], 16)
        session = hand.session.encode()
        ledger = self._map + LEDGER_AT
        _PRESS.pack_into(
            self._press, 0,
            hand.sock, hand.conduit, self._buffer, len(self._received),
            ledger, ledger + hand.row_at, self._map + BURST_AT, *who, KEYS_MAX_BYTES,
            session, bytes.fromhex(hand.operator), hand.actor.encode("ascii"),
            len(session), 0, 0, 0, 0.0, 0, 0, 0, 0, b"",
        )  # fmt: skip
        self._hand = hand

    # -- the compiled code ------------------------------------------------------------------------

    def _load(self) -> None:
        self._sought = True
        library = _library()
        if library is None:
            return
        import ctypes

        echo, press = library
        # Addresses only: the ring must stay free to be unmapped. Nobody looks after that.
        self._map = ctypes.addressof(ctypes.c_char.from_buffer(self._ring.mapping))
        self._received = bytearray(RECEIVE_BYTES)
        self._buffer = ctypes.addressof(ctypes.c_char.from_buffer(self._received))
        shared = (ctypes.c_char * _ECHO.size).from_buffer(self._echo)
        pressed = (ctypes.c_char * _PRESS.size).from_buffer(self._press)
        echoed = (ctypes.c_char * _ECHO.size).from_buffer(self._press_echo)
        self._run = partial(echo, shared)
        self._run_press = partial(press, pressed, echoed)


@cache
def _library() -> tuple[Callable[[Any], object], Callable[[Any, Any], object]] | None:
    path = compiled.built(compiled.KEY_PRESS)
    if path is None:
        return None
    import ctypes  # with the first key: a daemon that starts again has no time for it

    try:
        library = ctypes.CDLL(str(path))
        sizes_of, echo, press = library.struct_sizes, library.echo, library.press
    except (OSError, AttributeError):
        return None
    sizes = (ctypes.c_uint64 * 2)()
    sizes_of.restype = echo.restype = press.restype = None
    sizes_of(sizes)
    return (echo, press) if tuple(sizes) == (_ECHO.size, _PRESS.size) else None
