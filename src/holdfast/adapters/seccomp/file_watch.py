"""Files whose every opening is reported before it happens: by fanotify marks on their inodes.

A marked file stays marked under every name. Nothing else on the machine is watched, so it costs
nothing elsewhere. Once nobody listens, the kernel lets everything pass: so this serves to know, and
to check what was judged already. The listener never opens a marked file itself, because it would
wait for its own answer.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SYS_INIT, _SYS_MARK = 300, 301
_CLOEXEC, _NONBLOCK, _CONTENT, _ANY_QUEUE, _ANY_MARKS = 0x01, 0x02, 0x04, 0x10, 0x20
_TELL_THREAD = 0x100
_ADD = 0x01
_OPEN, _EXEC = 0x10000, 0x40000
_ALLOW, _DENY = 1, 2
_EVENT = struct.Struct("=IBBHQii")
_ANSWER = struct.Struct("=iI")
_READ_BYTES = 4096
_HASH_BANG_BYTES = 256

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class MarkedOpening(NamedTuple):
    """Somebody is about to open a marked file."""

    pid: int  # of the thread
    executes: bool  # by executing it
    device: int
    inode: int
    interpreter: bytes  # of a script that is executed


class FileWatch:
    """Raises OSError where the kernel has no fanotify."""

    def __init__(self) -> None:
        flags = _CLOEXEC | _NONBLOCK | _CONTENT | _ANY_QUEUE | _ANY_MARKS | _TELL_THREAD
        self.fd = _call(_SYS_INIT, flags, os.O_RDONLY | os.O_CLOEXEC)

    def mark(self, place: int) -> None:
        """The file of this descriptor, which only names it (O_PATH)."""
        _call(
            *(_SYS_MARK, self.fd, _ADD, _OPEN | _EXEC, -100),
            ctypes.c_char_p(b"/proc/self/fd/%d" % place),
        )

    def openings(self) -> Iterator[tuple[int, MarkedOpening]]:
        """Each with the number to answer it by."""
        try:
            told = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(told):
            length, _, _, _, mask, fd, pid = _EVENT.unpack_from(told, at)
            at += length
            if fd >= 0:
                found, executes = os.fstat(fd), bool(mask & _EXEC)
                interpreter = _interpreter(fd) if executes else b""
                yield fd, MarkedOpening(pid, executes, found.st_dev, found.st_ino, interpreter)

    def answer(self, number: int, *, allow: bool) -> None:
        try:
            os.write(self.fd, _ANSWER.pack(number, _ALLOW if allow else _DENY))
        except OSError as error:
            if error.errno != errno.ENOENT:  # its process was ended
                raise
        finally:
            os.close(number)

    def close(self) -> None:
        os.close(self.fd)


def _interpreter(fd: int) -> bytes:
    """By the kernel's own descriptor, whose reading is not reported."""
    begins = os.pread(fd, _HASH_BANG_BYTES, 0).partition(b"\n")[0]
    words = begins[2:].split() if begins.startswith(b"#!") else []
    return words[0] if words else b""


def _call(number: int, *arguments: int | ctypes.c_char_p) -> int:
    """`arguments`: the mask of a mark is a whole word, and so may all be."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, f"fanotify: {os.strerror(failed)}")
    return result
