"""The host's end of a shell's report FIFO: looked into first, emptied when what was found is kept.

A shell says a thing once. A daemon that took a report out and was killed before it kept what that
means would lose it forever; so the report stays in the FIFO, which is in the keeper's custody,
until then. A daemon killed in between leaves it to the next one, which may see it a second time.

Deliberately absent: what a report means (`reports.py`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os

_NONBLOCK = 2  # SPLICE_F_NONBLOCK
_LOOK_MAX_BYTES = 1 << 20  # a FIFO holds less

_libc = ctypes.CDLL(None, use_errno=True)
_libc.tee.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint)
_libc.tee.restype = ctypes.c_ssize_t


def look(fifo: int) -> bytes:
    """All that is in it, and it stays there. Python has no tee(2)."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ) < (
            size := fcntl.fcntl(fifo, fcntl.F_GETPIPE_SZ)
        ):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
        size = _libc.tee(fifo, writer, _LOOK_MAX_BYTES, _NONBLOCK)
        if size < 0:
            number = ctypes.get_errno()
            if number == errno.EAGAIN:
                return b""
            raise OSError(number, os.strerror(number))
        return _read(reader, size)
    finally:
        os.close(reader)
        os.close(writer)


def take_out(fifo: int, size: int) -> None:
    """As much of what was seen in it. Nobody else reads it."""
    _read(fifo, size)


def _read(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            break
        data += piece
    return data
