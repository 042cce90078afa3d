"""Which sessions count as idle, and what becomes of them."""

from __future__ import annotations

import pytest

from holdfast.core.continuity.idle import (
    CPU_NOISE_S,
    Candidate,
    IdleAction,
    IdlePolicy,
    Standing,
    Use,
    due,
    look,
)
from holdfast.model.ids import SessionId
from holdfast.model.state import Level, SessionState

HOUR = 3600.0
QUIET = Use(at=1000.0, state=SessionState.PROMPT, operators=0, last_used_at=400.0, cpu_s=7.0)
POLICY = IdlePolicy({Level.PLAIN: 2 * HOUR, Level.MOVABLE: HOUR}, 600.0, False, 0)


def session(number: int) -> SessionId:
    return SessionId.of_key(bytes([number]) * 32)


def candidate(
    number: int,
    idle_since: float,
    level: Level = Level.MOVABLE,
    *,
    pinned: bool = False,
    busy: str = "",
    warned_at: float | None = None,
) -> Candidate:
    standing = Standing(idle_since, busy, 0.0, warned_at)
    return Candidate(session(number), level, pinned, level is Level.MOVABLE, standing)


@pytest.mark.requirement("M9")
def test_a_session_that_nothing_uses_is_idle_since_it_was_last_used() -> None:
    standing = look(None, QUIET)
    assert standing.is_idle and standing.idle_since == 400.0
    assert look(standing, QUIET.replace(at=5000.0)).idle_since == 400.0


@pytest.mark.requirement("M9")
@pytest.mark.parametrize(
    ("use", "said"),
    [
        ({"operators": 1}, "1 operator is attached"),
        ({"approvals": 2}, "2 approvals are open"),
        ({"forwarded": 1}, "1 connection is forwarded into it"),
        ({"listening": "127.0.0.1:3000"}, "a server listens on 127.0.0.1:3000"),
        ({"state": SessionState.WORKING}, "a program is at work"),
        ({"working": "make"}, "make is at work"),
        ({"state": SessionState.INPUT, "working": "node"}, "node is at work"),
        ({"state": SessionState.HALTED}, "it is halted, which somebody decided"),
        ({"cpu_s": 7.0 + 2 * CPU_NOISE_S}, "its programs used the processor"),
    ],
)
def test_each_kind_of_use_keeps_a_session(use: dict[str, object], said: str) -> None:
    before = look(None, QUIET)
    busy = look(before, QUIET.replace(at=2000.0, **use))
    assert (busy.busy, busy.idle_since) == (said, 2000.0)
    after = look(busy, QUIET.replace(at=2100.0, cpu_s=busy.cpu_s))
    assert after.is_idle and after.idle_since == 2000.0, "it is idle since the use ended"


@pytest.mark.requirement("M9")
@pytest.mark.parametrize(
    "state",
    [SessionState.PROMPT, SessionState.INPUT, SessionState.SECRET, SessionState.STOPPED],
)
def test_waiting_for_somebody_is_no_use(state: SessionState) -> None:
    assert look(None, QUIET.replace(state=state)).is_idle


def test_a_shell_that_wakes_for_a_timer_does_not_use_the_processor() -> None:
    before = look(None, QUIET)
    assert look(before, QUIET.replace(at=1030.0, cpu_s=7.0 + CPU_NOISE_S / 2)).is_idle


def test_output_after_a_warning_takes_the_warning_back() -> None:
    warned = look(None, QUIET).replace(warned_at=900.0)
    assert look(warned, QUIET.replace(at=1100.0)).warned_at == 900.0
    used = look(warned, QUIET.replace(at=1100.0, last_used_at=1050.0))
    assert (used.idle_since, used.warned_at) == (1050.0, None)


@pytest.mark.requirement("M9")
def test_past_its_threshold_a_session_is_warned_of_then_reaped() -> None:
    now = 10 * HOUR
    (first,) = due([candidate(1, now - HOUR)], POLICY, now)
    assert (first.action, first.warn, first.at) == (IdleAction.EVICT, True, now + 600.0)
    (then,) = due([candidate(1, now - HOUR, warned_at=now - 700.0)], POLICY, now)
    assert (then.action, then.warn) == (IdleAction.EVICT, False)
    assert then.at == now - 100.0
    assert due([candidate(1, now - HOUR + 1)], POLICY, now) == ()


@pytest.mark.requirement("M9")
def test_what_cannot_be_evicted_is_ended_only_where_that_is_set() -> None:
    now, old = 10 * HOUR, candidate(1, 0.0, Level.PLAIN)
    (kept,) = due([old], POLICY, now)
    assert (kept.action, kept.warn) == (IdleAction.KEEP, False)
    (ended,) = due([old], POLICY.replace(end_unmovable=True), now)
    assert (ended.action, ended.warn) == (IdleAction.END, True)


@pytest.mark.requirement("M9")
def test_pinned_busy_and_thresholdless_sessions_are_never_due() -> None:
    now = 1000 * HOUR
    spared = [
        candidate(1, 0.0, pinned=True),
        candidate(2, 0.0, busy="make is at work"),
        candidate(3, 0.0, Level.CONTAINED),
    ]
    bounded = POLICY.replace(resident_max=1, end_unmovable=True)
    assert due(spared, POLICY, now) == due(spared, bounded, now) == ()


@pytest.mark.requirement("M9")
def test_beyond_the_bound_those_used_longest_ago_are_evicted() -> None:
    now = 10 * HOUR
    idle = [candidate(number, now - number) for number in (5, 1, 4, 2, 3)]
    plain = candidate(9, now - 100, Level.PLAIN)
    busy = candidate(8, now - 100, busy="make is at work")
    found = due([*idle, plain, busy], POLICY.replace(resident_max=3), now)
    assert [each.id for each in found] == [session(5), session(4)]
    assert all(each.why == "more than 3 idle sessions are resident" for each in found)
    assert due(idle, POLICY.replace(resident_max=5), now) == ()
