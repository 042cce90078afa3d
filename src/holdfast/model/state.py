"""What a session is doing, and how it ended."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class SessionState(StrEnum):
    """What a session is doing, from kernel evidence and never from what the output looks like."""

    WORKING = "working"  # something runs, or waits for something other than the terminal
    PROMPT = "prompt"  # the shell waits for a command line
    INPUT = "input"  # a program waits for a line or a key from the terminal
    SECRET = "secret"  # a program waits for a line with echo off
    STOPPED = "stopped"  # the foreground job is stopped by a signal
    HALTED = "halted"  # the whole tree is frozen by holdfast
    ENDED = "ended"  # the main process is gone; its true status is known


class Level(StrEnum):
    """What the host can do for a session; each level has all of the one before."""

    PLAIN = "plain"
    CONTAINED = "contained"
    MOVABLE = "movable"

    def reaches(self, wanted: Level) -> bool:
        order = list(Level)
        return order.index(self) >= order.index(wanted)


class Ending(Record):
    """How a session ended. Exactly one field is not null."""

    code: int | None = None  # exit status of the main process
    signal: int | None = None  # signal that ended it
    lost: str | None = None  # why the true status is unknown: its host or keeper died

    def __str__(self) -> str:
        if self.lost is not None:
            return f"lost ({self.lost})"
        if self.signal is not None:
            return f"signal {signal_name(self.signal)}"
        return f"exit {self.code}"


def signal_name(number: int) -> str:
    import signal  # here: making its enums takes 2 ms, and few commands name a signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
