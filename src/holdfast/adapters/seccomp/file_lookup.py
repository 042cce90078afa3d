"""Which file a path means to another process, in its own root and its own working directory.

Everything is opened by O_PATH only: really opening a watched file would wait for the very process
that looks here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import struct
from typing import NamedTuple

_SYS_OPENAT2 = 437
_NO_MAGIC, _NO_SYMLINKS, _IN_ROOT = 0x02, 0x04, 0x10
AT_FDCWD = -100
_LINKS_MAX = 40  # as the kernel's own bound
_OPEN_FILES = re.compile(r"/\d+/(?:task/\d+/)?fd$")  # in any place where /proc is mounted
_STEPS_MAX = 256  # of one way that are looked at
_OWN = (b"/proc/self/", b"/proc/thread-self/")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class FoundFile(NamedTuple):
    """`path` without links, as the process would see it. What does not exist has inode zero."""

    path: str
    device: int = 0
    inode: int = 0
    mode: int = 0
    owner: int = 0
    special: int = 0  # of a device: which


def look_up(pid: int, directory: int, path: bytes) -> FoundFile:
    """`directory`: a descriptor of that process, or AT_FDCWD. Raises OSError."""
    if not path:  # the descriptor itself is meant
        return _found(os.open(f"/proc/{pid}/fd/{directory}", os.O_PATH | os.O_CLOEXEC))
    for _ in range(_LINKS_MAX):
        try:
            return _found(_open(pid, directory, path))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
        parent, _, name = path.rpartition(b"/")
        parent = parent if parent or not path.startswith(b"/") else b"/"
        if name in (b"", b".", b".."):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        above = _open(pid, directory, parent or b".")
        try:
            place = os.readlink(f"/proc/self/fd/{above}")
            if _OPEN_FILES.search(place) and name.isdigit():
                # Not by what the link says: a pipe has no path, and a file may have another.
                return _found(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=above))
            try:
                target = os.readlink(name, dir_fd=above)
            except OSError:
                return FoundFile(os.path.join(place, os.fsdecode(name)))
        finally:
            os.close(above)
        # A link that leads nowhere, or to what only the process itself sees: followed by hand.
        path = os.path.join(os.fsencode(place), target)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def place_of(pid: int, directory: int, path: bytes) -> str:
    """Where a name would be, whether or not it exists; a link at its end is not followed."""
    parent, _, name = path.rstrip(b"/").rpartition(b"/")
    above = _open(pid, directory, parent or (b"/" if path.startswith(b"/") else b"."))
    try:
        return os.path.join(os.readlink(f"/proc/self/fd/{above}"), os.fsdecode(name))
    finally:
        os.close(above)


def passed(pid: int, directory: int, path: bytes) -> list[FoundFile]:
    """The symbolic links and directories on the way to what a path names, with the link at its end.
    They end where something is missing or cannot be entered."""
    found: list[FoundFile] = []
    links = 0
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    base = f"/proc/{pid}/cwd" if directory == AT_FDCWD else f"/proc/{pid}/fd/{directory}"
    at = os.dup(root) if path.startswith(b"/") else os.open(base, os.O_PATH | os.O_CLOEXEC)
    steps = path.split(b"/")
    try:
        while steps and len(found) < _STEPS_MAX:
            step = steps.pop(0)
            if step in (b"", b".") or (step == b".." and _same(at, root)):
                continue
            there = os.open(step, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            status = os.fstat(there)
            if stat.S_ISLNK(status.st_mode):
                found.append(_found(os.dup(there)))
                links += 1
                target = os.readlink(b"", dir_fd=there)
                os.close(there)
                if links > _LINKS_MAX or not target:
                    break
                steps[:0] = target.split(b"/")
                there = os.dup(root if target.startswith(b"/") else at)
            elif stat.S_ISDIR(status.st_mode):
                found.append(_found(os.dup(there)))
            else:
                os.close(there)
                break
            os.close(at)
            at = there
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            raise
    finally:
        os.close(at)
        os.close(root)
    return found


def _same(one: int, other: int) -> bool:
    return os.path.samestat(os.fstat(one), os.fstat(other))


def at_name(pid: int, path: str) -> FoundFile:
    """What has this name, a path without links but at its end, where it is not followed."""
    try:
        found = os.lstat(f"/proc/{pid}/root{path}")
    except FileNotFoundError:
        return FoundFile(path)
    return FoundFile(path, found.st_dev, found.st_ino, found.st_mode, found.st_uid)


def named(pid: int, path: str) -> tuple[FoundFile, int]:
    """The file that a path without links means to that process, and a descriptor that only names
    it. Raises OSError."""
    fd = _open(pid, AT_FDCWD, os.fsencode(path))
    return _found(os.dup(fd)), fd


def _found(fd: int) -> FoundFile:
    try:
        status = os.fstat(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return FoundFile(
        *(path, status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_rdev)
    )


def _open(pid: int, directory: int, path: bytes) -> int:
    if path.startswith(_OWN):
        # `self` there is whoever looks: it has to be said by number.
        rest = path.partition(b"self/")[2]
        return os.open(b"/proc/%d/%s" % (pid, rest), os.O_PATH | os.O_CLOEXEC)
    if not path.startswith(b"/"):
        base = f"/proc/{pid}/cwd" if directory == AT_FDCWD else f"/proc/{pid}/fd/{directory}"
        try:
            return _open_at(base, path, _NO_SYMLINKS | _NO_MAGIC)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        path = os.path.join(os.fsencode(os.readlink(base)), path)
    return _open_at(f"/proc/{pid}/root", path, _IN_ROOT | _NO_MAGIC)


def _open_at(base: str, path: bytes, resolve: int) -> int:
    at = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = struct.pack("=3Q", os.O_PATH | os.O_CLOEXEC, 0, resolve)
        fd: int = _libc.syscall(
            *(ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(at), ctypes.c_char_p(path)),
            *(how, ctypes.c_size_t(len(how))),
        )
        if fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return fd
    finally:
        os.close(at)
