"""Messages about the turn, the halt, and what happened since somebody last looked."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.wire.messages.base import Answer, Message, Request


class GetTurn(Request):
    """Who holds the turn and who waits for it. Answered by TurnShown."""

    tag = "turn"
    session: str


class RequestTurn(Request):
    """Ask for the turn. It may come at once; otherwise the actor waits, and a `turn_event` says
    when it comes. Answered by TurnShown."""

    tag = "request_turn"
    session: str
    message: str = ""  # for the holder to read


class WithdrawTurn(Request):
    """Stop waiting for the turn; `invalid_argument` when the actor does not wait. Answered by
    TurnShown."""

    tag = "withdraw_turn"
    session: str


class GrantTurn(Request):
    """The holder gives the turn to an actor that waits. `turn_not_held` from anybody else,
    `invalid_argument` when nobody waits. Answered by TurnShown."""

    tag = "grant_turn"
    session: str
    to: str = ""  # name or id of one who waits; empty is the next by the policy


class YieldTurn(Request):
    """The holder gives the turn up; the policy says who is next. Answered by TurnShown."""

    tag = "yield_turn"
    session: str


class HandOffTurn(Request):
    """The holder gives the turn to this actor, waiting or not. Answered by TurnShown."""

    tag = "hand_off_turn"
    session: str
    to: str  # name or id
    message: str = ""  # for everybody to read


class RevokeTurn(Request):
    """Take the turn from its holder without taking it oneself; the next in the queue gets it, or
    nobody. Answered by TurnShown."""

    tag = "revoke_turn"
    session: str
    reason: str = ""  # for everybody to read


class SetTurnPolicy(Request):
    """Who gets the next turn. Answered by TurnShown."""

    tag = "set_turn_policy"
    session: str
    policy: str  # `queue`, `ask-holder` or `free-when-idle`


class SetBlind(Request):
    """Begin or end a blind turn. Only the holder may; beginning one takes a free turn. Answered by
    TurnShown."""

    tag = "set_blind"
    session: str
    blind: bool  # whether what is typed and printed from now on is kept nowhere


class TurnShown(Answer):
    tag = "turn_shown"
    turn: TurnInfo  # the turn now
    yours: bool  # the asker's actor holds it


class Seize(Request):
    """Take the turn now, whoever holds it and whatever the policy. Answered by Halted."""

    tag = "seize"
    session: str
    halt: bool = False  # freeze the whole tree too
    only_actor: str = ""  # name or id: freeze only what this actor started
    reason: str = ""  # for everybody to read, and for the journal


class Halt(Request):
    """Freeze the tree, or what one actor started. The turn does not move. Answered by Halted."""

    tag = "halt"
    session: str
    only_actor: str = ""  # name or id: freeze only what this actor started
    reason: str = ""  # for the journal


class Resume(Request):
    """Thaw everything that is frozen. Answered by Done, or by `failed` with `halt_failed`. With
    `force_lease`, and the right `grant`: a re-homeable session that is fenced acquires its lease
    again, in a new epoch, although the coordination point has no record of it, as when the store
    was lost and recreated; the asker attests that no other host has the session. Refused with
    `invalid_argument` where there is a record, and with `coordination_down` while the coordination
    point does not answer."""

    tag = "resume"
    session: str
    force_lease: str = ""  # the reason, for the record; empty: only resume what was halted


class Halted(Answer):
    tag = "halted"
    receipt: Receipt  # the receipt


class CatchUp(Request):
    """What happened since the asker's actor last looked or was last attached to a terminal; a
    channel with `raw` is not a look. The next one begins where this one ends, unless `since_seq` is
    given: then this is not a look either. After a lost connection, ask again with the same `key`.
    Answered by CaughtUp."""

    tag = "catch_up"
    session: str
    since_seq: int | None = None  # from this journal record on instead
    # names this look, at most 256 characters; with the key of the actor's last look, this one
    # begins where that one began
    key: str = ""


class CaughtUp(Answer):
    tag = "caught_up"
    handoff: Handoff  # since the asker last looked


class TurnMessage(Message):
    """The turn changed, or somebody asks for it. After a `request` the actor either holds the turn
    or is in its queue: `turn` says which."""

    tag = "turn_event"
    session: SessionId  # id of the session
    # `request`, `grant`, `yield`, `hand off`, `revoke`, `expire`, `seize`, `withdraw` or `leave`,
    # or `blind` or `not blind`
    step: str
    at: float  # when, seconds since 1970
    actor: str  # who did it, by name; empty is the host
    turn: TurnInfo  # the turn after it
    yours: bool  # the receiver's actor holds it now
    reason: str = ""  # the message or reason given


class TurnLostMessage(Message):
    """The turn was taken from the receiver's actor: its writes are refused from now on."""

    tag = "turn_lost"
    session: SessionId  # id of the session
    by: str  # who took it, by name; `the host` when it expired, or the holder's envelope did
    at: float  # when, seconds since 1970
    reason: str  # the reason given; `idle` when it expired


class HandedOver(Message):
    """The receiver's actor holds the turn now. Follows the `turn_event` that says so, when it has
    been gathered."""

    tag = "handed_over"
    session: SessionId  # id of the session
    handoff: Handoff  # what others did since this actor last held it
