"""The POSIX locks of a dumped tree, as a table for our preload shim, which takes them once more
when all is mapped (native/criu_shim.c says why).
"""

from __future__ import annotations

import os
import platform
import struct
from typing import NamedTuple

from holdfast.adapters.criu.protobuf import read_image

_IMAGE = "filelocks.img"
_FLAG, _TYPE, _PID, _FD, _START, _LENGTH = 1, 2, 3, 4, 5, 6  # of `file_lock_entry`
_POSIX = 1  # FL_POSIX
_LOCK = struct.Struct("=4i2q")  # pid, descriptor, type, whether it was taken; start, length
_TAKEN = 3


class PosixLock(NamedTuple):
    """One of them."""

    pid: int  # inside
    fd: int
    kind: int
    start: int
    length: int


def of_images(images: int) -> list[PosixLock]:
    """None where the shim does not do this."""
    if platform.machine() != "x86_64":
        return []
    try:
        fd = os.open(_IMAGE, os.O_RDONLY | os.O_CLOEXEC, dir_fd=images)
    except FileNotFoundError:
        return []
    with open(fd, "rb") as file:
        _, messages = read_image(file.read())
    found = [{each.number: int(each.value) for each in message} for message in messages]
    return [
        PosixLock(lock[_PID], lock[_FD], lock[_TYPE], lock[_START], lock[_LENGTH])
        for lock in found
        if lock[_FLAG] & _POSIX
    ]


def table(locks: list[PosixLock], pids: dict[int, int]) -> bytes:
    """`pids`: by their numbers inside."""
    return b"".join(
        _LOCK.pack(pids[lock.pid], lock.fd, lock.kind, 0, lock.start, lock.length) for lock in locks
    )


def not_taken(memfd: int) -> int:
    """How many of the table somebody else has by now."""
    locks = _LOCK.iter_unpack(os.pread(memfd, os.fstat(memfd).st_size, 0))
    return sum(not lock[_TAKEN] for lock in locks)
