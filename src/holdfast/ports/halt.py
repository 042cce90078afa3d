"""The result of halting a session's tree."""

from __future__ import annotations

from holdfast.model.record import Record


class Stopped(Record):
    """A process that a halt stopped: its pid, and its start time, because pids are reused."""

    pid: int
    start_ticks: int  # since boot, in the kernel's clock ticks


class HaltResult(Record):
    """The result of a halt. `frozen` is true only if the kernel confirmed it.

    A halt stops what comes next: a system call in progress may still have completed.
    """

    frozen: bool
    tasks: int  # threads that were counted, running ones included
    seconds: float
    stopped: tuple[Stopped, ...] = ()  # to be resumed one by one; empty if a cgroup was frozen
    running: tuple[int, ...] = ()  # pids still running when time was up
    caught: tuple[int, ...] = ()  # pids that had left the session's cgroup and were moved back
