"""Messages about who may do what, whose turn it is, and what was recorded: actors, envelopes, turn,
halt, journal. The rest of the protocol is in messages.py and admission.py."""

from __future__ import annotations

from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.ids import SessionId
from holdfast.model.info import BlameLine, Judgement
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.wire.messages.base import Answer, Message, Request

# -- who ----------------------------------------------------------------------------------------


class Claim(Request):
    """Act as this actor from now on. The signature is by the actor's key over the challenge of
    Welcome (see docs/protocol.md). Before anything else is asked. Answered by ActorShown."""

    tag = "claim"
    actor: str
    signature: bytes
    grant: bytes = b""  # a chain whose last holder is the actor, which the host need not know then


class AddActor(Request):
    """Make an actor known to this host. Answered by ActorShown."""

    tag = "add_actor"
    name: str
    kind: str
    key: bytes
    display: str = ""
    colour: str = ""


class ListActors(Request):
    """The actors of the asker's unix user. Answered by Actors."""

    tag = "list_actors"


class ShowActor(Request):
    """One actor with its envelopes; an empty name is the asker's own. Answered by ActorShown."""

    tag = "show_actor"
    actor: str = ""


class RevokeActor(Request):
    """This actor may do nothing any more, at once and for ever. Answered by ActorShown."""

    tag = "revoke_actor"
    actor: str


class ActorShown(Answer):
    tag = "actor_shown"
    actor: Actor
    envelopes: tuple[Envelope, ...] = ()


class Actors(Answer):
    tag = "actors"
    actors: tuple[Actor, ...]


# -- envelopes ------------------------------------------------------------------------------------


class Grant(Request):
    """Set what one actor may do in one scope, in place of what it might there before. `scope` is
    `all`, `label:NAME`, or a session's name or id. Answered by Envelopes."""

    tag = "grant"
    actor: str
    scope: str
    rights: tuple[str, ...]
    expires_at: float | None = None
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None


class Revoke(Request):
    """Leave this actor no rights in one scope; in `all`, none anywhere. Answered by Envelopes."""

    tag = "revoke"
    actor: str
    scope: str


class ListEnvelopes(Request):
    """The envelopes that count in one session, or all. Answered by Envelopes."""

    tag = "list_envelopes"
    session: str = ""


class Envelopes(Answer):
    tag = "envelopes"
    envelopes: tuple[Envelope, ...]
    names: dict[str, str]  # of the actors in them, by id


# -- the turn -------------------------------------------------------------------------------------


class GetTurn(Request):
    """Answered by TurnShown, as are the others of this section."""

    tag = "turn"
    session: str


class RequestTurn(Request):
    """Ask for the turn. It may come at once; else the asker waits, and a TurnEvent tells it."""

    tag = "request_turn"
    session: str
    message: str = ""  # for the holder to read


class WithdrawTurn(Request):
    """Wait for the turn no longer."""

    tag = "withdraw_turn"
    session: str


class GrantTurn(Request):
    """The holder gives the turn to one who waits; an empty `to` is the first of them."""

    tag = "grant_turn"
    session: str
    to: str = ""


class YieldTurn(Request):
    """The holder gives the turn up; the policy says who is next."""

    tag = "yield_turn"
    session: str


class HandOffTurn(Request):
    """The holder gives the turn to this actor, waiting or not."""

    tag = "hand_off_turn"
    session: str
    to: str
    message: str = ""


class RevokeTurn(Request):
    """Take the turn from its holder without taking it oneself. Needs the right to seize."""

    tag = "revoke_turn"
    session: str
    reason: str = ""


class SetTurnPolicy(Request):
    """Who gets the next turn: queue, ask-holder or free-when-idle. Needs the right to grant."""

    tag = "set_turn_policy"
    session: str
    policy: str


class SetBlind(Request):
    """Begin or end a blind turn: what is typed and printed meanwhile is kept nowhere."""

    tag = "set_blind"
    session: str
    blind: bool


class TurnShown(Answer):
    tag = "turn_shown"
    turn: TurnInfo
    yours: bool  # the asker's actor holds it


# -- seize and halt -------------------------------------------------------------------------------


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


# -- what was recorded ----------------------------------------------------------------------------


class CatchUp(Request):
    """What happened since the asker last looked. Answered by CaughtUp."""

    tag = "catch_up"
    session: str
    since_seq: int | None = None  # from this journal record on instead
    key: str = ""  # of this look: who asks again with the same one is told the same again


class CaughtUp(Answer):
    tag = "caught_up"
    handoff: Handoff


class GetJournal(Request):
    """Records as they were written, from `since_seq` on. Answered by JournalShown."""

    tag = "journal"
    session: str
    since_seq: int = 1
    max_bytes: int = 262144


class JournalShown(Answer):
    """A piece of the journal; `more`: ask again from the next sequence on."""

    tag = "journal_shown"
    session: SessionId
    records: tuple[bytes, ...]
    more: bool
    names: dict[str, str]  # of the actors this host knows, by id


class Verify(Request):
    """Check the journal against its links, its seals and what the host remembers of it. `thorough`:
    every link, not only every sealed block. Answered by Verified."""

    tag = "verify"
    session: str
    thorough: bool = False


class Verified(Answer):
    tag = "verified"
    judgement: Judgement


class Prove(Request):
    """A proof that the records from `first` to `last` are one unbroken chain. Answered by
    Proven."""

    tag = "prove"
    session: str
    first: int
    last: int  # 0: the last one there is


class Proven(Answer):
    """`proof` is the full-strength one as JSON text; `witness` its 36-byte form."""

    tag = "proven"
    witness: bytes
    proof: str


class Blame(Request):
    """Every line of the output that is held, with the command and actor that produced it; of a
    live session or an ended one. Lines are numbered from 1. Answered by Blamed."""

    tag = "blame"
    session: str
    first: int = 1
    last: int | None = None


class Blamed(Answer):
    """As many of the lines as fit; the rest is asked for from the next one on."""

    tag = "blamed"
    lines: tuple[BlameLine, ...]
    total: int  # lines there are


# -- unasked --------------------------------------------------------------------------------------


class TurnEvent(Message):
    """The turn changed, or somebody asks for it: told to everybody attached or watching."""

    tag = "turn_event"
    session: SessionId
    step: str
    at: float
    actor: str  # who did it, by name
    turn: TurnInfo
    yours: bool
    reason: str = ""


class TurnLost(Message):
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
