"""A trap in what child processes execute and read cannot fire under another's authority."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.adapters.halt import cgroup
from process import gate_checks as check
from process.commanding import Hold
from process.gate_exec_scenarios import SCENARIOS, build
from process.gate_stage import Scenario, Theatre
from process.gate_uncovered import UNCOVERED

COVERED = [each for each in SCENARIOS if each.name not in UNCOVERED]


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")
    with closing(Theatre(Hold())) as theatre:
        build(theatre)
        yield theatre


@pytest.mark.requirement("A7", "M8")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_with_the_gate_off_the_trap_springs(theatre: Theatre, scenario: Scenario) -> None:
    check.springs_with_the_gate_off(theatre, scenario)


@pytest.mark.requirement("A7", "A8", "M8")
@pytest.mark.parametrize("scenario", COVERED, ids=lambda each: each.name)
def test_it_is_refused_naming_its_originator_and_runs_where_allowed(
    theatre: Theatre, scenario: Scenario
) -> None:
    check.is_refused_and_then_allowed(theatre, scenario)
