"""Taking a call that waits at a filter's listener, and answering it.

The kernel takes only one answer, and forgets a call whose process was ended: that is no error here.
This module deliberately knows neither what a call means nor whether it may go on.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from typing import NamedTuple

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_GO_ON = 1
_CALL = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_ID = struct.Struct("=Q")

_libc = ctypes.CDLL(None, use_errno=True)
_ioctl = _libc.ioctl
_ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
_ioctl.restype = ctypes.c_int


class Call(NamedTuple):
    """A system call that waits."""

    id: int
    pid: int  # of the thread, in the numbering of whoever took it
    arch: int
    number: int
    arguments: tuple[int, ...]


def unpack(data: bytes) -> Call:
    id, pid, _, number, arch, _, *arguments = _CALL.unpack(data)
    return Call(id, pid, arch, number, tuple(arguments))


def take_into(listener: int, address: int) -> bool:
    """The next call, written by the kernel itself at that address, where zeros are. False: its
    process was ended meanwhile. Waits if there is none: only when poll says that there is, and by
    one process only."""
    while _ioctl(listener, _RECEIVE, address) < 0:
        number = ctypes.get_errno()
        if number == errno.ENOENT:
            return False
        if number != errno.EINTR:
            raise OSError(number, f"seccomp: {os.strerror(number)}")
    return True


def is_valid(listener: int, id: int) -> bool:
    """Whether its process still waits: what was read of that process before is its own."""
    try:
        fcntl.ioctl(listener, _IS_VALID, _ID.pack(id))
    except OSError:
        return False
    return True


def go_on(listener: int, id: int) -> None:
    _answer(listener, _ANSWER.pack(id, 0, 0, _GO_ON))


def fail(listener: int, id: int, number: int) -> None:
    """The call gives this errno to its program."""
    _answer(listener, _ANSWER.pack(id, 0, -number, 0))


def _answer(listener: int, answer: bytes) -> None:
    try:
        fcntl.ioctl(listener, _SEND, answer)
    except OSError as error:
        # ENOENT: it was ended, or interrupted by a signal. EINPROGRESS: it has an answer.
        if error.errno not in (errno.ENOENT, errno.EINPROGRESS):
            raise


def let_pass(listener: int) -> None:
    """Take one call, and let it go on."""
    room = ctypes.create_string_buffer(_CALL.size)
    if take_into(listener, ctypes.addressof(room)):
        go_on(listener, unpack(room.raw).id)
