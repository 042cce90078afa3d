"""What the gate does not cover is said in docs/gate.md, in the words of the scenario suite."""

from __future__ import annotations

import re
from pathlib import Path

from process import gate_exec_scenarios, gate_line_scenarios
from process.gate_uncovered import UNCOVERED

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
SCENARIOS = [*gate_line_scenarios.SCENARIOS, *gate_exec_scenarios.SCENARIOS]


def listed() -> dict[str, str]:
    """The table under "What is not covered": each scenario, and why."""
    section = PAGE.read_text().partition("## What is not covered\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return {name: reason for name, reason in rows if name != "scenario"}


def test_the_document_lists_exactly_the_scenarios_that_are_not_covered() -> None:
    assert listed() == UNCOVERED


def test_each_scenario_has_a_name_of_its_own() -> None:
    names = [each.name for each in SCENARIOS]
    assert len(names) == len(set(names))
    assert set(UNCOVERED) <= set(names), "a scenario that nobody tries"
