"""Halting a session's tree, and letting it go on."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.record import Record
from holdfast.model.spec import Place


class Stopped(Record):
    """A process that a halt stopped: its number, and its birth, as numbers come back."""

    pid: int
    start_ticks: int  # since boot, in the kernel's clock ticks


class Halted(Record):
    """What a halt reached. `frozen` is only ever said of what was seen to be so.

    A halt bounds what comes next: a system call that was under way may still have been completed.
    """

    frozen: bool
    tasks: int  # threads that were counted, running ones included
    seconds: float
    stopped: tuple[Stopped, ...] = ()  # to be continued one by one; empty where a cgroup is frozen
    running: tuple[int, ...] = ()  # pids that were still running when time was up


class Halt(Protocol):
    """Both block for as long as the kernel takes, up to their time limit."""

    def halt(self, place: Place, session: str = "") -> Halted:
        """`session` also finds processes that only their environment ties to the session."""

    def resume(self, place: Place, stopped: tuple[Stopped, ...] = ()) -> bool:
        """`stopped` as the halt gave it. False: not everything could be made to go on."""
