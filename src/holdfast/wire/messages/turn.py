"""Messages about the turn, the halt, and what happened since somebody last looked."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.wire.messages.base import Answer, Message, Request


class GetTurn(Request, tag="turn"):
    """Who holds the turn and who waits for it. Answered by TurnShown."""

    session: str


class RequestTurn(Request, tag="request_turn"):
    """Ask for the turn. It may come at once; otherwise the actor waits, and a `turn_event` says
    when it comes. Answered by TurnShown."""

    session: str
    message: str = ""  # for the holder to read
    # seconds, at most `TURN_HOLD_MAX_S`: the actor needs the turn for so long, counted from when it
    # has it, and until then no pause takes it away
    hold_s: float = 0.0
    renew: bool = (
        False  # only if the actor holds it now; else `turn_not_held`, and it asks for nothing
    )


class WithdrawTurn(Request, tag="withdraw_turn"):
    """Stop waiting for the turn; `invalid_argument` when the actor does not wait. Answered by
    TurnShown."""

    session: str


class GrantTurn(Request, tag="grant_turn"):
    """The holder gives the turn to an actor that waits. `turn_not_held` from anybody else,
    `invalid_argument` when nobody waits. Answered by TurnShown."""

    session: str
    to: str = ""  # name or id of one who waits; empty is the next by the policy


class YieldTurn(Request, tag="yield_turn"):
    """The holder gives the turn up; the policy says who is next. Answered by TurnShown."""

    session: str


class HandOffTurn(Request, tag="hand_off_turn"):
    """The holder gives the turn to this actor, waiting or not. Answered by TurnShown."""

    session: str
    to: str  # name or id
    message: str = ""  # for everybody to read


class RevokeTurn(Request, tag="revoke_turn"):
    """Take the turn from its holder without taking it oneself; the next in the queue gets it, or
    nobody. Answered by TurnShown."""

    session: str
    reason: str = ""  # for everybody to read


class SetTurnPolicy(Request, tag="set_turn_policy"):
    """Who gets the next turn. Answered by TurnShown."""

    session: str
    policy: str  # `queue`, `ask-holder` or `free-when-idle`


class SetBlind(Request, tag="set_blind"):
    """Begin or end a blind turn. Only the holder may; beginning one takes a free turn. Answered by
    TurnShown."""

    session: str
    blind: bool  # whether what is typed and printed from now on is kept nowhere


class TurnShown(Answer, tag="turn_shown"):
    turn: TurnInfo  # the turn now
    yours: bool  # the asker's actor holds it


class Seize(Request, tag="seize"):
    """Take the turn now, whoever holds it and whatever the policy. Answered by Halted."""

    session: str
    halt: bool = False  # freeze the whole tree too
    only_actor: str = ""  # name or id: freeze only what this actor started
    reason: str = ""  # for everybody to read, and for the journal


class Halt(Request, tag="halt"):
    """Freeze the tree, or what one actor started. The turn does not move. Answered by Halted."""

    session: str
    only_actor: str = ""  # name or id: freeze only what this actor started
    reason: str = ""  # for the journal


class Resume(Request, tag="resume"):
    """Thaw everything that is frozen. Answered by Done, or by `failed` with `halt_failed`. With
    `force_lease`, and the right `grant`: a re-homeable session that is fenced acquires its lease
    again, in a new epoch, although the coordination point has no record of it, as when the store
    was lost and recreated; the asker attests that no other host has the session. Refused with
    `invalid_argument` where there is a record, and with `coordination_down` while the coordination
    point does not answer."""

    session: str
    force_lease: str = ""  # the reason, for the record; empty: only resume what was halted


class Halted(Answer, tag="halted"):
    receipt: Receipt  # the receipt


class CatchUp(Request, tag="catch_up"):
    """What happened since the asker's actor last looked or was last attached to a terminal; a
    channel with `raw` is not a look. The next one begins where this one ends, unless `since_seq` is
    given: then this is not a look either. After a lost connection, ask again with the same `key`.
    Answered by CaughtUp."""

    session: str
    since_seq: int | None = None  # from this journal record on instead
    # names this look, at most 256 characters; with the key of the actor's last look, this one
    # begins where that one began
    key: str = ""


class CaughtUp(Answer, tag="caught_up"):
    handoff: Handoff  # since the asker last looked


class TurnMessage(Message, tag="turn_event"):
    """The turn changed, or somebody asks for it. After a `request` the actor either holds the turn
    or is in its queue: `turn` says which."""

    session: SessionId  # id of the session
    # `request`, `grant`, `yield`, `hand off`, `revoke`, `expire`, `seize`, `withdraw` or `leave`,
    # or `blind` or `not blind`
    step: str
    at: float  # when, seconds since 1970
    actor: str  # who did it, by name; empty is the host
    turn: TurnInfo  # the turn after it
    yours: bool  # the receiver's actor holds it now
    reason: str = ""  # the message or reason given


class TurnLostMessage(Message, tag="turn_lost"):
    """The turn was taken from the receiver's actor: its writes are refused from now on."""

    session: SessionId  # id of the session
    by: str  # who took it, by name; `the host` when it expired, or the holder's envelope did
    at: float  # when, seconds since 1970
    reason: str  # the reason given; `idle` when it expired


class HandedOver(Message, tag="handed_over"):
    """The receiver's actor holds the turn now. Follows the `turn_event` that says so, when it has
    been gathered."""

    session: SessionId  # id of the session
    handoff: Handoff  # what others did since this actor last held it
