"""Which process of the shell's own a process descends from: the one that a command line started.

Without a cgroup for each command the process tree tells: the ancestor that is the shell's child,
and when it started. A process whose ancestors have ended was adopted by another; its process group,
which job control makes for every job, may still have its first process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container

from holdfast.adapters.proc import procfs

_ANCESTORS_MAX = 64
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def started_at(pid: int, shells: Container[int]) -> float | None:
    """When the child of one of these shells that this process descends from started, seconds since
    1970; None when that is not to be told. Raises OSError when the process is gone."""
    stat = procfs.stat_of(pid)
    leader = stat.pgid
    for _ in range(_ANCESTORS_MAX):
        if stat.ppid in shells:
            return _at(stat.start_ticks)
        if stat.ppid <= 1:
            break
        try:
            stat = procfs.stat_of(stat.ppid)
        except OSError:
            break
    try:
        first = procfs.stat_of(leader)
    except OSError:
        return None
    return _at(first.start_ticks) if first.ppid in shells else None


def _at(ticks: int) -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS_PER_S
