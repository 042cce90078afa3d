"""A move, step by step (N1). That no order of steps goes wrong is shown by
`tests/simulation/test_moves.py`; here it can be read."""

from __future__ import annotations

import pytest

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import SavedSource, SavedTarget, SourceMove, TargetMove
from holdfast.core.continuity.move_events import MoveNote
from holdfast.core.continuity.move_table import (
    PHASES,
    SOURCE_TRANSITIONS,
    TARGET_TRANSITIONS,
    MovePhase,
    SourceState,
    Superposition,
    TargetState,
    phase_of,
    superposition_of,
)
from holdfast.model.ids import OperatorId
from holdfast.model.limits import (
    MOVE_ASK_S,
    MOVE_CUTOVER_S,
    MOVE_HELD_BYTES,
    MOVE_HELD_INPUTS,
    MOVE_SILENCE_S,
    MOVE_SNAPSHOT_S,
)

ANN = OperatorId("a" * 32)


def held(seq: int, data: bytes = b"x") -> ev.HeldInput:
    return ev.HeldInput("ann", ANN, seq, data)


def note(what: MoveNote, now: float = 0.0) -> ev.Noted:
    return ev.Noted(now, what)


def source_in(state: SourceState) -> SourceMove:
    """By the way that leads there; input 1 was held meanwhile."""
    move = SourceMove(4, "theirs")
    move.begin(0.0)
    move.handle(ev.InputCame(0.0, held(1)))
    steps: list[ev.MoveEvent] = [
        ev.ImageTaken(0.0),
        note(MoveNote.RESTORING),
        note(MoveNote.RESTORED),
        note(MoveNote.PRIMED),
    ]
    for step in steps:
        if move.state is state:
            break
        move.handle(step)
    assert move.state is state
    return move


def target_in(state: TargetState) -> TargetMove:
    move = TargetMove(4, "theirs")
    move.begin(0.0)
    steps: list[ev.MoveEvent] = [
        ev.ImageArrived(0.0),
        ev.TreeRestored(0.0),
        ev.RestArrived(0.0, (held(1), held(2))),
        ev.RecordIs(0.0, 4, "mine", "theirs"),
        ev.Claimed(0.0, 5),
    ]
    for step in steps:
        if move.state is state:
            break
        move.handle(step)
    assert move.state is state
    return move


def test_the_source_of_a_move_that_goes_well() -> None:
    move = SourceMove(4, "theirs")
    assert move.begin(10.0) == [ev.TakeImage()]
    assert move.handle(ev.InputCame(10.1, held(7))) == []
    assert move.handle(ev.ImageTaken(10.2)) == [ev.SendImage()]
    assert move.handle(note(MoveNote.RESTORING, 10.3)) == []
    assert move.handle(note(MoveNote.RESTORED, 10.4)) == [ev.StopTree(), ev.SendRest((held(7),))]
    assert move.handle(note(MoveNote.PRIMED, 10.5)) == [ev.ReleaseLease("theirs")]
    released = move.handle(ev.LeaseReleased(10.6))
    assert released == [ev.Tell(MoveNote.RELEASED), ev.LookAtRecord()]
    assert move.handle(ev.RecordIs(10.7, 4, "mine", "theirs", ours=True)) == []
    assert move.handle(ev.RecordIs(10.8, 5, "theirs")) == [ev.DisposeOfTree(5)]
    move.handle(ev.Disposed(10.9))
    assert move.state is SourceState.MOVED and move.is_over and move.wakes_at() is None


def test_the_target_of_a_move_that_goes_well() -> None:
    move = TargetMove(4, "theirs")
    assert move.begin(10.0) == []
    assert move.handle(ev.ImageArrived(10.1)) == [ev.Tell(MoveNote.RESTORING), ev.RestoreTree()]
    assert move.handle(ev.TreeRestored(10.2)) == [ev.Tell(MoveNote.RESTORED)]
    assert move.handle(ev.RestArrived(10.3, (held(7),))) == [ev.Tell(MoveNote.PRIMED)]
    assert move.handle(note(MoveNote.RELEASED, 10.4)) == [ev.LookAtRecord()]
    assert move.handle(ev.RecordIs(10.5, 4, "mine", "theirs")) == [ev.ClaimLease(4)]
    assert move.handle(ev.Claimed(10.6, 5)) == [ev.AdoptEpoch(5), ev.DeliverHeld((held(7),))]
    assert move.handle(ev.Delivered(10.7)) == [ev.LiveHere()]
    assert move.state is TargetState.LIVE and move.is_over


@pytest.mark.parametrize(
    "state",
    [SourceState.SNAPSHOT, SourceState.TRANSFER, SourceState.RESTORE, SourceState.REPLAY],
)
def test_before_the_release_every_failure_ends_with_the_source_running_on(
    state: SourceState,
) -> None:
    ran_on = [
        ev.RunOnHere(4, "no room"),
        ev.DeliverHeld((held(1),)),
        ev.Tell(MoveNote.CALLED_OFF, "no room"),
    ]
    assert source_in(state).handle(ev.MoveFailed(1.0, "no room")) == ran_on
    assert source_in(state).handle(ev.Noted(1.0, MoveNote.FAILED, "no room")) == ran_on
    assert source_in(state).handle(ev.FencedBeforeRelease(1.0, "no room")) == ran_on
    move = source_in(state)
    at = move.wakes_at()
    assert at is not None
    assert move.handle(ev.MoveTick(at - 0.1)) == []
    (ran, *_) = move.handle(ev.MoveTick(at))
    assert isinstance(ran, ev.RunOnHere) and state in ran.reason
    assert move.state is SourceState.ROLLED_BACK


def test_progress_keeps_a_long_transfer_alive() -> None:
    move = source_in(SourceState.TRANSFER)
    for moment in range(10):
        move.handle(ev.Progress(moment * MOVE_SILENCE_S * 0.9))
        assert move.handle(ev.MoveTick(moment * MOVE_SILENCE_S * 0.9 + 1)) == []
    assert move.state is SourceState.TRANSFER


def test_a_silent_target_loses_the_session_only_by_the_record() -> None:
    move = source_in(SourceState.CUTOVER)
    move.handle(ev.LeaseReleased(0.0))
    move.handle(ev.RecordIs(0.0, 4, "mine", "theirs", ours=True))
    assert move.handle(ev.MoveTick(MOVE_CUTOVER_S)) == [ev.ReclaimLease(4)]
    # Whatever it says now:
    assert move.handle(note(MoveNote.PRIMED)) == []
    assert move.handle(note(MoveNote.FAILED)) == []
    ran = move.handle(ev.Reclaimed(11.0, 5))
    assert [type(each) for each in ran] == [ev.RunOnHere, ev.DeliverHeld, ev.Tell]
    assert ran[0] == ev.RunOnHere(5, move.reason)


def test_a_source_that_is_too_late_disposes_of_its_tree() -> None:
    move = source_in(SourceState.CUTOVER)
    move.handle(ev.LeaseReleased(0.0))
    move.handle(ev.MoveTick(MOVE_CUTOVER_S))
    assert move.handle(ev.ReclaimOusted(11.0)) == [ev.DisposeOfTree(5)]


def test_nothing_is_taken_back_before_the_release_is_certain() -> None:
    move = source_in(SourceState.CUTOVER)
    assert move.handle(ev.MoveTick(MOVE_CUTOVER_S)) == []
    assert move.state is SourceState.CUTOVER
    effects = move.handle(ev.LeaseReleased(20.0))
    assert effects[-1] == ev.ReclaimLease(4)


def test_a_source_whose_machine_restarted_leaves_the_session_to_the_target() -> None:
    move = SourceMove.of(source_in(SourceState.CUTOVER).kept())
    assert move.handle(ev.Recovered(0.0, tree=False)) == [ev.ReleaseLease("theirs")]
    move.handle(ev.LeaseReleased(0.0))
    move.handle(ev.RecordIs(0.0, 4, "mine", "theirs", ours=True))
    assert move.handle(ev.MoveTick(1e9)) == [ev.LookAtRecord()]
    assert move.handle(note(MoveNote.FAILED)) == []
    assert move.state is SourceState.CUTOVER


def test_a_source_without_a_tree_has_lost_the_session_if_the_target_has_none_either() -> None:
    move = SourceMove.of(source_in(SourceState.TRANSFER).kept())
    assert move.handle(ev.Recovered(0.0, tree=False)) == [ev.CloseAsLost()]
    assert move.state is SourceState.LOST


def test_a_daemon_that_died_before_the_release_lets_the_next_one_run_it_on() -> None:
    move = SourceMove.of(source_in(SourceState.REPLAY).kept())
    (ran, delivered, told) = move.handle(ev.Recovered(0.0, tree=True))
    assert isinstance(ran, ev.RunOnHere)
    assert delivered == ev.DeliverHeld(())  # nobody was told that these were safe
    assert told == ev.Tell(MoveNote.CALLED_OFF, move.reason)


def test_a_ready_target_outlives_silence_and_asks() -> None:
    move = target_in(TargetState.PRIMED)
    for moment in range(1, 100):
        effects = move.handle(ev.MoveTick(moment * MOVE_ASK_S))
        assert effects == [ev.Tell(MoveNote.ASKS), ev.LookAtRecord()]
        move.handle(ev.RecordIs(moment * MOVE_ASK_S, 4, "mine"))
    assert move.state is TargetState.PRIMED
    assert move.handle(note(MoveNote.CALLED_OFF)) == [ev.Discard("")]


def test_a_target_that_is_not_ready_is_given_up_in_silence() -> None:
    for state in (TargetState.RECEIVING, TargetState.RESTORING, TargetState.RESTORED):
        move = target_in(state)
        (told, discarded) = move.handle(ev.MoveTick(MOVE_SNAPSHOT_S + MOVE_SILENCE_S))
        assert isinstance(told, ev.Tell) and told.note is MoveNote.FAILED
        assert isinstance(discarded, ev.Discard)


def test_a_target_does_not_claim_what_is_released_to_another() -> None:
    move = target_in(TargetState.PRIMED)
    assert move.handle(ev.RecordIs(0.0, 4, "mine", "somebody else's")) == []
    assert move.handle(ev.RecordIs(0.0, 5, "somebody else's")) == [
        ev.Discard("the session lives elsewhere")
    ]


def test_a_claim_is_settled_by_the_record_alone() -> None:
    move = target_in(TargetState.CLAIMING)
    assert move.handle(note(MoveNote.CALLED_OFF)) == []
    assert move.handle(ev.MoveTick(1e9)) == []
    assert move.handle(ev.MoveFailed(0.0, "whatever")) == []
    assert move.state is TargetState.CLAIMING
    assert move.handle(ev.ClaimOusted(0.0)) == [ev.Discard("the source took the session back")]


def test_a_target_whose_machine_restarted_restores_again_before_it_claims() -> None:
    move = TargetMove.of(target_in(TargetState.PRIMED).kept())
    assert move.handle(ev.Recovered(0.0, tree=False)) == [ev.RestoreTree()]
    assert move.handle(ev.RecordIs(0.0, 4, "mine", "theirs")) == []
    assert move.handle(ev.TreeRestored(0.0)) == [ev.LookAtRecord()]
    assert move.handle(ev.RecordIs(0.0, 4, "mine", "theirs")) == [ev.ClaimLease(4)]


def test_held_inputs_survive_the_daemon_of_the_target() -> None:
    move = TargetMove.of(target_in(TargetState.DELIVERING).kept())
    assert move.handle(ev.Recovered(0.0, tree=True)) == [
        ev.AdoptEpoch(5),
        ev.DeliverHeld((held(1), held(2))),
    ]


def test_what_is_sent_again_while_it_is_held_waits_once() -> None:
    move = source_in(SourceState.TRANSFER)
    for again in (held(1), held(2), held(1), held(2)):
        assert move.handle(ev.InputCame(0.0, again)) == []
    assert move.held == (held(1), held(2))


def test_what_is_held_is_bounded_and_more_is_refused() -> None:
    move = SourceMove(4, "theirs")
    move.begin(0.0)
    for seq in range(1, MOVE_HELD_INPUTS + 1):
        assert move.handle(ev.InputCame(0.0, held(seq))) == []
    (refused,) = move.handle(ev.InputCame(0.0, held(MOVE_HELD_INPUTS + 1)))
    assert isinstance(refused, ev.AnswerInput) and "limit" in refused.reason
    large = SourceMove(4, "theirs")
    large.begin(0.0)
    (refused,) = large.handle(ev.InputCame(0.0, held(1, bytes(MOVE_HELD_BYTES + 1))))
    assert isinstance(refused, ev.AnswerInput)


def test_input_that_comes_after_the_rest_was_sent_is_delivered_only_if_the_source_runs_on() -> None:
    move = source_in(SourceState.REPLAY)
    move.handle(ev.InputCame(0.0, held(2)))
    (_, delivered, _) = move.handle(ev.MoveFailed(0.0, "cut"))
    assert delivered == ev.DeliverHeld((held(1), held(2)))
    move = source_in(SourceState.CUTOVER)
    move.handle(ev.InputCame(0.0, held(2)))
    move.handle(ev.LeaseReleased(0.0))
    assert move.handle(ev.RecordIs(0.0, 5, "theirs")) == [ev.DisposeOfTree(5)]
    assert move.held == ()


def test_each_state_of_a_move_says_where_the_session_is() -> None:
    assert set(PHASES) == {*SourceState, *TargetState}
    assert {phase_of(state) for state in SourceState} == {*MovePhase, None}
    assert superposition_of(None) is Superposition.PRE_MIGRATION
    assert {superposition_of(state) for state in PHASES} == set(Superposition)
    for state in PHASES:
        over = superposition_of(state) is Superposition.SETTLED
        assert over == (phase_of(state) is None)


def test_every_state_is_reached_and_only_final_ones_have_no_way_out() -> None:
    for states, table in (
        (set(SourceState), SOURCE_TRANSITIONS),
        (set(TargetState), TARGET_TRANSITIONS),
    ):
        left = {state for state, _ in table}
        assert set(table.values()) | left == states
        assert all(phase_of(state) is None for state in states - left)


def test_what_is_kept_is_plain_data() -> None:
    source = source_in(SourceState.REPLAY).kept()
    assert SavedSource.unpack(source.pack()) == source
    target = target_in(TargetState.PRIMED).kept()
    assert SavedTarget.unpack(target.pack()) == target
    assert TargetMove.of(target).held == (held(1), held(2))
