"""A trap that one actor lays in the shell cannot fire under another's authority: the line gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from process import gate_checks as check
from process.commanding import Hold
from process.gate_line_scenarios import SCENARIOS, build
from process.gate_stage import Scenario, Theatre
from process.gate_uncovered import UNCOVERED

COVERED = [each for each in SCENARIOS if each.name not in UNCOVERED]


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    with closing(Theatre(Hold())) as theatre:
        build(theatre)
        yield theatre


@pytest.mark.requirement("A7", "M8")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_with_the_gate_off_the_trap_springs(theatre: Theatre, scenario: Scenario) -> None:
    check.springs_with_the_gate_off(theatre, scenario)


@pytest.mark.requirement("A6", "A7", "A8", "M8")
@pytest.mark.parametrize("scenario", COVERED, ids=lambda each: each.name)
def test_it_is_refused_naming_its_originator_and_runs_where_allowed(
    theatre: Theatre, scenario: Scenario
) -> None:
    check.is_refused_and_then_allowed(theatre, scenario)
