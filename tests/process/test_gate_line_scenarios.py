"""A trap that one actor lays in the shell cannot fire under another's authority: the line gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from process.commanding import Hold
from process.gate_line_scenarios import SCENARIOS
from process.gate_stage import AGENT, HUMAN, Scenario, Theatre


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    theatre = Theatre(Hold())
    try:
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
        assert stage.until(stage.sprung)
