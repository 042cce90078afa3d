"""The echo of a key press, looked for and sent on without Python in between.

An operator has just typed: what the program prints next is due at any moment, and somebody waits to
see it. native/echo.c looks, moves it into the ring and sends it; without it `Ring.pump` is asked
again and again, and the sending is the caller's. Decides neither when to look nor who reads.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from holdfast.adapters import native
from holdfast.adapters.ring import DATA_AT, HEAD_AT, PAGE, Hangup, Ring

# `struct echo` of native/echo.c.
_FIELDS = struct.Struct("4i5Q64sI3iQ")
_RESULT = struct.Struct("=3iQ")  # the last of them: error, moved, sent, head
_RESULT_AT = _FIELDS.size - _RESULT.size
_HEAD_MAX_BYTES = 64


class Echo:
    """Looks for the echo of one session."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._memory = bytearray(_FIELDS.size)
        self._run: Callable[[], object] | None = None
        self._map = 0
        self._sought = False

    @property
    def is_native(self) -> bool:
        """Whether one look costs no more than asking the PTY once."""
        return self._run is not None

    def look(self, master: int, reader: int, frame_head: bytes, look_s: float) -> tuple[int, int]:
        """Look for so long, and once at least. Gives how many bytes of output came into the ring,
        and how many of the frame that begins with `frame_head` (see wire.frames.output_head) the
        socket `reader` took. Raises Hangup as `Ring.pump` does."""
        if not self._sought:
            self._load()
        if self._run is None or len(frame_head) > _HEAD_MAX_BYTES:
            return self._look_in_python(master, look_s), 0
        ring = self._ring
        _FIELDS.pack_into(
            self._memory, 0,
            master, ring.conduit, ring.memfd, reader if frame_head else -1,
            self._map, HEAD_AT, DATA_AT, ring.capacity, int(look_s * 1e9),
            frame_head, len(frame_head), 0, 0, 0, ring.head,
        )  # fmt: skip
        self._run()
        error, moved, sent, ring.head = _RESULT.unpack_from(self._memory, _RESULT_AT)
        if error == errno.EIO and not moved:
            raise Hangup
        if error:
            raise OSError(error, os.strerror(error))
        return moved, sent

    def _look_in_python(self, master: int, look_s: float) -> int:
        until = perf_counter() + look_s
        while not (moved := self._ring.pump(master, PAGE)) and perf_counter() < until:
            pass
        return moved

    def _load(self) -> None:
        self._sought = True
        run = _library()
        if run is not None:
            import ctypes

            shared = (ctypes.c_char * _FIELDS.size).from_buffer(self._memory)
            # Its address only: the ring must stay free to be unmapped. Nobody looks after that.
            self._map = ctypes.addressof(ctypes.c_char.from_buffer(self._ring.mapping))
            self._run = lambda: run(shared)


@cache
def _library() -> Callable[[Any], object] | None:
    path = native.built(native.ECHO)
    if path is None:
        return None
    import ctypes  # with the first key: a daemon that starts again has no time for it

    try:
        library = ctypes.CDLL(str(path))
        size, run = library.echo_size, library.echo
    except (OSError, AttributeError):
        return None
    size.restype = ctypes.c_uint64
    run.restype = None
    return run if size() == _FIELDS.size else None
