"""Processes of a contained session that are not in its cgroup.

No process can leave its pid namespace, whatever its user. So the namespace says who belongs to a
session, and the cgroup who is frozen with it. The difference got away: with a cgroupfs reached by
a way we do not know, or with help from outside.

Every process of the machine that is not in the group is asked about: by one system call each where
the kernel has it, else by the link in /proc, which takes some times as long.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
from collections.abc import Callable

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import procfs

_NS_GET_PARENT = 0xB702
_NS_GET_PID_IN_PIDNS = 0x8004B708  # since Linux 6.11
_DEPTH_MAX = 32  # of pid namespaces in each other: the kernel's own bound

# Most answers are that a process is not in it: in fcntl.ioctl an exception, at twice the cost.
_ioctl = ctypes.PyDLL(None).ioctl
_ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong)


def outside(init: int, inside: set[int]) -> list[int]:
    """Pids in the pid namespace of `init`, or in one below it, that run and are not in the group,
    whose threads are given.

    These were listed before: what entered meanwhile is reported, and harmless to move again. What
    forks meanwhile gets a higher pid, and the listing of /proc goes upwards."""
    try:
        namespace = os.open(f"/proc/{init}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []  # the init has ended, and with it everything in its namespace
    try:
        holds = _by_number(namespace, init) or _by_link(namespace)
        every = set(map(int, filter(str.isdecimal, os.listdir("/proc"))))
        return [pid for pid in every - inside if holds(pid) and _runs(pid, inside)]
    finally:
        os.close(namespace)


def _by_number(namespace: int, init: int) -> Callable[[int], bool] | None:
    """A process has a number in each namespace that it is in. None: this kernel does not say."""
    if _ioctl(namespace, _NS_GET_PID_IN_PIDNS, init) < 0:
        return None
    return lambda pid: _ioctl(namespace, _NS_GET_PID_IN_PIDNS, pid) > 0


def _by_link(namespace: int) -> Callable[[int], bool]:
    session = os.readlink(f"/proc/self/fd/{namespace}")
    known = {session: True, os.readlink("/proc/self/ns/pid"): False}

    def holds(pid: int) -> bool:
        if not procfs.sid_of(pid):
            return False  # it is gone, or a thread of the kernel
        path = f"/proc/{pid}/ns/pid"
        try:
            name = os.readlink(path)
            if name not in known:
                known[name] = is_below(path, session)
        except OSError:  # gone; or it has more privileges than we, as nothing we started can get
            return False
        return known[name]

    return holds


def move_back(pids: list[int], directory: str) -> None:
    """Into the session's group, which freezes them if it is frozen. Who cannot be moved is found
    outside by the next look."""
    for pid in pids:
        with contextlib.suppress(OSError):
            cgroup.enter(directory, pid)


def _runs(pid: int, inside: set[int]) -> bool:
    """And none of its threads is in the group: a first thread that ended is listed in none, and a
    process is in one group with all its threads."""
    try:
        return procfs.stat_of(pid).runs and inside.isdisjoint(procfs.tasks(pid))
    except OSError:
        return False


def is_below(path: str, session: str) -> bool:
    """Whether this pid namespace was made inside the session's."""
    wanted = int(session.partition("[")[2].rstrip("]"))
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(_DEPTH_MAX):
            parent = fcntl.ioctl(fd, _NS_GET_PARENT)
            os.close(fd)
            fd = parent
            if os.fstat(fd).st_ino == wanted:
                return True
        return False
    except OSError:  # EPERM: above it is only what we may not see
        return False
    finally:
        os.close(fd)
