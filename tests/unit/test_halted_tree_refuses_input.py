"""A halt asked for while an earlier resume is still being carried out is the later word: input is
refused from that moment on, whatever the kernel reports afterwards and in which order."""

from __future__ import annotations

import pytest

from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.session import SessionMachine
from holdfast.core.turn.machine import TurnMachine
from holdfast.model.actor import Actor, ActorKind, Colour
from holdfast.model.envelope import ALL, ROLES, Envelope
from holdfast.model.errors import SessionHalted
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.size import Size

SESSION, KEY = SessionId.of_key(bytes(32)), bytes(range(32))
ANN, OPERATOR = ActorId.of_key(KEY), OperatorId("1" * 32)
NOW = 1000.0

KEY_PRESS = ev.InputOffered(ANN, NOW, OPERATOR, 1, b"x")
RESUME, HALT = ev.ResumeAsked(ANN, NOW), ev.HaltAsked(ANN, NOW, "wait")
THAWED = ev.Thawed(HOST_ACTOR, NOW)
FROZEN, NOT_FROZEN = (
    ev.FreezeReported(HOST_ACTOR, NOW, True),
    ev.FreezeReported(HOST_ACTOR, NOW, False),
)


def a_session() -> SessionMachine:
    ann = Actor(ANN, "ann", ActorKind.HUMAN, KEY, "ann", Colour.RED, 1000, False, 0.0)
    admin = Envelope(ANN, ALL, tuple(sorted(ROLES["admin"])))
    return SessionMachine(SESSION, (), Size(80, 24), Authority([ann], [admin]), TurnMachine())


def refuses(session: SessionMachine) -> bool:
    try:
        session.handle(KEY_PRESS)
    except SessionHalted:
        return True
    return False


def after(*events: ev.SessionEvent) -> SessionMachine:
    session = a_session()
    for event in events:
        session.handle(event)
    return session


@pytest.mark.parametrize(
    "reported",
    (
        pytest.param((THAWED,), id="thawed"),
        pytest.param((THAWED, NOT_FROZEN), id="thawed, then not frozen in time"),
        pytest.param((THAWED, FROZEN), id="thawed, then frozen"),
    ),
)
@pytest.mark.parametrize(
    "before", (pytest.param((), id="running"), pytest.param((HALT, FROZEN), id="halted"))
)
def test_a_halt_asked_for_during_a_resume_is_in_force(
    before: tuple[ev.SessionEvent, ...], reported: tuple[ev.SessionEvent, ...]
) -> None:
    session = after(*before, RESUME, HALT)
    for event in reported:
        assert refuses(session)
        session.handle(event)
    assert refuses(session)
    # A resume asked for after that halt ends it.
    session.handle(RESUME)
    session.handle(THAWED)
    assert not refuses(session)


def test_a_session_shown_as_halted_refuses_input() -> None:
    session = after(HALT, FROZEN, RESUME, HALT, THAWED, FROZEN)
    assert session.state.shows_halted  # by this `hold show` says halted
    assert refuses(session)
