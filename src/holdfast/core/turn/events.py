"""What can be done about a turn, and what can come of it: the vocabulary of `machine.py`.

Times come in with the events; whether the actor of an event may do it is judged before."""

from __future__ import annotations

from holdfast.core.turn.table import TurnStepKind
from holdfast.model.envelope import Right
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.record import Record

# -- events -----------------------------------------------------------------------------------


class TurnEvent(Record):
    """Something done about the turn, or a fact that bears on it."""


class RequestStep(TurnEvent):
    """Asks for the turn; waits if it cannot be had at once. A repeat keeps its place."""

    actor: ActorId
    now: float
    message: str = ""
    explicit: bool = True
    hold_s: float = 0.0  # how long it will need the turn at least, from when it has it


class RenewStep(TurnEvent):
    """The holder needs the turn for so long from now. Whoever does not hold it asks for nothing."""

    by: ActorId
    now: float
    hold_s: float


class GrantStep(TurnEvent):
    """The holder gives it to one who waits; None: to whom the policy names."""

    by: ActorId
    to: ActorId | None
    now: float


class YieldStep(TurnEvent):
    by: ActorId
    now: float


class HandOff(TurnEvent):
    by: ActorId
    to: ActorId
    now: float
    reason: str = ""


class RevokeStep(TurnEvent):
    """Taken from the holder; `by` is an actor or HOST_ACTOR."""

    by: str
    now: float
    reason: str = ""


class SeizeTurn(TurnEvent):
    by: ActorId
    now: float
    reason: str = ""


class WithdrawStep(TurnEvent):
    actor: ActorId


class LeaveStep(TurnEvent):
    """The actor's last connection to the session went."""

    actor: ActorId
    now: float


class Return(TurnEvent):
    """An actor has a connection again."""

    actor: ActorId


class TurnTick(TurnEvent):
    """Time has passed."""

    now: float


class WroteStep(TurnEvent):
    """An input of this actor is about to be taken. Writing takes a turn that is free, or that a
    request would get at once from a holder that never asked for it expressly; it never waits."""

    actor: ActorId
    now: float


class CommandStep(TurnEvent):
    """The shell runs a command line of this actor; None: it runs none."""

    actor: ActorId | None
    now: float


class BlindStep(TurnEvent):
    """The holder begins or ends a blind turn. It ends by itself when the turn moves."""

    by: ActorId
    blind: bool


# What an actor must be allowed to do for these. To give up what one has needs no right.
RIGHTS: dict[type[TurnEvent], Right] = {
    RequestStep: Right.TURN_REQUEST,
    RenewStep: Right.TURN_REQUEST,
    GrantStep: Right.TURN_GRANT,
    HandOff: Right.TURN_GRANT,
    RevokeStep: Right.SEIZE,
    SeizeTurn: Right.SEIZE,
}


# -- outcomes ---------------------------------------------------------------------------------


class TurnOutcome(Record):
    """What came of an event, to be recorded and told in the order given."""


class Moved(TurnOutcome):
    """The turn has another holder (None: nobody), or the same one holds it by seizure now."""

    step: TurnStepKind
    before: ActorId | None
    holder: ActorId | None
    at: float
    reason: str = ""
    by: str = HOST_ACTOR  # whose act it was; the host's own when time or a lost connection did it


class Asked(TurnOutcome):
    """Somebody waits; the holder is to be told."""

    actor: ActorId
    holder: ActorId
    message: str


class Withdrawn(TurnOutcome):
    actor: ActorId


class Blinded(TurnOutcome):
    holder: ActorId
    blind: bool
