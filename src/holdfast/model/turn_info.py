"""What is reported of a session's turn: holder, queue, what a seizure found, and what a new holder
must know (A4-A6)."""

from __future__ import annotations

from holdfast.model.info import CommandRecord
from holdfast.model.record import Record
from holdfast.model.shell_state import Change


class WaitingInfo(Record):
    """One actor in the queue for the turn."""

    actor: str  # its id
    name: str  # its name
    since: float  # since when it waits, seconds since 1970
    message: str = ""  # what it says to the holder


class TurnInfo(Record):
    """The turn at one moment."""

    holder: str = ""  # id of the actor that holds it; empty when it is free
    holder_name: str = ""  # its name
    holder_kind: str = ""  # its kind
    since: float = 0.0  # since when, seconds since 1970
    seized: bool = False  # it was seized: no policy moves it
    blind: bool = False  # what is typed and printed now is kept nowhere
    policy: str = ""  # name of the policy
    queue: tuple[WaitingInfo, ...] = ()  # who waits, first come first
    # until when its holder said that it needs it, seconds since 1970; 0: it did not say
    held_until: float = 0.0


class Receipt(Record):
    """What a seizure or halt found; see *Halt*."""

    at: float  # when the request was taken up, seconds since 1970
    before: str  # who held the turn, by name; empty when nobody did
    scope: str  # what was to be frozen: `session`, `actor NAME`, or empty when nothing was
    frozen: bool  # the kernel confirmed it; never assumed
    tasks: int = 0  # threads that were frozen
    seconds: float = 0.0  # how long it took
    running: tuple[int, ...] = ()  # processes that could not be stopped in time
    journal_seq: int = 0  # last record of the journal before it
    last_input_by: str = ""  # whose input reached the terminal last, by name
    # when that was, seconds since 1970; null when this daemon saw none
    last_input_at: float | None = None
    output_offset: int = 0  # output offset at that moment
    caveat: str = ""  # what this cannot say, for people
    unrecorded: str = ""  # why the journal may not have it; empty when it has
    # processes that had left the session's cgroup; they were moved back and frozen with the rest
    caught: tuple[int, ...] = ()


class TurnMove(Record):
    """The turn moved."""

    at: float  # when, seconds since 1970
    step: str  # as in `turn_event`
    before: str  # who held it, by name; empty when nobody did
    holder: str  # who has it now, by name; empty when nobody has
    reason: str = ""  # the reason given


class Handoff(Record):
    """What happened since an actor last held the turn, or last looked. Text in it comes from
    programs and actors: sanitize it before showing it."""

    # journal record after which this begins; later than requested when there are more than 20000
    since_seq: int
    through_seq: int  # the last record it includes
    # when that was, seconds since 1970; null when the actor never held the turn, or looked, here
    since_at: float | None
    # commands that began in that time, oldest first, the latest 50
    commands: tuple[CommandRecord, ...]
    commands_left_out: int  # how many more there were before these
    moves: tuple[TurnMove, ...]  # changes of the turn, oldest first, the latest 20
    refused: int  # requests refused in that time
    blind_bytes: int  # secret bytes typed, counted only
    cwd: str  # the shell's working directory now
    changes: tuple[Change, ...]  # what changed in the shell's state
    # false: no shell reports its state, or its earlier state was not kept, so `changes` says
    # nothing
    changes_known: bool
    jobs: tuple[str, ...]  # background jobs of the shell now
    unsubmitted: str = ""  # text at the prompt without its Enter
    unsubmitted_by: tuple[str, ...] = ()  # who typed there, by name, the latest last
    # false: there may be text at the prompt, typed by `unsubmitted_by`, and the shell did not say
    # what, or was not asked because the asker may not write
    unsubmitted_known: bool = True
    halted: bool = False  # the session is halted
