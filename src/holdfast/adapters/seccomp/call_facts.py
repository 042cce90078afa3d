"""What a waiting call is about to do, as far as its process and the kernel show it.

It deliberately decides nothing, except what is no effect at all: opening the terminal or /dev/null
for writing changes nothing that anybody could want to judge.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.adapters.halt.cgroup import PREFIX
from holdfast.adapters.seccomp import filter as calls
from holdfast.adapters.seccomp.file_lookup import (
    AT_FDCWD,
    FoundFile,
    at_name,
    look_up,
    passed,
    place_of,
)
from holdfast.adapters.seccomp.notification import Call
from holdfast.adapters.seccomp.peer_lookup import Peer, peer_of
from holdfast.adapters.seccomp.process_memory import ProcessMemory
from holdfast.model.gate import EffectKind

EXECS = (calls.EXECVE, calls.EXECVEAT)
_NAMES = (calls.RENAME, calls.RENAMEAT, calls.RENAMEAT2, calls.LINK, calls.LINKAT)
_RENAMES = (calls.RENAME, calls.RENAMEAT, calls.RENAMEAT2)
_BY_DIRECTORY = (
    *(calls.UNLINKAT, calls.FCHMODAT, calls.FCHMODAT2, calls.FCHOWNAT, calls.UTIMENSAT),
    *(calls.FUTIMESAT, calls.SETXATTRAT, calls.REMOVEXATTRAT, calls.FILE_SETATTR),
    *(calls.MKDIRAT, calls.MKNODAT),
)
# They follow a link at the end of the name; those with a number, unless this argument says not to.
_FOLLOWS: dict[int, int | None] = {
    **dict.fromkeys((calls.CHMOD, calls.FCHMODAT, calls.CHOWN, calls.SETXATTR)),
    **dict.fromkeys((calls.UTIME, calls.UTIMES, calls.FUTIMESAT, calls.REMOVEXATTR)),
    calls.UTIMENSAT: 3,
    calls.FCHMODAT2: 3,
    calls.FCHOWNAT: 4,
    calls.FILE_SETATTR: 4,
    calls.SETXATTRAT: 2,
    calls.REMOVEXATTRAT: 2,
}
_NOFOLLOW, _FOLLOW, _EMPTY_PATH = 0x100, 0x400, 0x1000
_EXCHANGE = 2
REACHES = (calls.PTRACE, calls.PROCESS_VM_WRITEV, calls.PIDFD_GETFD)
_BIND_OR_MOVE, _MOUNT_ONLY_CHANGES = 0x1000 | 0x2000, 0x20 | 0xF << 17
_CLONES_TREE = 1
_SHOWS_OTHER_FILES = (b"overlay", b"aufs", b"ecryptfs")
_ARCH_I386 = 0x40000003
# Devices by which nothing is stored: null, zero, full, random, urandom, tty, ptmx, and terminals.
_NOWHERE = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)}
_TERMINALS = (4, range(136, 144))
_MEMORY = re.compile(r"/(\d+)(?:/task/\d+)?/mem$")  # in any place where /proc is mounted
_SESSION_GROUP = re.compile(rf".*?/{PREFIX}[^/]+/[^/]+(?=/|$)")
_WORDS_LOOKED_UP = 16  # arguments of one program that are looked up as files
_UNTOLD = (b"_=", b"SHLVL=", b"PWD=", b"OLDPWD=")  # change by themselves all the time


class Harmless(Exception):
    """It may go on: nothing of it is judged."""


class Fails(Exception):
    """It cannot succeed and fails with `errno`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.errno = number


class CallFacts(NamedTuple):
    """Of one call."""

    kind: EffectKind
    file: FoundFile
    cwd: str = ""
    argv: tuple[bytes, ...] = ()
    environment: tuple[bytes, ...] = ()
    target: str = ""  # the control group of another process that it reaches into
    first: bool = False  # and that one is the session's init or main program
    adds: bool = False  # a write leaves what is in the file
    names: bool = False  # what is written is only a name
    links: bool = False  # that of a link or a fifo, which leads to something else
    moved: FoundFile = FoundFile("")  # and that was at another one, which its path is
    exchanged: FoundFile = FoundFile("")  # what was at the new name goes to the old one
    reads: bool = False  # it is opened for reading as well
    given: bytes = b""  # of a program: the path as it was given, and from which directory
    given_at: int = AT_FDCWD
    chosen: tuple[FoundFile, ...] = ()  # links and directories on the way that somebody named
    also: EffectKind | None = None  # what else it is: a name is removed, or is another
    destination: str = ""  # of a connection: host:port
    peer: Peer | None = None  # the same, to find out who listens there


def membership(pid: int) -> str:
    """The control group of a process, as the kernel writes it. Raises OSError when it is gone."""
    fd = os.open(f"/proc/{pid}/cgroup", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, 65536).decode(errors="surrogateescape")
    finally:
        os.close(fd)
    return next((line for line in text.splitlines() if line.startswith("0::")), "")


def first_environment(pid: int) -> frozenset[bytes]:
    """What a program was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return frozenset(file.read().split(b"\0"))
    except OSError:
        return frozenset()


def kind_of(call: Call) -> EffectKind:
    if call.number == calls.CONNECT and call.arch != _ARCH_I386:
        return EffectKind.CONNECT
    executes = call.number in (*EXECS, *REACHES)
    return EffectKind.EXEC if executes else EffectKind.WRITE_OPEN


def facts_of(call: Call, ordinary: frozenset[bytes]) -> CallFacts:
    """Raises Harmless, Fails, or OSError and Unreadable when its process does not show it."""
    if call.arch == _ARCH_I386 or call.number in (calls.OPENAT2, calls.FSOPEN, calls.FSPICK):
        # 32-bit calls have other numbers and pointers; openat2 has its flags in memory, where they
        # change; what fsopen begins is put together by many calls. Every program that uses these
        # knows kernels without them.
        raise Fails(errno.ENOSYS)
    if call.number in EXECS:
        return _executing(call, ordinary)
    if call.number in _NAMES:
        return _naming(call)
    if call.number in (*calls.CHANGES, *calls.MAKES):
        return _changing(call)
    if call.number in calls.CHANGES_OPEN:
        return _changing_open(call.pid, _int(call.arguments[0]))
    if call.number in calls.MOUNTS:
        return _mounting(call)
    if call.number == calls.CONNECT:
        return _connecting(call)
    if call.number == calls.PTRACE:
        return _reaching(call.pid, call.arguments[1])
    if call.number == calls.PROCESS_VM_WRITEV:
        return _reaching(call.pid, call.arguments[0])
    if call.number == calls.PIDFD_GETFD:
        return _taking_descriptor(call.pid, _int(call.arguments[0]))
    return _opening(call)


def _int(value: int) -> int:
    return ctypes.c_int(value & 0xFFFFFFFF).value


def _executing(call: Call, ordinary: frozenset[bytes]) -> CallFacts:
    at, words = AT_FDCWD, call.arguments
    if call.number == calls.EXECVEAT:
        at, words = _int(words[0]), words[1:]
    memory = ProcessMemory(call.pid)
    try:
        path = memory.string(words[0])
        argv = tuple(memory.strings(words[1]))
        environment = memory.strings(words[2])
    finally:
        memory.close()
    file = look_up(call.pid, at, path)
    if not file.inode:
        raise Fails(errno.ENOENT)  # and it does fail: what appears there meanwhile is not run
    differs = (each for each in environment if each not in ordinary)
    return CallFacts(
        EffectKind.EXEC,
        file,
        os.readlink(f"/proc/{call.pid}/cwd"),
        argv,
        tuple(each for each in differs if not each.startswith(_UNTOLD)),
        given=path,
        given_at=at,
    )


def _naming(call: Call) -> CallFacts:
    """A file that gets another name: what is written is the new place. Whoever chooses what has a
    name is behind what is found by it."""
    words = call.arguments
    if call.number in (calls.RENAME, calls.LINK):
        words = (AT_FDCWD, words[0], AT_FDCWD, words[1])
    memory = ProcessMemory(call.pid)
    try:
        before, after = memory.string(words[1]), memory.string(words[3])
    finally:
        memory.close()
    path = place_of(call.pid, _int(words[2]), after)
    flags = words[4] if call.number in (calls.RENAMEAT2, calls.LINKAT) else 0
    moved = exchanged = FoundFile("")
    if call.number == calls.LINKAT and (flags & _FOLLOW or (flags & _EMPTY_PATH and not before)):
        # By a descriptor or a link: also a file that had no name before (O_TMPFILE).
        moved = look_up(call.pid, _int(words[0]), before)
    elif before:
        moved = at_name(call.pid, place_of(call.pid, _int(words[0]), before))
    if call.number == calls.RENAMEAT2 and flags & _EXCHANGE:
        exchanged = at_name(call.pid, path)
    also = EffectKind.RENAME if call.number in _RENAMES else None
    return CallFacts(
        *(EffectKind.WRITE_OPEN, FoundFile(path)),
        names=True,
        moved=moved,
        exchanged=exchanged,
        also=also,
    )


def _changing(call: Call) -> CallFacts:
    """A change at a name, by whichever call; nothing is opened."""
    at, place = AT_FDCWD, call.arguments[0]
    if call.number in _BY_DIRECTORY:
        at, place = _int(call.arguments[0]), call.arguments[1]
    elif call.number == calls.SYMLINK:
        place = call.arguments[1]
    elif call.number == calls.SYMLINKAT:
        at, place = _int(call.arguments[1]), call.arguments[2]
    if not place:
        return _changing_open(call.pid, at)
    memory = ProcessMemory(call.pid)
    try:
        name = memory.string(place)
    finally:
        memory.close()
    if not name:
        file = look_up(call.pid, at, name)
    else:
        file = at_name(call.pid, place_of(call.pid, at, name))
        if stat.S_ISLNK(file.mode) and _follows(call):
            file = look_up(call.pid, at, name)
    if bool(file.inode) is (call.number in calls.MAKES):
        raise Fails(errno.EEXIST if file.inode else errno.ENOENT)
    also = EffectKind.UNLINK if call.number in calls.REMOVES else None
    links = call.number in calls.MAKES and call.number not in (calls.MKDIR, calls.MKDIRAT)
    return CallFacts(EffectKind.WRITE_OPEN, file, names=True, links=links, also=also)


def _follows(call: Call) -> bool:
    if call.number not in _FOLLOWS:
        return False
    flags = _FOLLOWS[call.number]
    return flags is None or not call.arguments[flags] & _NOFOLLOW


def _changing_open(pid: int, fd: int) -> CallFacts:
    """Mode, owner or times of an open file: judged when it was opened, if that was for writing."""
    with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as info:
        flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    if flags & os.O_ACCMODE != os.O_RDONLY:
        raise Harmless
    file = look_up(pid, fd, b"")
    if not file.path.startswith("/") or _is_nowhere(file) or stat.S_ISFIFO(file.mode):
        raise Harmless
    return CallFacts(EffectKind.WRITE_OPEN, file, names=True)


def _mounting(call: Call) -> CallFacts:
    """Like a rename: one place gets the name of another. Judged by both."""
    words, pid = call.arguments, call.pid
    memory = ProcessMemory(pid)
    try:
        if call.number == calls.OPEN_TREE:
            if not words[2] & _CLONES_TREE:
                raise Harmless
            source = look_up(pid, _int(words[0]), memory.string(words[1]))
            return CallFacts(EffectKind.WRITE_OPEN, source, names=True)
        if call.number == calls.MOVE_MOUNT:
            source = look_up(pid, _int(words[0]), memory.string(words[1]))
            target = look_up(pid, _int(words[2]), memory.string(words[3]))
        elif call.number == calls.PIVOT_ROOT:
            source = look_up(pid, AT_FDCWD, b"/")
            target = look_up(pid, AT_FDCWD, memory.string(words[1]))
        else:
            target = look_up(pid, AT_FDCWD, memory.string(words[1]))
            source = FoundFile("")
            if words[3] & _MOUNT_ONLY_CHANGES:
                raise Harmless
            if words[3] & _BIND_OR_MOVE:
                source = look_up(pid, AT_FDCWD, memory.string(words[0]))
            elif words[2] and memory.string(words[2]) in _SHOWS_OTHER_FILES:
                raise Fails(errno.EPERM)  # whose files these are, nobody could tell by the inode
    finally:
        memory.close()
    return CallFacts(EffectKind.WRITE_OPEN, target, names=True, moved=source)


def _connecting(call: Call) -> CallFacts:
    memory = ProcessMemory(call.pid)
    try:
        address = memory.read(call.arguments[1], min(call.arguments[2] & 0xFFFFFFFF, 128))
    finally:
        memory.close()
    peer = peer_of(address)
    if peer is None:
        raise Harmless  # neither of a network nor of a unix socket, or the end of a connection
    if not peer.path:
        return CallFacts(EffectKind.CONNECT, FoundFile(""), destination=peer.destination, peer=peer)
    if peer.path.startswith(b"@"):
        return CallFacts(EffectKind.CONNECT, FoundFile(os.fsdecode(peer.path)), peer=peer)
    file = look_up(call.pid, AT_FDCWD, peer.path)
    if not file.inode:
        raise Fails(errno.ENOENT)
    return CallFacts(EffectKind.CONNECT, file, peer=peer)


def _opening(call: Call) -> CallFacts:
    at, place, flags = AT_FDCWD, call.arguments[0], os.O_WRONLY
    if call.number == calls.OPENAT:
        at, place, flags = _int(call.arguments[0]), *call.arguments[1:3]
    elif call.number == calls.OPEN:
        flags = call.arguments[1]
    elif call.number == calls.CREAT:
        flags |= os.O_TRUNC
    if call.number == calls.OPEN_BY_HANDLE_AT:
        return CallFacts(EffectKind.WRITE_OPEN, FoundFile("(by handle)"))
    memory = ProcessMemory(call.pid)
    try:
        path = memory.string(place)
    finally:
        memory.close()
    if not path:
        raise Fails(errno.ENOENT)
    file = look_up(call.pid, at, path)
    if _is_nowhere(file):
        raise Harmless
    memory_of = _MEMORY.search(file.path)
    if memory_of is not None:
        return _reaching(call.pid, int(memory_of[1]), any_numbering=True)
    cwd = os.readlink(f"/proc/{call.pid}/cwd")
    adds, reads = not flags & os.O_TRUNC, flags & os.O_ACCMODE != os.O_WRONLY
    return CallFacts(EffectKind.WRITE_OPEN, file, cwd, adds=adds, reads=reads)


def _is_nowhere(file: FoundFile) -> bool:
    """Nothing is stored there: a terminal, /dev/null. A pipe leads to whoever reads it."""
    if stat.S_ISCHR(file.mode):
        device = os.major(file.special), os.minor(file.special)
        return device in _NOWHERE or device[0] == _TERMINALS[0] or device[0] in _TERMINALS[1]
    return stat.S_ISSOCK(file.mode)


def named_files(pid: int, argv: tuple[bytes, ...]) -> list[FoundFile]:
    """The files that arguments of a program name: it may read them as code."""
    found = []
    for word in _words_of_files(argv):
        with contextlib.suppress(OSError):
            found.append(look_up(pid, AT_FDCWD, word))
    return [each for each in found if stat.S_ISREG(each.mode) or stat.S_ISFIFO(each.mode)]


def names_passed(pid: int, facts: CallFacts) -> list[FoundFile]:
    """The links and directories on the way to a program, and to the files among its arguments:
    whoever gave one of these its name chose what is found behind it."""
    found: list[FoundFile] = []
    ways = [(facts.given_at, facts.given)] if facts.given else []
    for at, way in (*ways, *((AT_FDCWD, word) for word in _words_of_files(facts.argv))):
        with contextlib.suppress(OSError):
            found += passed(pid, at, way)
    return found


def _words_of_files(argv: tuple[bytes, ...]) -> list[bytes]:
    words = argv[1 : 1 + _WORDS_LOOKED_UP]
    return [word for word in words if word and not word.startswith(b"-")]


def may_write(pid: int, file: FoundFile) -> bool:
    """By owner and mode: a process that only tries to write is not behind the file. What a group
    may write counts as open to all, because access lists hide there."""
    if file.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            uid = next(line.split()[3] for line in status if line.startswith("Uid:"))
    except OSError:
        return True
    return uid == "0" or (uid == str(file.owner) and bool(file.mode & stat.S_IWUSR))


def _reaching(pid: int, other: int, *, any_numbering: bool = False) -> CallFacts:
    """Into a process, by its number as the caller has it. What the caller's /proc shows is its own
    doing, if it mounts there; so the kernel's numbers are looked through, of all that is in the
    same session. If several may be meant, one that is of others is."""
    numbers = _numbers(f"/proc/{pid}/status", "NSpid:")
    session = _session_in(membership(pid))
    found = {
        int(each): his
        for each in os.listdir("/proc")
        if each.isdecimal() and _is_in(int(each), session)
        for his in _tasks_called(int(each), _int(other), 0 if any_numbering else len(numbers))
    }
    if not found:
        raise Fails(errno.ESRCH)
    return _reaching_into(pid, found)


def _session_in(group: str) -> str:
    """The part of a control group's path that names a session; "" outside of all sessions."""
    found = _SESSION_GROUP.match(group)
    return found[0] if found is not None else ""


def _is_in(pid: int, session: str) -> bool:
    """Other namespaces have processes with the same numbers."""
    with contextlib.suppress(OSError):  # it is gone
        return membership(pid).startswith(session)
    return False


def _tasks_called(process: int, number: int, depth: int) -> Iterator[list[int]]:
    """The numbers of this process, or of a thread of it, if it may have that number in a pid
    namespace of this depth; 0: in any."""
    with contextlib.suppress(OSError):  # it is gone
        own = _numbers(f"/proc/{process}/status", "NSpid:")
        if depth and len(own) < depth:
            return
        tasks = [own]
        if number not in own:
            threads = os.listdir(f"/proc/{process}/task")
            paths = (f"/proc/{process}/task/{each}/status" for each in threads)
            tasks = [_numbers(path, "NSpid:") for path in paths] if len(threads) > 1 else []
        for each in tasks:
            if number in (each if not depth else each[depth - 1 : depth]):
                yield own


def _numbers(path: str, field: str) -> list[int]:
    with open(path, encoding="utf-8", errors="replace") as status:
        return next(
            ([int(each) for each in line.split()[1:]] for line in status if line.startswith(field)),
            [],
        )


def _taking_descriptor(pid: int, pidfd: int) -> CallFacts:
    (other,) = _numbers(f"/proc/{pid}/fdinfo/{pidfd}", "Pid:") or (0,)
    if other <= 0:
        raise Fails(errno.ESRCH)
    return _reaching_into(pid, {other: _numbers(f"/proc/{other}/status", "NSpid:")})


def _reaching_into(pid: int, found: dict[int, list[int]]) -> CallFacts:
    own = membership(pid)
    targets = [membership(each) for each in found]
    target = next((each for each in targets if each != own), own)
    first = any(0 < each < calls.FIRST_OTHER_PID for his in found.values() for each in his[1:2])
    return CallFacts(EffectKind.EXEC, FoundFile(""), target=target, first=first)
