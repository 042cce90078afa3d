"""The session machine with a gate: who may decide about what waits, and what takes it away. The
host is played by the test: it takes what may be taken, and says what a policy said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.session import SavedGate, SessionMachine
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.envelope import ALL, ROLES, Envelope
from holdfast.model.errors import (
    Fenced,
    GateHeld,
    GateRefused,
    LimitReached,
    NoSuchApproval,
    NotPermitted,
)
from holdfast.model.gate import (
    ALLOWED,
    Contributor,
    EffectKind,
    Outcome,
    Part,
    ProposedEffect,
    Verdict,
)
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.limits import APPROVAL_LIFE_S, APPROVAL_TEXT_MAX_BYTES
from holdfast.model.record import Record
from holdfast.model.size import Size

SESSION, NOW = SessionId.of_key(bytes(32)), 1000.0
HOLD = Verdict(Outcome.HOLD, "two must agree", "host")


def an_actor(number: int, name: str, kind: str) -> Actor:
    return Actor.of(bytes([number]) * 32, name, kind, uid=1000, created_at=0.0)


BOT = an_actor(1, "bot", "agent")
ANN, BEN, CAT = (an_actor(n, name, "human") for n, name in ((2, "ann"), (3, "ben"), (4, "cat")))
OPERATOR = OperatorId("1" * 32)


class Played:
    """A session, and everything that it was told to do."""

    def __init__(self, gate: SavedGate | None = None, in_custody: object = None) -> None:
        envelopes = [
            Envelope(BOT.id, ALL, tuple(sorted(ROLES["execute"]))),
            *(Envelope(each.id, ALL, tuple(sorted(ROLES["admin"]))) for each in (ANN, BEN)),
            Envelope(CAT.id, ALL, tuple(sorted(ROLES["read"]))),
        ]
        self.authority = Authority([BOT, ANN, BEN, CAT], envelopes)
        self.core = SessionMachine(
            SESSION,
            (),
            Size(80, 24),
            self.authority,
            TurnMachine(),
            dict(in_custody) if isinstance(in_custody, dict) else {},
            in_force=lambda: True,
            gate=gate,
            now=NOW,
        )
        self.typed = b""
        self.done: list[do.Effect] = []

    def handle(self, event: ev.SessionEvent) -> list[do.Effect]:
        effects = self.core.handle(event)
        for effect in effects:
            self.done.append(effect)
            if isinstance(effect, do.TakeInputs):
                while (piece := self.core.inputs.next(1 << 16)) is not None:
                    self.typed += piece.data
                    self.core.inputs.taken(piece)
        return effects

    def type(self, data: bytes, actor: Actor = BOT) -> None:
        seq = self.core.inputs.last(OPERATOR) + 1
        self.handle(ev.InputOffered(actor.id, NOW, OPERATOR, seq, data))

    def judged(
        self, verdict: Verdict, *others: Actor, text: str = "rm x", now: float = NOW
    ) -> list[do.Effect]:
        gated = self.core.inputs.unjudged
        assert gated is not None
        effect = an_effect(ActorId(gated.whole.actor), *others, text=text)
        return self.handle(
            ev.CommitJudged(
                effect.actor,
                now,
                gated.number,
                effect,
                verdict,
                "a1b2c3d4",
                now + APPROVAL_LIFE_S,
                7,
            )
        )

    def decide(self, actor: Actor, *, approve: bool = True, now: float = NOW) -> list[do.Effect]:
        return self.handle(ev.ApprovalDecided(actor.id, now, "a1b2c3d4", approve, "note", "{}"))

    def refusals(self) -> list[str]:
        return [each.error.code for each in self.done if isinstance(each, do.RefuseInputs)]

    def closed(self) -> list[str]:
        return [each.approval.status for each in self.done if isinstance(each, do.CloseApproval)]


def an_effect(actor: ActorId, *others: Actor, text: str = "rm x") -> ProposedEffect:
    first = Contributor(actor, "?", ActorKind.AGENT, Part.TRIGGER)
    more = (Contributor(each.id, each.name, each.kind, Part.TYPED) for each in others)
    kind = EffectKind.LINE
    return ProposedEffect(SESSION, "s", (), "plain", 1, kind, actor, (first, *more), text)


def held(*others: Actor, verdict: Verdict = HOLD) -> Played:
    played = Played()
    played.type(b"rm x\r")
    assert played.typed == b"rm x"
    played.judged(verdict, *others)
    return played


@pytest.mark.requirement("A8")
def test_an_enter_is_typed_only_when_it_was_judged_and_allowed() -> None:
    played = Played()
    played.type(b"ls\rpwd\r")
    assert played.typed == b"ls"
    played.judged(ALLOWED)
    assert played.typed == b"ls\rpwd"
    played.judged(ALLOWED)
    assert played.typed == b"ls\rpwd\r" and played.core.inputs.is_empty


@pytest.mark.requirement("A8")
def test_what_is_refused_takes_what_is_behind_it_along() -> None:
    played = Played()
    played.type(b"rm x\rpwd\r")
    played.type(b"who\r")
    effects = played.judged(Verdict(Outcome.REFUSE, "no", "host"))
    assert played.typed == b"rm x" and played.core.inputs.is_empty
    (refused,) = [each for each in effects if isinstance(each, do.RefuseInputs)]
    assert isinstance(refused.error, GateRefused) and len(refused.inputs) == 2
    assert [type(each) for each in effects][:2] == [do.RecordJudged, do.ClearLine]


@pytest.mark.requirement("A8")
def test_a_refused_input_is_refused_again_when_it_is_offered_again() -> None:
    played = Played()
    played.type(b"rm x\r")
    played.judged(Verdict(Outcome.REFUSE, "no", "host"))
    with pytest.raises(GateRefused, match="no"):
        played.handle(ev.InputOffered(BOT.id, NOW, OPERATOR, 1, b"rm x\r"))
    assert played.typed == b"rm x"


@pytest.mark.requirement("A8")
def test_a_verdict_on_what_is_gone_means_nothing() -> None:
    played = Played()
    played.type(b"rm x\r")
    gated = played.core.inputs.unjudged
    assert gated is not None
    late = ev.CommitJudged(BOT.id, NOW, gated.number, an_effect(BOT.id), ALLOWED, "x", NOW, 0)
    played.handle(ev.SeizeAsked(ANN.id, NOW, ""))
    assert played.refusals() == ["turn_held"]
    assert played.handle(late) == []
    assert played.typed == b"rm x"


@pytest.mark.requirement("A8")
def test_a_held_line_goes_on_when_another_approves_and_is_judged_again() -> None:
    played = held()
    assert [type(each) for each in played.done if isinstance(each, do.AnswerHeld | do.AskApproval)]
    with pytest.raises(GateHeld):
        played.type(b"x")
    effects = played.decide(ANN)
    assert any(isinstance(each, do.JudgeCommit) for each in effects)
    assert played.typed == b"rm x"
    gated = played.core.inputs.unjudged
    assert gated is not None
    released = played.core.released(gated.number)
    assert released is not None and released.approved_by == (ANN.id,)
    played.judged(ALLOWED)
    assert played.typed == b"rm x\r"


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("who", "others", "verdict", "error"),
    [
        pytest.param(BOT, (), HOLD, NotPermitted, id="who asked"),
        pytest.param(CAT, (), HOLD, NotPermitted, id="without the right"),
        pytest.param(ANN, (ANN,), HOLD, NotPermitted, id="who typed of it"),
        pytest.param(ANN, (), HOLD.replace(approvers=("ben",)), NotPermitted, id="not named"),
        pytest.param(ANN, (), HOLD.replace(approvers=("agent",)), NotPermitted, id="of no kind"),
    ],
)
@pytest.mark.parametrize("approve", [True, False])
def test_who_may_not_approve_may_not_deny_either(
    who: Actor, others: tuple[Actor, ...], verdict: Verdict, error: type[Exception], approve: bool
) -> None:
    played = held(*others, verdict=verdict)
    with pytest.raises(error):
        played.decide(who, approve=approve)
    assert played.core.held is not None and played.closed() == []


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("named", [(), ("ann",), ("human",)])
def test_who_is_named_or_of_a_kind_that_is_decides(named: tuple[str, ...]) -> None:
    played = held(verdict=HOLD.replace(approvers=named))
    played.decide(ANN, approve=False)
    assert played.closed() == ["denied"] and played.refusals() == ["gate_refused"]
    assert played.core.inputs.is_empty and played.typed == b"rm x"
    with pytest.raises(NoSuchApproval):
        played.decide(BEN)


@pytest.mark.requirement("A8")
def test_as_many_must_approve_as_are_asked_for_each_once() -> None:
    played = held(verdict=HOLD.replace(quorum=2))
    played.decide(ANN)
    played.decide(ANN)
    assert played.core.held is not None and played.closed() == ["pending", "pending"]
    played.decide(BEN)
    assert played.closed()[-1] == "approved"
    assert played.core.inputs.unjudged is not None


Takes = Callable[[Played], object]


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("take", "code"),
    [
        (lambda p: p.handle(ev.SeizeAsked(ANN.id, NOW, "")), "turn_held"),
        (lambda p: p.handle(ev.HaltAsked(ANN.id, NOW, "")), "session_halted"),
        (lambda p: p.handle(ev.LeaseLost(HOST_ACTOR, NOW, "gone")), "fenced"),
        (lambda p: p.type(b"\x03"), "gate_refused"),
        (
            lambda p: p.handle(ev.TimePassed(HOST_ACTOR, NOW + APPROVAL_LIFE_S)),
            "gate_refused",
        ),
        (
            lambda p: p.handle(
                ev.TurnStep(BOT.id, NOW, turn.HandOff(BOT.id, ANN.id, NOW, "yours"))
            ),
            "turn_held",
        ),
    ],
    ids=["seize", "halt", "fence", "interrupt", "time", "hand-off"],
)
def test_what_takes_a_held_line_away_withdraws_its_approval(take: Takes, code: str) -> None:
    played = held()
    take(played)
    assert played.refusals() == [code]
    assert played.closed() in (["withdrawn"], ["expired"])
    assert played.core.held is None and played.core.inputs.gated is None
    assert not played.typed.endswith(b"\r")
    with pytest.raises((NoSuchApproval, Fenced)):
        played.decide(ANN)


@pytest.mark.requirement("A8")
def test_an_actor_that_loses_the_right_to_input_loses_what_waits() -> None:
    played = held()
    played.authority.set(
        Envelope(BOT.id, ALL, tuple(sorted(ROLES["read"])), granted_by=ANN.id), now=NOW, live=()
    )
    played.handle(ev.AuthorityChanged(ANN.id, NOW))
    assert played.refusals() == ["not_permitted"] or played.refusals() == ["turn_held"]
    assert played.core.held is None and played.closed() == ["withdrawn"]


@pytest.mark.requirement("A8")
def test_an_actor_that_leaves_can_still_be_approved_until_another_writes() -> None:
    played = held()
    played.handle(ev.ActorDisconnected(BOT.id, NOW))
    assert played.core.turn.holder is None and played.core.held is not None
    played.type(b"ls", ANN)
    assert played.core.held is None and played.refusals() == ["turn_held"]
    assert played.typed == b"rm xls"


@pytest.mark.requirement("A8")
def test_more_than_can_be_kept_is_refused_and_not_held() -> None:
    played = Played()
    played.type(b"rm x\r")
    effects = played.judged(HOLD, text="x" * (APPROVAL_TEXT_MAX_BYTES + 1))
    assert played.core.held is None
    (refused,) = [each for each in effects if isinstance(each, do.RefuseInputs)]
    assert isinstance(refused.error, LimitReached)


@pytest.mark.requirement("A8")
def test_what_waits_is_carried_over_to_the_next_daemon() -> None:
    played = held()
    kept = played.core.gate_kept()
    assert kept is not None
    carried = SavedGate.unpack(kept.pack())
    assert carried == kept and isinstance(carried, Record)
    after = Played(carried, played.core.inputs._in_custody)
    assert after.core.held == played.core.held
    after.core.turn.handle(turn.WroteStep(BOT.id, NOW))
    after.decide(ANN)
    after.judged(ALLOWED)
    assert after.typed == b"\r" and after.core.inputs.is_empty


@pytest.mark.requirement("A8")
def test_what_is_no_line_is_held_and_decided_in_the_same_way() -> None:
    played = Played()
    effect = an_effect(BOT.id).replace(kind=EffectKind.END)
    expires = NOW + APPROVAL_LIFE_S
    played.handle(ev.EffectHeld(BOT.id, NOW, "a1b2c3d4", effect, HOLD, expires, 0))
    assert played.core.held is None  # no line waits
    with pytest.raises(NotPermitted):
        played.decide(BOT)
    played.decide(ANN)
    assert played.closed() == ["approved"] and played.refusals() == []


def asking(kind: str, actor: Actor, passed: ev.Passed | None) -> ev.SessionEvent:
    """What no policy was asked about, unless `passed` says so."""
    if kind == "signal":
        return ev.SignalAsked(actor.id, NOW, OPERATOR, 2, passed)
    if kind == "resize":
        return ev.SizeAsked(actor.id, NOW, OPERATOR, Size(90, 30), passed=passed)
    return ev.EndAsked(actor.id, NOW, passed)


JUDGED_AS = {
    "signal": (EffectKind.SIGNAL, "SIGINT"),
    "resize": (EffectKind.SIGNAL, "WINCH"),
    "end": (EffectKind.END, ""),
}


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("asked", JUDGED_AS)
def test_a_handler_that_asks_no_policy_gets_nothing_done(asked: str) -> None:
    played = Played()
    played.core._resize_runs = lambda: True
    kind, text = JUDGED_AS[asked]
    effect = an_effect(ANN.id, text=text).replace(kind=kind)
    elsewhere = SessionId.of_key(b"x" * 32)
    others = [
        None,
        ev.Passed(effect, HOLD),
        ev.Passed(effect.replace(kind=EffectKind.LINE), ALLOWED),
        ev.Passed(effect.replace(text="SIGKILL"), ALLOWED),
        ev.Passed(effect.replace(actor=BOT.id), ALLOWED),
        ev.Passed(effect.replace(session=elsewhere), ALLOWED),
    ]
    before = played.core.turn.kept()
    for passed in others:
        with pytest.raises(GateRefused):
            played.handle(asking(asked, ANN, passed))
    assert played.done == [] and played.core.turn.kept() == before
    assert played.handle(asking(asked, ANN, ev.Passed(effect, ALLOWED)))


@pytest.mark.requirement("A8")
def test_without_a_policy_and_for_the_host_itself_nothing_need_be_asked() -> None:
    played = Played()
    assert played.handle(ev.SizeAsked(ANN.id, NOW, OPERATOR, Size(90, 30))), "it runs nothing"
    assert played.handle(ev.EndAsked(HOST_ACTOR, NOW)) == [do.EndTree()]
    free = SessionMachine(SESSION, (), Size(80, 24), played.authority, TurnMachine(), now=NOW)
    assert do.SendSignal(2) in free.handle(ev.SignalAsked(ANN.id, NOW, OPERATOR, 2))
    assert free.handle(ev.EndAsked(ANN.id, NOW)) == [do.EndTree()]
