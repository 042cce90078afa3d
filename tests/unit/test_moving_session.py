"""What a session takes while its record is on its way to another host: nothing but what time does;
input waits (host/session/executor.py)."""

from __future__ import annotations

import pytest

from holdfast.core import events as ev
from holdfast.core.session import REFUSED_WHEN_MOVING, SessionMachine
from holdfast.core.session_state import Phase
from holdfast.model.errors import CheckpointFailed, SessionMoving
from holdfast.model.ids import HOST_ACTOR
from unit.test_fenced_session import ACTS, ANN, NOW, a_session


def a_moving_one() -> SessionMachine:
    session = a_session()
    session.handle(ev.CheckpointAsked(HOST_ACTOR, NOW, ends=True))
    session.handle(ev.MoveSealed(HOST_ACTOR, NOW))
    assert session.state.phase is Phase.MOVING
    return session


@pytest.mark.parametrize("kind", [each for each in ACTS if each in REFUSED_WHEN_MOVING])
def test_what_somebody_does_to_it_is_refused_for_now(kind: type[ev.SessionEvent]) -> None:
    session = a_moving_one()
    with pytest.raises(SessionMoving) as refused:
        session.handle(ACTS[kind])
    assert refused.value.retryable and session.state.phase is Phase.MOVING


@pytest.mark.parametrize("event", [ev.HaltAsked(ANN, NOW, "why"), ev.EndAsked(ANN, NOW)])
def test_halts_and_ends_too_for_which_tree_they_mean_is_not_known(event: ev.SessionEvent) -> None:
    with pytest.raises(SessionMoving):
        a_moving_one().handle(event)


def test_it_runs_on_when_the_move_has_failed() -> None:
    session = a_moving_one()
    assert session.inputs.paused
    session.handle(ev.CheckpointOver(HOST_ACTOR, NOW))
    assert session.state.phase is Phase.RUNNING and not session.inputs.paused


def test_only_one_that_stands_still_for_its_image_moves() -> None:
    with pytest.raises(CheckpointFailed):
        a_session().handle(ev.MoveSealed(HOST_ACTOR, NOW))
