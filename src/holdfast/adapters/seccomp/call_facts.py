"""What a call that waits is about to do, as far as its process and the kernel show it.

Deliberately decides nothing but what is no effect at all: opening the terminal or /dev/null for
writing changes nothing that anybody could want to judge.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
from typing import NamedTuple

from holdfast.adapters.seccomp import filter as calls
from holdfast.adapters.seccomp.file_lookup import AT_FDCWD, FoundFile, look_up, place_of
from holdfast.adapters.seccomp.notification import Call
from holdfast.adapters.seccomp.process_memory import ProcessMemory
from holdfast.model.gate import EffectKind

EXECS = (calls.EXECVE, calls.EXECVEAT)
_NAMES = (calls.RENAME, calls.RENAMEAT, calls.RENAMEAT2, calls.LINK, calls.LINKAT)
_BY_DIRECTORY = (
    *(calls.UNLINKAT, calls.FCHMODAT, calls.FCHMODAT2, calls.FCHOWNAT, calls.UTIMENSAT),
    *(calls.MKDIRAT, calls.MKNODAT),
)
_FOLLOWS = (calls.CHMOD, calls.FCHMODAT, calls.CHOWN, calls.SETXATTR)
_REACHES = (calls.PTRACE, calls.PROCESS_VM_WRITEV)
_ARCH_I386 = 0x40000003
# Devices by which nothing is stored: null, zero, full, random, urandom, tty, ptmx, and terminals.
_NOWHERE = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)}
_TERMINALS = (4, range(136, 144))
_MEMORY = re.compile(r"/(\d+)(?:/task/\d+)?/mem$")  # in any place where /proc is mounted
_WORDS_LOOKED_UP = 16  # arguments of one program that are looked up as files
_UNTOLD = (b"_=", b"SHLVL=", b"PWD=", b"OLDPWD=")  # change by themselves all the time


class Harmless(Exception):
    """It may go on: nothing of it is judged."""


class Fails(Exception):
    """It cannot succeed; `errno` is what it gives."""

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
    moved: FoundFile = FoundFile("")  # and that was at another one, which its path is
    reads: bool = False  # it is opened for reading as well


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
    executes = call.number in (*EXECS, *_REACHES)
    return EffectKind.EXEC if executes else EffectKind.WRITE_OPEN


def facts_of(call: Call, ordinary: frozenset[bytes]) -> CallFacts:
    """Raises Harmless, Fails, or OSError and Unreadable when its process does not show it."""
    if call.arch == _ARCH_I386 or call.number == calls.OPENAT2:
        # 32-bit calls have other numbers and pointers; openat2 has its flags in memory, where they
        # change. Every program that uses openat2 knows kernels without it.
        raise Fails(errno.ENOSYS)
    if call.number in EXECS:
        return _executing(call, ordinary)
    if call.number in _NAMES:
        return _naming(call)
    if call.number in (*calls.CHANGES, *calls.MAKES):
        return _changing(call)
    if call.number == calls.PTRACE:
        return _reaching(call.pid, call.arguments[1])
    if call.number == calls.PROCESS_VM_WRITEV:
        return _reaching(call.pid, call.arguments[0])
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
    )


def _naming(call: Call) -> CallFacts:
    """What another name is given to: the new place is what is written. Who chooses what is at a
    name is behind what is found there."""
    words = call.arguments
    if call.number in (calls.RENAME, calls.LINK):
        words = (AT_FDCWD, words[0], AT_FDCWD, words[1])
    memory = ProcessMemory(call.pid)
    try:
        before, after = memory.string(words[1]), memory.string(words[3])
    finally:
        memory.close()
    path = place_of(call.pid, _int(words[2]), after)
    moved = FoundFile("")
    if before:
        moved = _at_name(call.pid, place_of(call.pid, _int(words[0]), before))
    return CallFacts(EffectKind.WRITE_OPEN, FoundFile(path), names=True, moved=moved)


def _changing(call: Call) -> CallFacts:
    """Something that happens at a name, by whichever call; nothing is opened."""
    at, place = AT_FDCWD, call.arguments[0]
    if call.number in _BY_DIRECTORY:
        at, place = _int(call.arguments[0]), call.arguments[1]
    elif call.number == calls.SYMLINK:
        place = call.arguments[1]
    elif call.number == calls.SYMLINKAT:
        at, place = _int(call.arguments[1]), call.arguments[2]
    if not place:
        raise Harmless  # what it has open already
    memory = ProcessMemory(call.pid)
    try:
        name = memory.string(place)
    finally:
        memory.close()
    if not name:
        file = look_up(call.pid, at, name)
    else:
        file = _at_name(call.pid, place_of(call.pid, at, name))
        if stat.S_ISLNK(file.mode) and call.number in _FOLLOWS:
            file = look_up(call.pid, at, name)
    if bool(file.inode) is (call.number in calls.MAKES):
        raise Fails(errno.EEXIST if file.inode else errno.ENOENT)
    return CallFacts(EffectKind.WRITE_OPEN, file, names=True)


def _at_name(pid: int, path: str) -> FoundFile:
    """`path`: without links but at its end, where it is not followed."""
    try:
        found = os.lstat(f"/proc/{pid}/root{path}")
    except FileNotFoundError:
        return FoundFile(path)
    return FoundFile(path, found.st_dev, found.st_ino, found.st_mode, found.st_uid)


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
    if stat.S_ISCHR(file.mode):
        device = os.major(file.special), os.minor(file.special)
        if device in _NOWHERE or device[0] == _TERMINALS[0] or device[0] in _TERMINALS[1]:
            raise Harmless
    if stat.S_ISFIFO(file.mode) or stat.S_ISSOCK(file.mode):
        raise Harmless  # who reads it is judged by what it does
    memory_of = _MEMORY.search(file.path)
    if memory_of is not None:
        return _reaching(call.pid, int(memory_of[1]))
    cwd = os.readlink(f"/proc/{call.pid}/cwd")
    adds, reads = not flags & os.O_TRUNC, flags & os.O_ACCMODE != os.O_WRONLY
    return CallFacts(EffectKind.WRITE_OPEN, file, cwd, adds=adds, reads=reads)


def named_files(pid: int, argv: tuple[bytes, ...]) -> list[FoundFile]:
    """The files that arguments of a program name: it may read them as code."""
    found = []
    for word in argv[1 : 1 + _WORDS_LOOKED_UP]:
        if word and not word.startswith(b"-"):
            with contextlib.suppress(OSError):
                found.append(look_up(pid, AT_FDCWD, word))
    return [each for each in found if stat.S_ISREG(each.mode)]


def may_write(pid: int, file: FoundFile) -> bool:
    """By owner and mode: a process that only tries to write is not behind the file. What a group
    may write counts as open to all: lists of more users hide there."""
    if file.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            uid = next(line.split()[3] for line in status if line.startswith("Uid:"))
    except OSError:
        return True
    return uid == "0" or (uid == str(file.owner) and bool(file.mode & stat.S_IWUSR))


def _reaching(pid: int, other: int) -> CallFacts:
    """`other` in the numbering of the caller, whose own /proc shows it."""
    with open(f"/proc/{pid}/root/proc/{_int(other)}/cgroup", encoding="utf-8") as file:
        target = next((line for line in file.read().splitlines() if line.startswith("0::")), "")
    first = 0 < _int(other) < calls.FIRST_OTHER_PID
    return CallFacts(EffectKind.EXEC, FoundFile(""), target=target, first=first)
