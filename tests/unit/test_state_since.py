"""Since when a session is in a state that nothing else dates."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.session_state import RUNNING, Phase, State
from holdfast.host.session import state_since, state_watch
from holdfast.host.session.state_since import SavedSince, StateSince
from holdfast.host.session.state_watch import StateWatch
from holdfast.model.state import SessionState

HALTED = State(Phase.HALTED)


def test_a_halt_below_a_fence_is_dated_anew_and_what_a_daemon_finds_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, decided = 100.0, RUNNING
    monkeypatch.setattr(state_since, "now", lambda: at)
    since = StateSince(lambda: decided, None)
    assert since.look() == SavedSince("", None)
    decided = HALTED
    assert since.look() == SavedSince("halted", 100.0)
    at = 200.0
    assert since.look() == SavedSince("halted", 100.0)
    decided = State(Phase.FENCED, HALTED)
    assert since.look() == SavedSince("fenced", 200.0)
    assert StateSince(lambda: decided, since.look()).look() == SavedSince("fenced", 200.0)
    assert StateSince(lambda: HALTED, since.look()).look() == SavedSince("halted", None)


async def test_a_stopped_job_is_dated_by_whoever_watched_when_it_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_watch, "now", lambda: 100.0)

    state = SessionState.STOPPED
    watching = StateWatch(lambda: state, lambda _: None)
    assert watching.seen_at(state) is None, "nobody watches"
    watching.set_watched(True)
    assert watching.seen_at(state) is None, "it may have been so for long"
    state = SessionState.WORKING
    watching.current_state()
    state = SessionState.STOPPED
    watching.current_state()
    assert watching.seen_at(state) == 100.0
    assert watching.seen_at(SessionState.WORKING) is None
    watching.stop()


def test_a_state_that_somebody_was_told_when_asking_is_followed_by_the_change_back() -> None:
    async def ask() -> list[SessionState]:
        state, told = SessionState.PROMPT, list[SessionState]()
        watching = StateWatch(lambda: state, told.append)
        watching.set_watched(True)
        state = SessionState.WORKING
        watching.current_state()
        state = SessionState.PROMPT
        watching._check()  # as its timer does
        state = SessionState.ENDED
        watching.current_state()  # its end is announced by whoever reaps it
        watching.stop()
        return told

    prompt, working = SessionState.PROMPT, SessionState.WORKING
    assert asyncio.run(ask()) == [prompt, working, prompt]
