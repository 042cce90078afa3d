"""The table of what a session is (core.session_state), read row by row."""

from __future__ import annotations

import pytest

from holdfast.core.session_state import CARRIES, RUNNING, Phase, State, StateStep, carried_on

_S = StateStep
FENCED = State(Phase.FENCED, RUNNING)
HALTED = State(Phase.HALTED)


def after(*steps: StateStep, state: State = RUNNING) -> State:
    for step in steps:
        state = state.after(step)
    return state


@pytest.mark.requirement("A5")
def test_a_thaw_does_not_end_a_halt_asked_for_after_the_resume() -> None:
    halted = after(_S.HALT_ASKED, _S.FREEZE_CONFIRMED)
    assert halted == HALTED
    crossed = after(_S.RESUME_ASKED, _S.HALT_ASKED, _S.THAW_CONFIRMED, state=halted)
    assert crossed.phase is Phase.HALTING and crossed.is_halted
    assert after(_S.FREEZE_CONFIRMED, state=crossed) == HALTED


def test_a_resume_ends_a_halt_when_the_kernel_says_so_and_not_before() -> None:
    resuming = after(_S.HALT_ASKED, _S.FREEZE_CONFIRMED, _S.RESUME_ASKED)
    assert resuming.is_halted and resuming.shows_halted
    assert after(_S.THAW_FAILED, state=resuming) == HALTED
    assert after(_S.THAW_CONFIRMED, state=resuming) == RUNNING


def test_a_fence_goes_back_to_what_was_and_a_halt_meanwhile_stays() -> None:
    assert after(_S.LEASE_LOST, _S.LEASE_HELD) == RUNNING
    halted = after(_S.LEASE_LOST, _S.HALT_ASKED, _S.FREEZE_CONFIRMED, _S.LEASE_HELD)
    assert halted == HALTED
    assert after(_S.LEASE_LOST, _S.RESUME_ASKED, state=HALTED).under == HALTED, "refused meanwhile"


def test_what_ends_does_not_run_again() -> None:
    ending = after(_S.LEASE_LOST, _S.END_ASKED, _S.LEASE_HELD)
    assert ending.phase is Phase.ENDING and ending.is_fenced
    assert after(_S.END_ASKED, _S.LEASE_LOST).is_fenced
    assert after(_S.MAIN_ENDED, state=ending) == State(Phase.ENDED)
    assert after(_S.HOST_LOST, state=ending) == State(Phase.LOST)


def test_a_checkpoint_goes_back_to_what_it_was_unless_the_tree_ended_with_it() -> None:
    assert after(_S.CHECKPOINT_ASKED, _S.CHECKPOINT_OVER) == RUNNING
    assert after(_S.CHECKPOINT_ASKED, _S.ENDED_IN_CHECKPOINT) == State(Phase.ASLEEP)
    assert after(_S.CHECKPOINT_ASKED, _S.MAIN_ENDED) == State(Phase.ENDED)
    assert after(_S.CHECKPOINT_ASKED, _S.LEASE_LOST, _S.CHECKPOINT_OVER) == FENCED
    found = carried_on(halted=False, confirmed=False, fenced=False, checkpointing=True)
    assert found.is_checkpointing


@pytest.mark.requirement("A5")
def test_a_halt_during_a_checkpoint_counts_at_once_and_stays() -> None:
    halting = after(_S.CHECKPOINT_ASKED, _S.HALT_ASKED)
    assert halting.is_halted
    assert after(_S.CHECKPOINT_OVER, state=halting) == halting


def test_every_state_that_can_be_reached_takes_every_step() -> None:
    """And the carrying ones, no others, carry a state; none is carried twice."""
    found, new = {RUNNING}, [RUNNING]
    while new:
        state = new.pop()
        for step in StateStep:
            reached = state.after(step)
            if reached not in found:
                found.add(reached)
                new.append(reached)
    assert {state.phase for state in found} == set(Phase)
    for state in found:
        assert (state.phase in CARRIES) == (state.under is not None)
        assert state.under is None or state.under.phase is not state.phase
        assert not (state.under and state.under.is_over)
    assert len(found) == 6 + 5 + 10 + 3  # plain, fenced, ending over both, over


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("fenced", [True, False])
def test_a_new_daemon_finds_what_the_parcel_says(confirmed: bool, fenced: bool) -> None:
    state = carried_on(halted=True, confirmed=confirmed, fenced=fenced)
    assert state.is_halted and state.is_fenced is fenced
    assert (state.under or state).phase is (Phase.HALTED if confirmed else Phase.HALTING)
    assert carried_on(halted=False, confirmed=False, fenced=False) == RUNNING
