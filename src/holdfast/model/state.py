"""What a session is doing, and how it ended."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.discontinuity import DiscontinuityCause, DiscontinuityKind, cause_of_text
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
    ASLEEP = "asleep"  # nothing of it runs; its checkpoint has it, and it can be restored
    LOST = "lost"  # it went with its host, or its identity could not go on; `ending` says why

    @property
    def is_over(self) -> bool:
        """Nothing of the session runs. Only one that is asleep or lost can be restored."""
        return self in (SessionState.ENDED, SessionState.ASLEEP, SessionState.LOST)


def state_word(state: SessionState, *, full_screen: bool) -> str:
    """The state in the word people read: a full-screen program is in use and waits for nobody."""
    return "in use" if full_screen and state is SessionState.INPUT else state.value


class Level(StrEnum):
    """What the host can do for a session; each level has all of the one before."""

    PLAIN = "plain"
    CONTAINED = "contained"
    MOVABLE = "movable"

    def reaches(self, wanted: Level) -> bool:
        order = list(Level)
        return order.index(self) >= order.index(wanted)


class Ending(Record):
    """How a session ended. Exactly one of `code`, `signal` and `lost` is not null; none of them for
    one that is asleep in its `checkpoint`."""

    code: int | None = None  # exit status of the main process
    signal: int | None = None  # signal that ended it
    lost: str | None = None  # why the true status is unknown: its host or keeper died
    # of a lost session: the same, for programs; null when an older version recorded it
    cause: DiscontinuityCause | None = None
    successor: str = ""  # of a lost session: id of the one that follows it; empty: none does
    # id of the checkpoint with which it was ended: the session is asleep in it. Empty: it is not
    checkpoint: str = ""
    # of a session that goes on at another host: the name of that machine. Empty: it does not
    moved_to: str = ""

    @property
    def state(self) -> SessionState:
        """Which of the three it is."""
        if self.checkpoint:
            return SessionState.ASLEEP
        return SessionState.ENDED if self.lost is None else SessionState.LOST

    @property
    def may_come_back(self) -> bool:
        """Lost, with a checkpoint to restore it from: its journal is not closed."""
        return self.lost is not None and self.cause is not None and bool(self.cause.checkpoint)

    def typed(self) -> Ending:
        """With its cause, also when it was recorded as text only."""
        if self.lost is None or self.cause is not None:
            return self
        return self.replace(cause=cause_of_text(self.lost))

    def sentence(self) -> str:
        """`ended: exit 0`, `lost with its host` or `lost: its keeper died`, with its successor."""
        if self.moved_to:
            return f"moved to {self.moved_to}"
        if self.checkpoint:
            return f"asleep in {self.checkpoint}"
        if self.lost is None:
            return f"ended: {self}"
        follows = f"; followed by {self.successor}" if self.successor else ""
        if self.cause is not None and self.cause.kind == DiscontinuityKind.HOST_LOST:
            return f"lost with its host{follows}"
        return f"lost: {self.lost}{follows}"

    def __str__(self) -> str:
        if self.moved_to:
            return f"moved to {self.moved_to}"
        if self.checkpoint:
            return f"asleep ({self.checkpoint})"
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
