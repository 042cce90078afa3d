"""A session whose lease is lost takes nothing, from nobody, until it is held again; it can still be
stopped and ended (F2)."""

from __future__ import annotations

import pytest

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.attachments import Seat
from holdfast.core.session import _HANDLERS, SessionMachine, TurnStep
from holdfast.core.session_state import Phase
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.model.actor import Actor, ActorKind, Colour
from holdfast.model.envelope import ALL, ROLES, Envelope
from holdfast.model.errors import Fenced, SessionHalted
from holdfast.model.gate import (
    Contributor,
    EffectKind,
    Outcome,
    Part,
    ProposedEffect,
    Verdict,
)
from holdfast.model.ids import HOST_ACTOR, HOST_OPERATOR, ActorId, OperatorId, SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending

SESSION, KEY = SessionId.of_key(bytes(32)), bytes(range(32))
ANN, HAND = ActorId.of_key(KEY), OperatorId("1" * 32)
NOW = 1000.0
SIGNAL = ProposedEffect(
    SESSION, "build", (), "plain", 1, EffectKind.SIGNAL, ANN,
    (Contributor(ANN, "ann", ActorKind.HUMAN, Part.TRIGGER),), "2",
)  # fmt: skip

ACTS: dict[type[ev.SessionEvent], ev.SessionEvent] = {
    ev.InputOffered: ev.InputOffered(ANN, NOW, HAND, 1, b"x"),
    ev.ChannelOpened: ev.ChannelOpened(ANN, NOW, Seat(HAND, 0, True, False, ANN)),
    ev.SizeAsked: ev.SizeAsked(ANN, NOW, HAND, Size(90, 30)),
    ev.SignalAsked: ev.SignalAsked(ANN, NOW, HAND, 2),
    ev.PolicyAsked: ev.PolicyAsked(ANN, NOW, "queue"),
    ev.SeizeAsked: ev.SeizeAsked(ANN, NOW, "why"),
    ev.ResumeAsked: ev.ResumeAsked(ANN, NOW),
    ev.ForwardAsked: ev.ForwardAsked(ANN, NOW, HAND, 1, 3000),
    ev.RenameAsked: ev.RenameAsked(ANN, NOW, "other"),
    ev.CheckpointAsked: ev.CheckpointAsked(ANN, NOW, ends=False),
    ev.PinAsked: ev.PinAsked(ANN, NOW, True),
    ev.EffectHeld: ev.EffectHeld(
        HOST_ACTOR, NOW, "1", SIGNAL, Verdict(Outcome.HOLD), NOW + 60, offset=0
    ),
    TurnStep: TurnStep(ANN, NOW, turn.RequestStep(ANN, NOW)),
}
# What happens to it, or only stops it.
PASSES = {
    ev.ChannelClosed, ev.ActorDisconnected, ev.HaltAsked, ev.FreezeReported,
    ev.Thawed, ev.AuthorityChanged, ev.EndAsked, ev.MainEnded, ev.LeaseLost, ev.LeaseHeld,
    ev.ForwardLeft, ev.RoomMade, ev.TimePassed, ev.CommandRuns, ev.DetachAsked,
    # The gate: what waited there was refused with the lease, so nothing is typed for these.
    ev.PasteChecked, ev.CommitJudged, ev.CommitFailed, ev.CommitWaits, ev.EffectDropped,
    ev.GatePolicyChanged, ev.CheckpointStored, ev.CheckpointOver, ev.WrittenFromInside,
    ev.MoveSealed,  # which it refuses itself
    ev.DecidedInAnotherLife,
}  # fmt: skip


def a_session() -> SessionMachine:
    ann = Actor(ANN, "ann", ActorKind.HUMAN, KEY, "ann", Colour.RED, 1000, False, 0.0)
    admin = Envelope(ANN, ALL, tuple(sorted(ROLES["admin"])))
    return SessionMachine(SESSION, (), Size(80, 24), Authority([ann], [admin]), TurnMachine())


def a_fenced_one() -> SessionMachine:
    session = a_session()
    assert session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "lapse")) == [
        do.Fence("lapse"),
        do.RecordFence("lapse"),
        do.SaveParcel(),
        do.AnnounceOperators(),
    ]
    return session


def test_every_event_is_either_an_act_or_passes() -> None:
    assert set(ACTS) | PASSES | {ev.ApprovalDecided} == set(_HANDLERS)
    assert not set(ACTS) & PASSES


def test_nothing_is_approved_in_it() -> None:
    session = a_session()
    session.handle(ACTS[ev.EffectHeld])
    session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "lapse"))
    with pytest.raises(Fenced):
        session.handle(ev.ApprovalDecided(ANN, NOW, "1", approve=True, note="", saw=""))


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("kind", ACTS, ids=lambda kind: str(kind.__name__))
def test_what_acts_on_it_is_refused_and_is_possible_again_when_the_lease_is(
    kind: type[ev.SessionEvent],
) -> None:
    session = a_fenced_one()
    with pytest.raises(Fenced):
        session.handle(ACTS[kind])
    assert session.handle(ev.LeaseHeld(HOST_ACTOR, NOW, 2)) == [
        do.Unfence(2),
        do.AnnounceOperators(),
    ]
    session.handle(ACTS[kind])


@pytest.mark.requirement("F2")
def test_a_key_that_was_judged_before_is_not_taken_after() -> None:
    session = a_session()
    for seq in (1, 2, 3):
        session.handle(ev.InputOffered(ANN, NOW, HAND, seq, b"x"))
    first = session.inputs.next(1)
    assert first is not None
    session.inputs.taken(first)
    refused = session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "lapse"))[1]
    assert isinstance(refused, do.RefuseInputs) and isinstance(refused.error, Fenced)
    assert [each.seq for each in refused.inputs] == [2, 3]
    assert session.inputs.next(100) is None and session.inputs.last(HAND) == 1
    with pytest.raises(Fenced):
        session.handle(ev.InputOffered(ANN, NOW, HAND, 2, b"x"))


def test_the_hosts_own_answers_are_input_too() -> None:
    with pytest.raises(Fenced):
        a_fenced_one().handle(
            ev.InputOffered(HOST_ACTOR, NOW, HOST_OPERATOR, 1, b"\x1b[0n", "answer")
        )


def test_a_halt_in_between_stays_when_the_lease_is_back() -> None:
    session = a_fenced_one()
    halt = [do.RecordHalt("", "look at it"), do.SaveParcel(), do.Freeze("")]
    assert session.handle(ev.HaltAsked(ANN, NOW, "look at it")) == halt
    session.handle(ev.LeaseHeld(HOST_ACTOR, NOW, 2))
    assert session.state.is_stopped and not session.state.is_fenced
    with pytest.raises(SessionHalted):
        session.handle(ACTS[ev.InputOffered])


def test_it_can_be_ended_and_does_not_run_again_on_the_way() -> None:
    session = a_fenced_one()
    assert session.handle(ev.EndAsked(ANN, NOW)) == [do.EndTree()]
    assert session.handle(ev.LeaseHeld(HOST_ACTOR, NOW, 2)) == []
    assert session.state.is_fenced
    assert session.handle(ev.MainEnded(HOST_ACTOR, NOW, Ending(signal=9)))
    assert session.state.phase is Phase.ENDED
    assert session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "lapse")) == []


def test_losing_it_twice_and_holding_it_twice_are_once() -> None:
    session = a_fenced_one()
    assert session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "ousted")) == []
    assert session.handle(ev.LeaseHeld(HOST_ACTOR, NOW, 2))
    assert session.handle(ev.LeaseHeld(HOST_ACTOR, NOW, 2)) == []
