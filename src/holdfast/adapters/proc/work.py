"""What the processes of a session do while nobody types: for the question whether it is idle."""

from __future__ import annotations

import contextlib
import os

from holdfast.adapters.proc import procfs
from holdfast.model.record import Record
from holdfast.model.spec import Place

_PROCESSES_MAX = 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_STILL = ("T", "t", "Z", "X", "I")  # stopped, dead or no process: these do nothing


class Work(Record):
    """At one moment."""

    cpu_s: float  # used until now
    at_work: str  # a process that is neither the session's shell nor in front; empty: there is none


def work_of(place: Place, foreground_pgid: int) -> Work:
    """Some tens of microseconds for each process. What is in front waits for the terminal, or the
    session's state says that it does not."""
    shell = procfs.main_pid(place)
    cpu, at_work = 0, ""
    for pid in procfs.members(place, _PROCESSES_MAX):
        try:
            stat = procfs.stat_of(pid)
        except (OSError, ValueError):  # it is gone
            continue
        cpu += stat.cpu_ticks
        mine = pid in (place.pid, shell) or stat.pgid == foreground_pgid
        if not mine and stat.state not in _STILL:
            at_work = at_work or stat.name
    return Work(_of_cgroup(place.cgroup) if place.cgroup else cpu / _TICKS, at_work)


def _of_cgroup(directory: str) -> float:
    """Of those that have ended, too."""
    with contextlib.suppress(OSError, ValueError):
        for line in procfs.read(f"{directory}/cpu.stat").decode().splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec":
                return int(value) / 1e6
    return 0.0
