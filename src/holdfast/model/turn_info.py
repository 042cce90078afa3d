"""What is told of a session's turn: who holds it, who waits, what a seizure found, and what a new
holder must know (A4-A6)."""

from __future__ import annotations

from holdfast.model.info import CommandRecord
from holdfast.model.record import Record
from holdfast.model.shell_state import Change


class WaitingInfo(Record):
    """One actor in the queue for the turn."""

    actor: str
    name: str
    since: float
    message: str = ""


class TurnInfo(Record):
    """The turn at one moment."""

    holder: str = ""  # the actor's id; "" when the turn is free
    holder_name: str = ""
    holder_kind: str = ""
    since: float = 0.0
    seized: bool = False  # taken, not given: no policy passes it on
    blind: bool = False  # what is typed and printed now is kept nowhere
    policy: str = ""
    queue: tuple[WaitingInfo, ...] = ()


class Receipt(Record):
    """What a seizure or halt found: a commit horizon, not a time machine (A5)."""

    at: float
    before: str  # who held the turn, by name; "" when nobody did
    scope: str  # what was halted: "session", "actor NAME", or "" when nothing was asked to
    frozen: bool  # the kernel confirmed it; never assumed
    tasks: int = 0
    seconds: float = 0.0
    running: tuple[int, ...] = ()  # what could not be stopped
    journal_seq: int = 0  # of the last record before it
    last_input_by: str = ""  # the last input that reached the terminal: whose,
    last_input_at: float | None = None  # when,
    output_offset: int = 0  # and how much had been printed
    caveat: str = ""
    unrecorded: str = ""  # why the journal does not have this for sure; "" when it does


class TurnMove(Record):
    """The turn changed hands."""

    at: float
    step: str
    before: str
    holder: str
    reason: str = ""


class Handoff(Record):
    """What happened since an actor last held the turn, or last looked (A6)."""

    since_seq: int  # the journal record after which this begins
    through_seq: int
    since_at: float | None  # None: it never held the turn here, this is from the beginning
    commands: tuple[CommandRecord, ...]
    commands_left_out: int
    moves: tuple[TurnMove, ...]
    refused: int  # writes refused in that time
    blind_bytes: int  # secret keystrokes, counted only
    cwd: str
    changes: tuple[Change, ...]
    changes_known: bool  # False: no shell that reports its state, or its state then was not kept
    jobs: tuple[str, ...]
    unsubmitted: str = ""  # text that stands at the prompt without its Enter
    unsubmitted_by: tuple[str, ...] = ()
    unsubmitted_known: bool = True  # False: some may stand there, and the shell did not say it
    halted: bool = False
