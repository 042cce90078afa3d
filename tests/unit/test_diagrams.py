"""The generated parts of the documents say what the tables in the code say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from holdfast.core.session_state import TRANSITIONS, Phase
from unit.scripts import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def diagrams() -> ModuleType:
    return script("diagrams")


@pytest.mark.parametrize(
    "document", ["ARCHITECTURE.md", "docs/walks.md", "docs/leases.md", "docs/guarantees.md"]
)
def test_a_document_has_the_generated_parts_of_today(diagrams: ModuleType, document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert text == diagrams.redrawn(document, text), "run `make diagrams`"


def test_every_document_with_a_generated_part_is_compared(diagrams: ModuleType) -> None:
    assert set(diagrams.GENERATED) == {
        "ARCHITECTURE.md",
        "docs/walks.md",
        "docs/leases.md",
        "docs/guarantees.md",
    }


def test_the_overview_stays_short_enough_to_be_read() -> None:
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= 25_000


def test_every_phase_and_step_is_drawn(diagrams: ModuleType) -> None:
    drawn = diagrams.lifecycle()
    assert all(f"{a} --> {b}: {step}" in drawn for (a, step), b in TRANSITIONS.items())
    assert all(phase in drawn for phase in Phase)


def test_a_missing_marker_is_an_error_not_a_silent_pass(diagrams: ModuleType) -> None:
    with pytest.raises(SystemExit):
        diagrams.redrawn("ARCHITECTURE.md", "no diagram here")
