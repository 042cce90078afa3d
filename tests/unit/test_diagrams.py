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


DOCUMENTS = (
    "ARCHITECTURE.md",
    "docs/walks.md",
    "docs/leases.md",
    "docs/migration.md",
    "docs/guarantees.md",
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_has_the_generated_parts_of_today(diagrams: ModuleType, document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert text == diagrams.redrawn(document, text), "run `make diagrams`"


def test_every_document_with_a_generated_part_is_compared(diagrams: ModuleType) -> None:
    assert set(diagrams.GENERATED) == set(DOCUMENTS)


def test_the_overview_stays_short_enough_to_be_read() -> None:
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= 25_000


def test_every_phase_and_step_is_drawn(diagrams: ModuleType) -> None:
    drawn = diagrams.lifecycle()
    inside, outside = drawn.split("    }\n")
    assert all(
        f" {a} --> {b}: {step}\n" in inside or f" live --> {b}: {step}\n" in outside
        for (a, step), b in TRANSITIONS.items()
    )
    live = {a for a, _ in TRANSITIONS}
    assert all(f" {phase}" in (inside if phase in live else outside) for phase in Phase)


def test_an_arrow_from_a_live_session_leads_from_every_phase_of_one(diagrams: ModuleType) -> None:
    for arrow in diagrams.lifecycle().split("    }\n")[1].splitlines():
        if arrow.startswith("    live --> "):
            after, step = arrow.removeprefix("    live --> ").split(": ")
            live = {a for a, _ in TRANSITIONS}
            assert all(TRANSITIONS.get((a, step)) == after for a in live)


def test_a_missing_marker_is_an_error_not_a_silent_pass(diagrams: ModuleType) -> None:
    with pytest.raises(SystemExit):
        diagrams.redrawn("ARCHITECTURE.md", "no diagram here")
