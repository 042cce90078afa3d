"""The open descriptors of one process: files with offset and locks, pipes, sockets by inode.

Sockets are only named here; sock_diag says what they are connected to, once for the whole session.
A descriptor that is closed meanwhile is left out.

Locks come from the `lock:` lines of a descriptor's fdinfo and not from /proc/locks: those lines
name the descriptor that holds the lock, whatever the pid namespace of the reader.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from holdfast.adapters.proc import procfs
from holdfast.model.graph import Lock, OpenFile, Pipe

_TTY_MAJORS = frozenset((4, 5, 204, *range(136, 144)))
_MODES = ("r", "w", "rw", "rw")
_ENDS = ("read", "write", "both", "both")
_DELETED = " (deleted)"
_LOCKS = {"POSIX": "posix", "FLOCK": "flock", "OFDLCK": "ofd", "LEASE": "lease", "DELEG": "lease"}


class RawSocket(NamedTuple):
    fd: int
    inode: int
    protocol: str  # the kernel's name for it, "" if it gave none


class OpenDescriptors(NamedTuple):
    files: tuple[OpenFile, ...]
    pipes: tuple[Pipe, ...]
    sockets: tuple[RawSocket, ...]
    cut: bool  # there were more than the limit


NOTHING = OpenDescriptors((), (), (), False)


class _Info(NamedTuple):
    offset: int
    access: int
    locks: tuple[Lock, ...]


def descriptors(pid: int, most: int) -> OpenDescriptors:
    """Raises PermissionError when we may not read the process."""
    names = os.listdir(f"/proc/{pid}/fd")
    files: list[OpenFile] = []
    pipes: list[Pipe] = []
    sockets: list[RawSocket] = []
    for name in names[: max(most, 0)]:
        try:
            found = _one(pid, int(name))
        except OSError:
            continue
        if isinstance(found, OpenFile):
            files.append(found)
        elif isinstance(found, Pipe):
            pipes.append(found)
        else:
            sockets.append(found)
    return OpenDescriptors(tuple(files), tuple(pipes), tuple(sockets), len(names) > most)


def _one(pid: int, fd: int) -> OpenFile | Pipe | RawSocket:
    path = f"/proc/{pid}/fd/{fd}"
    target = procfs.link(path)
    if target.startswith("socket:["):
        return RawSocket(fd, _bracketed(target), _protocol(path))
    info = _info(pid, fd)
    if target.startswith("pipe:["):
        return Pipe(fd, _bracketed(target), _ENDS[info.access])
    if target.startswith("anon_inode:"):
        return OpenFile(fd, target, "anon", _MODES[info.access], info.offset)
    seen = os.stat(path)
    if stat.S_ISFIFO(seen.st_mode):
        return Pipe(fd, seen.st_ino, _ENDS[info.access], target)
    kind = _kind(seen, target)
    if kind == "deleted":
        target = target.removesuffix(_DELETED)
    return OpenFile(fd, target, kind, _MODES[info.access], info.offset, info.locks)


def _bracketed(target: str) -> int:
    return int(target[target.index("[") + 1 : -1])


def _kind(seen: os.stat_result, target: str) -> str:
    mode = seen.st_mode
    if stat.S_ISDIR(mode):
        return "dir"
    if stat.S_ISCHR(mode):
        return "tty" if os.major(seen.st_rdev) in _TTY_MAJORS else "device"
    if stat.S_ISBLK(mode):
        return "device"
    if target.startswith("/memfd:"):
        return "memfd"
    # The kernel writes the suffix; the link count keeps a file really so named from matching.
    return "deleted" if seen.st_nlink == 0 and target.endswith(_DELETED) else "file"


def _info(pid: int, fd: int) -> _Info:
    offset, access = 0, 0
    locks: list[Lock] = []
    for line in procfs.read(f"/proc/{pid}/fdinfo/{fd}").decode("utf-8", "replace").splitlines():
        if line.startswith("pos:"):
            offset = int(line[4:])
        elif line.startswith("flags:"):
            access = int(line[6:], 8) & os.O_ACCMODE
        elif line.startswith("lock:") and (lock := _lock(line)):
            locks.append(lock)
    return _Info(offset, access, tuple(locks))


def _lock(line: str) -> Lock | None:
    """`lock:\\t1: POSIX  ADVISORY  WRITE 4242 00:2f:77 0 EOF`, or None if unknown."""
    words = line.split()
    if len(words) < 8 or words[2] not in _LOCKS:
        return None
    start, end = words[-2:]
    return Lock(
        kind=_LOCKS[words[2]],
        mode="write" if words[4] == "WRITE" else "read",
        start=int(start),
        end=None if end == "EOF" else int(end),
    )


def _protocol(path: str) -> str:
    try:
        return os.getxattr(path, "system.sockprotoname").rstrip(b"\0").decode()
    except OSError:
        return ""
