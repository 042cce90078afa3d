"""A trap in what child processes execute and read cannot fire under another's authority."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.adapters.halt import cgroup
from process.commanding import Hold
from process.gate_exec_scenarios import SCENARIOS, build
from process.gate_stage import AGENT, HUMAN, Scenario, Theatre


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")
    theatre = Theatre(Hold())
    try:
        build(theatre)
        yield theatre
    finally:
        theatre.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_with_the_gate_off_the_trap_springs(theatre: Theatre, scenario: Scenario) -> None:
    with theatre.stage(scenario) as stage:
        stage.run(scenario.prepared, HUMAN)
        stage.run(scenario.staged, AGENT)
        assert not stage.sprung(), "it springs by itself"
        stage.run(scenario.triggered, HUMAN)
        stage.run(scenario.by_agent, AGENT)
        assert stage.until(stage.sprung)
