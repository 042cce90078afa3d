"""Reading /proc: whole small files, the `stat` line, and who belongs to a session.

Everything raises OSError when the process is gone or hidden; the callers decide what that means.
Text from the kernel is decoded with replacement, never with surrogates: it goes on the wire.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from holdfast.model.spec import Place

_READ_BYTES = 64 << 10
DEPTH_MAX_CGROUPS = 8  # nested groups under a session's; ours are two deep, the rest is programs'

GONE = "ZX"  # state letters of a process that no longer runs


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that we use, in the kernel's own units."""

    name: str
    state: str
    ppid: int
    pgid: int
    sid: int
    cpu_ticks: int
    threads: int
    start_ticks: int
    rss_pages: int

    @property
    def runs(self) -> bool:
        """Not ended. A main thread may end before the others: then the process still runs."""
        return self.state not in GONE or self.threads > 1


def read(path: str) -> bytes:
    """The whole of a kernel file. Plain descriptors: half the cost of `open`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, _READ_BYTES)
        if len(data) < 4096:  # the kernel fills at least a page when there is more
            return data
        while more := os.read(fd, _READ_BYTES):
            data += more
        return data
    finally:
        os.close(fd)


def link(path: str) -> str:
    return os.readlink(path.encode()).decode("utf-8", "replace")


def stat_of(pid: int) -> Stat:
    """The name is in parentheses and may itself hold parentheses, blanks and newlines."""
    line = read(f"/proc/{pid}/stat")
    opening, closing = line.index(b"("), line.rindex(b")")
    f = line[closing + 2 :].split()
    return Stat(
        name=line[opening + 1 : closing].decode("utf-8", "replace"),
        state=f[0].decode(),
        ppid=int(f[1]),
        pgid=int(f[2]),
        sid=int(f[3]),
        cpu_ticks=int(f[11]) + int(f[12]),
        threads=int(f[17]),
        start_ticks=int(f[19]),
        rss_pages=int(f[21]),
    )


def inner_pid(pid: int) -> int:
    """Its number in the innermost pid namespace that it is in."""
    lines = read(f"/proc/{pid}/status").splitlines()
    line = next((line for line in lines if line.startswith(b"NSpid:")), b"NSpid: %d" % pid)
    return int(line.split()[-1])


def task_state(pid: int, tid: int) -> str:
    """The letter alone, of one task."""
    return read(f"/proc/{pid}/task/{tid}/stat").rpartition(b") ")[2][:1].decode()


def tasks(pid: int) -> list[int]:
    return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]


def main_pid(place: Place) -> int:
    return place.shell_pid or place.pid


def members(place: Place, most: int) -> list[int]:
    """The session's processes, by cgroup where there is one, else by descent; `most` at most."""
    if place.cgroup:
        try:
            return _in_cgroup(place.cgroup, most, DEPTH_MAX_CGROUPS)
        except OSError:  # the group goes with its last process
            return []
    return _descent(place.pid, most)


def same_session(known: list[int], most: int) -> list[int]:
    """Other processes in the kernel sessions of those known.

    Without a cgroup, a process whose parent ended is adopted outside the tree; while it keeps its
    kernel session it is found here. Walks all of /proc: for the graph, not for frequent use.
    """
    sids = {sid for pid in known if (sid := sid_of(pid))} - {os.getsid(0)}
    have = set(known)
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (pid := int(entry)) not in have and sid_of(pid) in sids:
            found.append(pid)
    return found[: max(0, most - len(known))]


def sid_of(pid: int) -> int:
    """The kernel session of a process; 0 when it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _in_cgroup(directory: str, most: int, depth: int) -> list[int]:
    pids = [int(pid) for pid in read(f"{directory}/cgroup.procs").split()]
    # kernfs counts a directory's subdirectories in its link count, so that the usual case, a
    # group without groups inside, costs one stat instead of a listing.
    if depth and os.stat(directory).st_nlink > 2:
        with os.scandir(directory) as entries:
            inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        for path in inner:
            if len(pids) >= most:
                break
            try:
                pids += _in_cgroup(path, most, depth - 1)
            except OSError:
                continue
    return [pid for pid in pids if pid][:most]  # 0: a process this pid namespace cannot name


def _descent(root: int, most: int) -> list[int]:
    found: list[int] = []
    seen = {root}
    todo = [root]
    while todo and len(found) < most:
        pid = todo.pop()
        try:
            born = [
                int(child)
                for tid in tasks(pid)
                for child in read(f"/proc/{pid}/task/{tid}/children").split()
            ]
        except OSError:
            continue
        found.append(pid)
        fresh = [child for child in born if child not in seen]
        seen.update(fresh)
        todo += fresh
    return found


def pid_inside(pid: int) -> int:
    """Its number in the innermost pid namespace that it is in. Raises OSError."""
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid
