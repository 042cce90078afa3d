"""What a halt of a session's tree reached."""

from __future__ import annotations

from holdfast.model.record import Record


class Stopped(Record):
    """A process that a halt stopped: its number, and its birth, as numbers come back."""

    pid: int
    start_ticks: int  # since boot, in the kernel's clock ticks


class HaltResult(Record):
    """What a halt reached. `frozen` is only ever said of what was seen to be so.

    A halt bounds what comes next: a system call that was under way may still have been completed.
    """

    frozen: bool
    tasks: int  # threads that were counted, running ones included
    seconds: float
    stopped: tuple[Stopped, ...] = ()  # to be continued one by one; empty where a cgroup is frozen
    running: tuple[int, ...] = ()  # pids that were still running when time was up
