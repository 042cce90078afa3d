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
    """Ask for the turn. It may come at once; else the asker waits, and a TurnEvent tells it.
    Answered by TurnShown."""

    tag = "request_turn"
    session: str
    message: str = ""  # for the holder to read


class WithdrawTurn(Request):
    """Wait for the turn no longer. Answered by TurnShown."""

    tag = "withdraw_turn"
    session: str


class GrantTurn(Request):
    """The holder gives the turn to one who waits; an empty `to` is the first of them. Answered by
    TurnShown."""

    tag = "grant_turn"
    session: str
    to: str = ""


class YieldTurn(Request):
    """The holder gives the turn up; the policy says who is next. Answered by TurnShown."""

    tag = "yield_turn"
    session: str


class HandOffTurn(Request):
    """The holder gives the turn to this actor, waiting or not. Answered by TurnShown."""

    tag = "hand_off_turn"
    session: str
    to: str
    message: str = ""


class RevokeTurn(Request):
    """Take the turn from its holder without taking it oneself. Needs the right to seize. Answered
    by TurnShown."""

    tag = "revoke_turn"
    session: str
    reason: str = ""


class SetTurnPolicy(Request):
    """Who gets the next turn: queue, ask-holder or free-when-idle. Needs the right to grant.
    Answered by TurnShown."""

    tag = "set_turn_policy"
    session: str
    policy: str


class SetBlind(Request):
    """Begin or end a blind turn: what is typed and printed meanwhile is kept nowhere. Answered by
    TurnShown."""

    tag = "set_blind"
    session: str
    blind: bool


class TurnShown(Answer):
    tag = "turn_shown"
    turn: TurnInfo
    yours: bool  # the asker's actor holds it


class Seize(Request):
    """Take the turn now, whoever holds it and whatever the policy. Answered by Halted.

    `halt` freezes the whole tree too; `only_actor` only what that actor started."""

    tag = "seize"
    session: str
    halt: bool = False
    only_actor: str = ""
    reason: str = ""


class Halt(Request):
    """Freeze the tree, or what one actor started. Answered by Halted."""

    tag = "halt"
    session: str
    only_actor: str = ""
    reason: str = ""


class Resume(Request):
    """Let a halted tree run on. Answered by Done. `force_lease`: why a fenced one may hold its
    lease again though no record of it is left; the asker attests that it lives nowhere else."""

    tag = "resume"
    session: str
    force_lease: str = ""


class Halted(Answer):
    tag = "halted"
    receipt: Receipt


class CatchUp(Request):
    """What happened since the asker last looked. Answered by CaughtUp."""

    tag = "catch_up"
    session: str
    since_seq: int | None = None  # from this journal record on instead
    key: str = ""  # of this look: who asks again with the same one is told the same again


class CaughtUp(Answer):
    tag = "caught_up"
    handoff: Handoff


class TurnMessage(Message):
    """The turn changed, or somebody asks for it: told to everybody attached or watching."""

    tag = "turn_event"
    session: SessionId
    step: str
    at: float
    actor: str  # who did it, by name
    turn: TurnInfo
    yours: bool
    reason: str = ""


class TurnLostMessage(Message):
    """You held the turn and do not any more; your writes are refused from here on."""

    tag = "turn_lost"
    session: SessionId
    by: str
    at: float
    reason: str


class HandedOver(Message):
    """You hold the turn now: what changed since you last did."""

    tag = "handed_over"
    session: SessionId
    handoff: Handoff
