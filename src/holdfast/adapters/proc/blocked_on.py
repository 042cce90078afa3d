"""What a blocked task waits for, from the system call it is in.

/proc/PID/task/TID/syscall gives number and arguments; for poll and select the descriptors are read
from the task's memory, for epoll from the epoll's fdinfo. Where the kernel does not show the call
(setuid programs and Yama, for a daemon that is not root), `wchan` is asked; where that is hidden
too the answer is UNSEEN, not a guess. 32-bit programs and io_uring are not decoded.
"""

from __future__ import annotations

import os
import platform
import stat
import struct
from typing import NamedTuple

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.terminal import Tty

POLLED_MAX_FDS = 1024  # of one poll or select: a terminal is among the first, servers have more
THREADS_MAX = 256  # of one process: enough for a JVM; the reader of a terminal is an early one

UNSEEN = "unseen"
_POLLIN = 1


class Wait(NamedTuple):
    """`on` as in Process.waits_for; `asked` is how many bytes a read is for, 0 if not known."""

    on: str
    asked: int = 0


RUNNING = Wait("")

# Number -> how to read the arguments. One table per instruction set, from the kernel's own.
_X86_64 = {
    **dict.fromkeys((0, 17), "read"),
    **dict.fromkeys((19, 45, 47, 43, 288, 42, 299), "fd"),  # readv recv* accept* connect
    **dict.fromkeys((1, 18, 20, 44, 46, 307, 40), "write"),  # write* send* sendfile
    **dict.fromkeys((7, 271), "poll"),
    **dict.fromkeys((23, 270), "select"),
    **dict.fromkeys((232, 281, 441), "epoll"),
    **dict.fromkeys((61, 247), "child"),
    **dict.fromkeys((35, 230), "timer"),
    **dict.fromkeys((202, 449), "futex"),
    **dict.fromkeys((34, 128, 130), "signal"),  # pause rt_sigtimedwait rt_sigsuspend
    **dict.fromkeys((72, 73, 74, 75), "file"),  # fcntl flock fsync fdatasync
    219: "restart",
}
_AARCH64 = {
    **dict.fromkeys((63, 67), "read"),
    **dict.fromkeys((65, 207, 212, 202, 242, 203, 243), "fd"),
    **dict.fromkeys((64, 68, 66, 206, 211, 269, 71), "write"),
    73: "poll",
    72: "select",
    **dict.fromkeys((22, 441), "epoll"),
    **dict.fromkeys((260, 95), "child"),
    **dict.fromkeys((101, 115), "timer"),
    **dict.fromkeys((98, 449), "futex"),
    **dict.fromkeys((137, 133), "signal"),
    **dict.fromkeys((25, 32, 82, 83), "file"),
    128: "restart",
}
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(platform.machine(), {})


def process_wait(pid: int, threads: int, tty: Tty) -> Wait:
    """What a process waits for: the terminal if any of its threads does, else its main thread."""
    first = task_wait(pid, pid, tty)
    if threads <= 1 or first.on == "tty":
        return first
    for tid in procfs.tasks(pid)[:THREADS_MAX]:
        if tid != pid and (wait := task_wait(pid, tid, tty)).on == "tty":
            return wait
    return first


def task_wait(pid: int, tid: int, tty: Tty) -> Wait:
    """What one task waits for. A task that is gone waits for nothing."""
    task = f"/proc/{pid}/task/{tid}"
    try:
        fields = procfs.read(f"{task}/syscall").split()
    except PermissionError:
        return _by_wchan(task, pid, tty)
    except OSError:
        return RUNNING
    if len(fields) < 7:  # "running", or "-1 SP PC": blocked outside any call (a page fault)
        return RUNNING
    call = _CALLS.get(int(fields[0]), "")
    arguments = [int(field, 16) for field in fields[1:7]]
    try:
        return _decode(task, pid, tty, call, arguments)
    except (OSError, ValueError, struct.error):  # gone, or its memory is: nothing to say
        return RUNNING


def _decode(task: str, pid: int, tty: Tty, call: str, arguments: list[int]) -> Wait:
    first, second, third = arguments[:3]
    if call == "restart":
        # poll and sleeps are restarted under this number after a stop or a freeze, with their
        # arguments where they were; only wchan tells which of them it is.
        call = _restarted(task)
    if call == "read":
        return Wait(_kind(task, pid, tty, first), third)
    if call == "fd":
        return Wait(_kind(task, pid, tty, first))
    if call == "write":
        kind = _kind(task, pid, tty, first)
        return Wait("output" if kind == "tty" else kind)
    if call == "poll":
        return _among(task, pid, tty, _polled(task, first, second))
    if call == "select":
        return _among(task, pid, tty, _selected(task, first, second))
    if call == "epoll":
        return _among(task, pid, tty, _watched(task, first))
    return Wait(call)


def _restarted(task: str) -> str:
    wchan = procfs.read(f"{task}/wchan")
    if b"poll" in wchan:
        return "poll"
    return "futex" if b"futex" in wchan else "timer"


def _among(task: str, pid: int, tty: Tty, fds: list[int]) -> Wait:
    """Of several: the terminal if it is among them, else what is most telling."""
    if not fds:
        return Wait("timer")
    kinds = set()
    for fd in fds:
        kind = _kind(task, pid, tty, fd)
        if kind == "tty":
            return Wait("tty")
        kinds.add(kind)
    return Wait(next((kind for kind in ("socket", "pipe") if kind in kinds), "event"))


def _kind(task: str, pid: int, tty: Tty, fd: int) -> str:
    try:
        seen = os.stat(f"{task}/fd/{fd}")
    except FileNotFoundError:
        return ""
    if tty.matches(pid, seen):
        return "tty"
    if stat.S_ISFIFO(seen.st_mode):
        return "pipe"
    if stat.S_ISSOCK(seen.st_mode):
        return "socket"
    return "event" if stat.S_IFMT(seen.st_mode) == 0 else "file"


def _memory(task: str, address: int, size: int) -> bytes:
    fd = os.open(f"{task}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


def _polled(task: str, address: int, count: int) -> list[int]:
    count = min(count, POLLED_MAX_FDS)
    data = _memory(task, address, 8 * count) if count else b""
    return [
        fd
        for fd, events, _ in struct.iter_unpack("=iHH", data[: len(data) // 8 * 8])
        if fd >= 0 and events & _POLLIN
    ]


def _selected(task: str, count: int, address: int) -> list[int]:
    count = min(count, POLLED_MAX_FDS)
    data = _memory(task, address, (count + 63) // 64 * 8) if count and address else b""
    bits = int.from_bytes(data, "little")
    return [fd for fd in range(count) if bits >> fd & 1]


def _watched(task: str, epoll: int) -> list[int]:
    fds = []
    for line in procfs.read(f"{task}/fdinfo/{epoll}").splitlines():
        if line.startswith(b"tfd:"):
            words = line.split()  # tfd: N events: HEX data: ...
            if int(words[3], 16) & _POLLIN:
                fds.append(int(words[1]))
    return fds[:POLLED_MAX_FDS]


def _by_wchan(task: str, pid: int, tty: Tty) -> Wait:
    """The kernel function it sleeps in, when the call itself is not shown."""
    try:
        wchan = procfs.read(f"{task}/wchan").decode("ascii", "replace")
    except OSError:
        return Wait(UNSEEN)
    if wchan == "0" or "poll" in wchan or "select" in wchan:
        return Wait(UNSEEN)  # hidden, or waiting for we cannot know which descriptors
    if wchan in ("n_tty_read", "wait_woken"):
        return Wait("tty") if tty.is_behind(pid, f"{task}/fd/0") else Wait(UNSEEN)
    return RUNNING
