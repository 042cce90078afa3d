"""The turn, told as short stories: who does what, and who may write then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.core.turn import events as ev
from holdfast.core.turn import policy as turn_policy
from holdfast.core.turn.machine import SavedTurn, TurnMachine
from holdfast.core.turn.policy import Waiting
from holdfast.core.turn.table import TRANSITIONS, TurnPhase, TurnStepKind
from holdfast.model.errors import (
    InvalidArgument,
    LimitReached,
    TurnHeld,
    TurnNotHeld,
)
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import (
    TURN_AWAY_S,
    TURN_HOLD_MAX_S,
    TURN_IDLE_S,
    TURN_NEVER_LONGER_S,
    TURN_PAUSE_S,
    TURN_QUEUE_MAX,
    TURN_TEXT_MAX_CHARS,
)

ANN, BOT, CAT = (ActorId.of_key(name * 32) for name in (b"a", b"b", b"c"))
NAMES = {ANN: "ann", BOT: "bot", CAT: "cat"}
WALKS = Path(__file__).resolve().parents[2] / "docs/walks.md"


def a_turn(policy: str = "queue") -> TurnMachine:
    return TurnMachine(policy, names=NAMES.__getitem__, session="web")


def moved(outcomes: list[ev.TurnOutcome]) -> ev.Moved:
    (only,) = outcomes
    assert isinstance(only, ev.Moved)
    return only


def test_the_first_to_write_has_the_turn_and_others_are_told_whom_to_ask() -> None:
    turn = a_turn()
    assert moved(turn.handle(ev.WroteStep(ANN, 1.0))).holder == ANN
    assert turn.handle(ev.WroteStep(ANN, 2.0)) == []
    with pytest.raises(TurnHeld, match="ann holds the turn") as refused:
        turn.handle(ev.WroteStep(BOT, 2.0))
    assert refused.value.hint == "`hold turn web request` asks for it"
    assert refused.value.retryable
    assert turn.queue == (), "a refused write does not wait"


def test_a_request_waits_and_the_holder_grants_it() -> None:
    turn = a_turn()
    turn.handle(ev.RequestStep(ANN, 1.0))
    assert turn.handle(ev.RequestStep(BOT, 2.0, "deploy?")) == [ev.Asked(BOT, ANN, "deploy?")]
    assert turn.state is TurnPhase.CONTESTED
    assert turn.handle(ev.GrantStep(ANN, BOT, 3.0)) == [
        ev.Moved(TurnStepKind.GRANT, ANN, BOT, 3.0, by=ANN)
    ]
    assert turn.may_write(BOT)
    assert not turn.may_write(ANN)


def test_a_grant_without_a_name_goes_to_the_first_who_waits() -> None:
    turn = a_turn()
    for who in (ANN, CAT, BOT):
        turn.handle(ev.RequestStep(who, 1.0))
    assert moved(turn.handle(ev.GrantStep(ANN, None, 2.0))).holder == CAT


def test_only_the_holder_passes_the_turn_on() -> None:
    turn = a_turn()
    free = [ev.YieldStep(BOT, 1.0), ev.HandOff(BOT, ANN, 1.0), ev.RevokeStep(BOT, 1.0)]
    for event in free:
        with pytest.raises(TurnNotHeld):
            turn.handle(event)
    turn.handle(ev.RequestStep(ANN, 1.0))
    turn.handle(ev.RequestStep(CAT, 1.0))
    held = [ev.YieldStep(BOT, 1.0), ev.GrantStep(BOT, CAT, 1.0), ev.BlindStep(BOT, True)]
    for other in held:
        with pytest.raises(TurnNotHeld, match="bot does not hold the turn; ann does"):
            turn.handle(other)


def test_the_turn_is_granted_only_to_one_who_waits_but_handed_to_anybody() -> None:
    turn = a_turn()
    turn.handle(ev.RequestStep(ANN, 1.0))
    with pytest.raises(InvalidArgument, match="nobody waits"):
        turn.handle(ev.GrantStep(ANN, BOT, 1.0))
    turn.handle(ev.RequestStep(CAT, 1.0))
    with pytest.raises(InvalidArgument, match="bot does not wait"):
        turn.handle(ev.GrantStep(ANN, BOT, 1.0))
    assert moved(turn.handle(ev.HandOff(ANN, BOT, 2.0, "yours"))).reason == "yours"
    assert turn.holder == BOT
    assert [one.actor for one in turn.queue] == [CAT]


def test_a_repeated_request_keeps_its_place_and_is_told_only_when_it_says_something_new() -> None:
    turn = a_turn()
    for who in (ANN, BOT, CAT):
        turn.handle(ev.RequestStep(who, 1.0))
    assert turn.handle(ev.RequestStep(BOT, 5.0)) == []
    assert turn.handle(ev.RequestStep(BOT, 5.0, "now!")) == [ev.Asked(BOT, ANN, "now!")]
    assert turn.queue[0] == Waiting(BOT, 1.0, "now!")


@pytest.mark.requirement("A5")
def test_a_seized_turn_stays_through_pauses_requests_and_a_lost_connection() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.WroteStep(BOT, 1.0))
    assert moved(turn.handle(ev.SeizeTurn(ANN, 2.0, "it loops"))) == ev.Moved(
        TurnStepKind.SEIZE, BOT, ANN, 2.0, "it loops", ANN
    )
    assert turn.wakes_at() is None
    turn.handle(ev.LeaveStep(ANN, 3.0))
    turn.handle(ev.RequestStep(BOT, 1e9))
    turn.handle(ev.TurnTick(2e9))
    with pytest.raises(TurnHeld, match="ann holds the turn by seizure"):
        turn.handle(ev.WroteStep(BOT, 2e9))
    assert turn.holder == ANN
    turn.handle(ev.YieldStep(ANN, 2e9))
    assert turn.holder == BOT
    assert not turn.seized


def test_a_seized_turn_can_be_seized_again_and_revoked() -> None:
    turn = a_turn()
    turn.handle(ev.SeizeTurn(ANN, 1.0))
    turn.handle(ev.SeizeTurn(BOT, 2.0))
    assert turn.holder == BOT
    assert moved(turn.handle(ev.RevokeStep(HOST_ACTOR, 3.0, "actor revoked"))).holder is None


@pytest.mark.requirement("A5")
def test_a_policy_that_fails_cannot_keep_anybody_from_seizing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        name = "broken"

        def idle_limit_s(self, waiting: bool, away: bool) -> float:
            raise RuntimeError

        def next(self, queue: tuple[Waiting, ...]) -> ActorId:
            raise RuntimeError

    monkeypatch.setitem(turn_policy.POLICIES, "broken", Broken())
    turn = a_turn("broken")
    for who in (ANN, BOT, CAT):
        turn.handle(ev.SeizeTurn(who, 1.0))
        assert turn.holder == who
        assert turn.wakes_at() is None


def test_a_policy_that_names_a_stranger_does_not_leave_the_turn_lying(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stranger(turn_policy.Queue):
        name = "stranger"

        def next(self, queue: tuple[Waiting, ...]) -> ActorId:
            return ANN

    monkeypatch.setitem(turn_policy.POLICIES, "stranger", Stranger())
    turn = a_turn("stranger")
    for who in (ANN, CAT, BOT):
        turn.handle(ev.RequestStep(who, 1.0))
    assert moved(turn.handle(ev.YieldStep(ANN, 2.0))).holder == CAT


def test_leaving_gives_up_a_hold_by_writing_but_not_one_asked_for() -> None:
    turn = a_turn()
    turn.handle(ev.WroteStep(ANN, 1.0))
    assert moved(turn.handle(ev.LeaveStep(ANN, 2.0))) == ev.Moved(
        TurnStepKind.LEAVE, ANN, None, 2.0
    )
    turn.handle(ev.RequestStep(ANN, 3.0))
    assert turn.handle(ev.LeaveStep(ANN, 4.0)) == []
    assert turn.holder == ANN
    assert moved(turn.handle(ev.TurnTick(3.0 + TURN_IDLE_S))).step is TurnStepKind.EXPIRE


def test_what_was_asked_for_expressly_stays_so_when_a_key_asks_again() -> None:
    turn = a_turn()
    for explicit in (True, False):
        turn.handle(ev.RequestStep(ANN, 1.0, explicit=explicit))
        turn.handle(ev.RequestStep(BOT, 1.0, explicit=explicit))
    assert turn.explicit
    assert turn.queue[0].explicit


def test_a_request_by_key_ends_with_its_connection_one_by_command_does_not() -> None:
    turn = a_turn()
    turn.handle(ev.RequestStep(ANN, 1.0))
    turn.handle(ev.RequestStep(BOT, 1.0, explicit=False))
    turn.handle(ev.RequestStep(CAT, 1.0, explicit=True))
    assert turn.handle(ev.LeaveStep(BOT, 2.0)) == [ev.Withdrawn(BOT)]
    assert turn.handle(ev.LeaveStep(CAT, 2.0)) == []
    turn.handle(ev.YieldStep(ANN, 3.0))
    assert (turn.holder, turn.away) == (CAT, True)
    turn.handle(ev.Return(CAT))
    assert not turn.away


@pytest.mark.requirement("A4")
@pytest.mark.parametrize(
    ("policy", "waiting", "limit"),
    [
        ("queue", False, TURN_IDLE_S),
        ("queue", True, TURN_IDLE_S),
        ("ask-holder", False, TURN_NEVER_LONGER_S),
        ("ask-holder", True, TURN_NEVER_LONGER_S),
        ("free-when-idle", False, TURN_IDLE_S),
        ("free-when-idle", True, TURN_PAUSE_S),
    ],
)
def test_an_idle_holder_loses_the_turn_when_the_policy_says(
    policy: str, waiting: bool, limit: float
) -> None:
    turn = a_turn(policy)
    turn.handle(ev.RequestStep(ANN, 90.0))
    turn.handle(ev.WroteStep(ANN, 100.0))
    if waiting:
        turn.handle(ev.RequestStep(BOT, 100.0))
    assert turn.wakes_at() == 100.0 + limit
    assert turn.handle(ev.TurnTick(100.0 + limit - 0.01)) == []
    assert moved(turn.handle(ev.TurnTick(100.0 + limit))).holder == (BOT if waiting else None)


def test_a_holder_that_left_is_not_asked_for_long() -> None:
    turn = a_turn("ask-holder")
    turn.handle(ev.RequestStep(ANN, 0.0))
    turn.handle(ev.RequestStep(BOT, 1.0))
    turn.handle(ev.LeaveStep(ANN, 2.0))
    assert turn.wakes_at() == TURN_AWAY_S
    turn.handle(ev.Return(ANN))
    assert turn.wakes_at() == TURN_NEVER_LONGER_S


def test_free_when_idle_gives_a_request_the_turn_at_once_after_a_pause() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 0.0))
    turn.handle(ev.WroteStep(ANN, 10.0))
    assert turn.handle(ev.RequestStep(BOT, 10.0 + TURN_PAUSE_S)) == [
        ev.Moved(TurnStepKind.REQUEST, ANN, BOT, 10.0 + TURN_PAUSE_S, "idle", by=BOT)
    ]


def test_writing_takes_an_idle_hold_only_if_it_was_not_asked_for_and_nobody_waits() -> None:
    late = 10.0 + TURN_PAUSE_S
    turn = a_turn("free-when-idle")
    turn.handle(ev.WroteStep(ANN, 10.0))
    with pytest.raises(TurnHeld):
        turn.handle(ev.WroteStep(BOT, late - 0.01))
    taken = moved(turn.handle(ev.WroteStep(BOT, late)))
    assert (taken.holder, taken.reason) == (BOT, "idle")
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 10.0))
    with pytest.raises(TurnHeld):
        turn.handle(ev.WroteStep(BOT, late))
    turn = a_turn("free-when-idle")
    turn.handle(ev.WroteStep(ANN, 10.0))
    turn.handle(ev.RequestStep(CAT, 10.0))
    with pytest.raises(TurnHeld):
        turn.handle(ev.WroteStep(BOT, late))


def test_a_clock_set_back_neither_takes_the_turn_nor_keeps_it_for_ever() -> None:
    turn = a_turn()
    turn.handle(ev.RequestStep(ANN, 1e6))
    assert turn.handle(ev.TurnTick(5.0)) == []
    assert turn.wakes_at() == 5.0 + TURN_IDLE_S
    assert turn.since == 5.0


def test_a_blind_turn_ends_when_the_turn_moves() -> None:
    turn = a_turn()
    turn.handle(ev.RequestStep(ANN, 1.0))
    assert turn.handle(ev.BlindStep(ANN, True)) == [ev.Blinded(ANN, True)]
    assert turn.handle(ev.BlindStep(ANN, True)) == []
    turn.handle(ev.SeizeTurn(BOT, 2.0))
    assert not turn.blind


def test_a_long_reason_is_cut_and_no_escape_sequence_gets_into_it() -> None:
    turn = a_turn()
    reason = moved(turn.handle(ev.SeizeTurn(ANN, 1.0, "\x1b[2J" + "y" * 999))).reason
    assert len(reason) == TURN_TEXT_MAX_CHARS
    assert reason.isprintable()


def test_a_full_queue_refuses_and_says_so() -> None:
    turn = a_turn()
    many = [ActorId.of_key(n.to_bytes(32)) for n in range(TURN_QUEUE_MAX + 2)]
    for who in many[:-1]:
        turn.handle(ev.RequestStep(who, 1.0))
    before = turn.kept()
    with pytest.raises(LimitReached):
        turn.handle(ev.RequestStep(many[-1], 1.0))
    assert turn.kept() == before


def test_a_kept_turn_whose_policy_is_gone_is_carried_on_by_the_default() -> None:
    turn = a_turn()
    turn.handle(ev.SeizeTurn(ANN, 1.0))
    kept = SavedTurn.unpack({**turn.kept().pack(), "policy": "was plugged in"})
    carried = TurnMachine.of(kept)
    assert (carried.holder, carried.seized) == (ANN, True)
    assert carried.policy.name == turn_policy.DEFAULT_POLICY


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidArgument) as refused:
        turn_policy.policy("coin toss")
    assert refused.value.hint == "there are: ask-holder, free-when-idle, queue"
    with pytest.raises(InvalidArgument, match="already"):
        turn_policy.register(turn_policy.Queue())


def test_every_transition_of_the_table_is_drawn() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", WALKS.read_text(), re.MULTILINE)
    arrows = {(a, step, b) for a, b, steps in drawn for step in steps.split(", ")}
    table = {(a, step, b) for (a, step), after in TRANSITIONS.items() for b in after}
    assert table <= {(a, step, b) for a, step, b in arrows}


@pytest.mark.requirement("A4")
def test_a_declared_hold_outlasts_pauses_and_ends_by_itself() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 0.0, hold_s=100.0))
    turn.handle(ev.RequestStep(BOT, 10.0))
    turn.handle(ev.LeaveStep(ANN, 11.0))
    assert turn.wakes_at() == 100.0
    assert turn.handle(ev.TurnTick(99.9)) == []
    assert moved(turn.handle(ev.TurnTick(100.0))).holder == BOT
    assert turn.wakes_at() == 100.0 + TURN_IDLE_S, "the next holder declared nothing"


def test_a_hold_declared_while_waiting_counts_from_when_the_turn_comes() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 0.0))
    turn.handle(ev.RequestStep(BOT, 1.0, hold_s=100.0))
    turn.handle(ev.RequestStep(CAT, 2.0))
    turn.handle(ev.YieldStep(ANN, 2.5))
    assert (turn.holder, turn.wakes_at()) == (BOT, 102.5)


def test_only_a_holder_renews_and_it_shortens_nothing() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 0.0, hold_s=100.0))
    assert turn.handle(ev.RenewStep(ANN, 10.0, 30.0)) == []
    assert turn.held_until == 100.0
    turn.handle(ev.RenewStep(ANN, 90.0, 30.0))
    assert turn.held_until == 120.0
    with pytest.raises(TurnNotHeld):
        turn.handle(ev.RenewStep(BOT, 91.0, 30.0))
    assert turn.queue == (), "who renews in vain does not wait either"


@pytest.mark.parametrize("hold_s", [-1.0, TURN_HOLD_MAX_S + 1, float("nan"), float("inf")])
def test_a_hold_out_of_range_is_refused_and_changes_nothing(hold_s: float) -> None:
    turn = a_turn()
    for step in (ev.RequestStep(ANN, 0.0, hold_s=hold_s), ev.RenewStep(ANN, 0.0, hold_s)):
        with pytest.raises(InvalidArgument, match="0 to 3600 s"):
            turn.handle(step)
    assert turn.holder is None


@pytest.mark.requirement("A4")
def test_the_holders_own_running_command_counts_as_activity() -> None:
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 0.0))
    turn.handle(ev.CommandStep(ANN, 1.0))
    turn.handle(ev.RequestStep(BOT, 2.0))
    assert turn.handle(ev.TurnTick(TURN_NEVER_LONGER_S - 1)) == []
    turn.handle(ev.CommandStep(None, 600.0))
    assert turn.wakes_at() == 600.0 + TURN_PAUSE_S, "a pause begins when it ends"


def test_a_command_that_runs_counts_only_for_a_holder_that_asked_and_is_here() -> None:
    late = 1.0 + TURN_PAUSE_S
    turn = a_turn("free-when-idle")
    turn.handle(ev.WroteStep(ANN, 1.0))
    turn.handle(ev.CommandStep(ANN, 1.0))
    assert turn.handle(ev.WroteStep(BOT, late)), "others can interrupt what it left running"
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 1.0))
    turn.handle(ev.CommandStep(BOT, 1.0))
    assert moved(turn.handle(ev.RequestStep(CAT, late))).holder == CAT, "it is another's command"
    turn = a_turn("free-when-idle")
    turn.handle(ev.RequestStep(ANN, 1.0))
    turn.handle(ev.CommandStep(ANN, 1.0))
    turn.handle(ev.RequestStep(BOT, 2.0))
    turn.handle(ev.LeaveStep(ANN, 50.0))
    assert turn.wakes_at() == 50.0 + TURN_PAUSE_S
