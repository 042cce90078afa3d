"""The daemon dies between any two steps of the gate: what is held is still held, what is allowed
runs once, what is refused never does; and a build that leaves a step of the gate out is caught."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.careless_builds import CAREFUL, CARELESS_AT_THE_GATE, build
from faults.crash_points import arm, crashing_host
from faults.gate_run import GateRun, gone, prepared
from faults.hosting import FaultHost

# The first of these come by with the line that is free, the others when a line is held.
PASSING = ["before-gate_keep", "after-gate_keep", "before-passing", "after-passing", "after-take"]
ASKING = ["before-gate_judged", "after-gate_judged", "before-asked", "after-asked"]
DECIDING = ["before-closed", "after-closed", "after-gate_look", "before-passing", "after-passing"]


@pytest.fixture(scope="module")
def armed_host() -> Iterator[FaultHost]:
    with crashing_host() as host:
        yield prepared(host)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("point", PASSING)
def test_a_line_that_may_run_runs_once_wherever_the_daemon_dies(
    armed_host: FaultHost, point: str
) -> None:
    run = GateRun(armed_host, f"free-{point}")
    armed = arm(armed_host, point)
    assert run.play() == []
    gone(armed)
    run.end()


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("point", ASKING)
def test_a_line_that_is_held_stays_held_wherever_the_daemon_dies(
    armed_host: FaultHost, point: str
) -> None:
    run = GateRun(armed_host, f"held-{point}")
    run.submit("first")
    armed = arm(armed_host, point)
    assert run.play(while_held=lambda: gone(armed)) == []
    run.end()


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("point", DECIDING)
def test_an_approval_cut_off_by_a_kill_lets_the_line_run_once(
    armed_host: FaultHost, point: str
) -> None:
    run = GateRun(armed_host, f"decided-{point}")
    armed = armed_host.work / "armed" / point
    assert run.play(deciding=lambda: arm(armed_host, point)) == []
    gone(armed)
    run.end()


# -- careless builds ------------------------------------------------------------------------------


def played(source: str) -> list[str]:
    """With a daemon that is killed while a line is held."""
    with build(source) as host:
        run = GateRun(prepared(host), "careless")
        return run.play(while_held=lambda: host.wait_new_daemon(host.kill_daemon()))


def test_the_judge_finds_nothing_wrong_with_a_careful_gate() -> None:
    assert played(CAREFUL) == []


@pytest.mark.parametrize(
    "careless", list(CARELESS_AT_THE_GATE.values()), ids=list(CARELESS_AT_THE_GATE)
)
def test_the_judge_catches_a_gate_with_a_step_left_out(careless: str) -> None:
    assert played(careless) != []
