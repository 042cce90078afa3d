"""What happens to sessions, without being asked: the events of `Hold.events` and `Session.events`.

Each names its session by id and says when it happened by the host's clock. After a lost connection
the present state comes again where it changed, behind a `Dropped` that says so.
"""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.model.turn_info import Handoff, TurnInfo


class Event(Record):
    """Base of all."""

    session: str  # its id; "" when it is about none in particular


class StateChanged(Event):
    """What a session does now: also given for each session at the beginning."""

    name: str
    state: SessionState
    at: float
    waiting_line: str = ""  # the prompt, when it waits for input or a secret
    full_screen: bool = False  # with `input`: a full-screen program is in use and asks nothing


class Ended(Event):
    """A session ended, and how."""

    name: str
    ending: Ending
    at: float


class Lost(Ended):
    """A session was lost, with its host or because its record broke. It has not ended: `ending`
    says why it was lost, and which session follows it."""


class TurnChanged(Event):
    """The turn moved, or something about it did."""

    step: str  # request, grant, yield, seize ... as in docs/protocol.md
    at: float
    actor: str  # who did it, by name
    turn: TurnInfo
    yours: bool
    reason: str = ""


class TurnRequested(Event):
    """Somebody asks for the turn."""

    at: float
    actor: str  # who, by name
    message: str  # for the holder to read
    turn: TurnInfo
    yours: bool  # you hold it, so you are the one asked


class TurnLost(Event):
    """The turn was taken from you; your writes are refused from here on."""

    by: str
    at: float
    reason: str


class TurnHandedOver(Event):
    """You hold the turn now, and this changed since you last did. Given to attached operators."""

    handoff: Handoff


class OperatorsChanged(Event):
    """Somebody came or went, or the canonical size changed."""

    operators: int
    observers: int
    size: Size


class ReapNotice(Event):
    """Nobody uses a session, and its host is about to do something about it. Whoever attaches,
    writes to it or pins it keeps it."""

    name: str
    step: str  # "warned", or "reaping": it happens now
    action: str  # "evict" (checkpointed, then asleep) or "end"
    why: str
    at: float
    due_at: float  # when it happens


class Rehomed(Event):
    """A session lives again in a new epoch. Its output goes on at the offset of its checkpoint."""

    name: str
    at: float
    epoch_before: int
    epoch: int
    kind: str  # what of it goes on: "memory" or "application"
    checkpoint: str  # its id
    bytes: int
    restore_ms: float
    downtime_s: float  # since the moment that the checkpoint is of
    resets: int  # connections to peers outside that were reset
    inputs_lost: int  # recorded inputs that are newer than the checkpoint


class Migrated(Event):
    """How far the move of a session to another host is, as one of the two hosts sees it."""

    name: str
    at: float
    phase: str  # "snapshot", "transfer", "restore", "replay", "cutover", "complete"; "": it is over
    superposition: str  # "transferring", "dual-active", "post-cutover", "settled", "pre-migration"
    host: str  # the other host
    leaves: bool  # it leaves this host; else it comes
    reason: str  # why it was rolled back; empty when it was not


class Progressed(Event):
    """How far something is that takes more than a moment."""

    name: str
    work: str  # "checkpoint" or "restore"; a later version may add some
    phase: str  # which part: "freeze" or "ask", "store"; "check", "load", "start"; more may come
    done: int  # bytes of this phase
    total: int  # how many they will be; 0 when it is not known
    at: float
    over: bool = False  # nothing more comes of it


class Dropped(Event):
    """Events were left out here."""

    count: int | None  # None: the connection was lost, nobody knows how many
