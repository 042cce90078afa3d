"""What a session is doing, and how it ended."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class SessionState(StrEnum):
    """S7: told from kernel evidence, never from what the output looks like."""

    WORKING = "working"  # something runs, or waits for something other than the terminal
    PROMPT = "prompt"  # the shell waits for a command line
    INPUT = "input"  # a program waits for a line or a key from the terminal
    SECRET = "secret"  # a program waits for a line with echo off
    STOPPED = "stopped"  # the foreground job is stopped by a signal
    HALTED = "halted"  # the whole tree is frozen by the layer
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
    """The true end of a session's main process. `lost`: it died with its host, status unknown."""

    code: int | None = None
    signal: int | None = None
    lost: str | None = None

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
