"""Processes of a contained session that are not in its cgroup.

No process can leave its pid namespace, whatever its user. So the namespace says who belongs to a
session, and the cgroup who is frozen with it. The difference got away: with a cgroupfs reached by
a way we do not know, or with help from outside.

Looks at every process of the machine that is not in the group, at the cost of one readlink each;
kernel threads, which are in no kernel session, are left out before that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import procfs

_NS_GET_PARENT = 0xB702
_DEPTH_MAX = 32  # of pid namespaces in each other: the kernel's own bound


def outside(init: int, inside: set[int]) -> list[int]:
    """Pids in the pid namespace of `init`, or in one below it, that run and are not in the group,
    whose threads are given.

    These were listed before: what entered meanwhile is reported, and harmless to move again. What
    forks meanwhile gets a higher pid, and the listing of /proc goes upwards."""
    try:
        session = os.readlink(f"/proc/{init}/ns/pid")
    except OSError:
        return []  # the init has ended, and with it everything in its namespace
    known = {session: True, os.readlink("/proc/self/ns/pid"): False}
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) in inside or not procfs.sid_of(int(name)):
            continue
        # Gone; or with more privileges than we have, which nothing that we started can get.
        with contextlib.suppress(OSError):
            path = f"/proc/{name}/ns/pid"
            namespace = os.readlink(path)
            if namespace not in known:
                known[namespace] = is_below(path, session)
            if known[namespace] and _is_outside(int(name), inside):
                found.append(int(name))
    return found


def move_back(pids: list[int], directory: str) -> None:
    """Into the session's group, which freezes them if it is frozen. Who cannot be moved is found
    outside by the next look."""
    for pid in pids:
        with contextlib.suppress(OSError):
            cgroup.enter(directory, pid)


def _is_outside(pid: int, inside: set[int]) -> bool:
    """Runs, and none of its threads is in the group: a first thread that ended is listed in none,
    and a process is in one group with all its threads."""
    return procfs.stat_of(pid).runs and inside.isdisjoint(procfs.tasks(pid))


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
