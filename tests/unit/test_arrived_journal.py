"""The journal that comes with a session: it must be whole, of the checkpoint's history, and of the
one that this host knows of the session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.host.continuity.arrived_journal import check_arrived
from holdfast.model.checkpoint import Checkpoint, CheckpointId, CheckpointKind, MachineNeeds
from holdfast.model.errors import CheckpointInvalid, JournalDamaged
from holdfast.model.ids import SessionId
from holdfast.model.state import Level
from unit.journaling import Journal


def saved_at(journal: Journal, seq: int) -> Checkpoint:
    session = SessionId(journal.session)
    return Checkpoint(
        session=session,
        session_name="one",
        epoch=1,
        kind=CheckpointKind.MEMORY,
        created_at=1000.0,
        created_by="",
        level=Level.MOVABLE,
        machine=MachineNeeds("x86_64"),
        journal_seq=seq,
        journal_head=journal.reader.hash_at(session, seq),
        note="",
        frozen_ms=0.0,
        total_ms=0.0,
        id=CheckpointId.of_random(bytes(16)),
        host=b"",
        raw_bytes=0,
        stored_bytes=0,
    )


def arrive(journal: Journal, known: Path | None, *, may_be_torn: bool = False) -> None:
    check_arrived(
        str(journal.directory),
        None if known is None else str(known),
        SessionId(journal.session),
        saved_at(journal, 3),
        may_be_torn=may_be_torn,
    )


@pytest.fixture
def earlier(tmp_path: Path) -> Journal:
    """Of a session that was here, and left."""
    return Journal(tmp_path / "arrived").type(4).sealed()


def test_one_that_goes_on_from_what_is_known_is_taken(earlier: Journal, tmp_path: Path) -> None:
    known = shutil.copytree(earlier.directory, tmp_path / "known")
    later = earlier.reopened().type(3).sealed()
    arrive(later, None)
    arrive(later, known)


def test_one_that_has_less_or_something_else_is_not(earlier: Journal, tmp_path: Path) -> None:
    before = Path(shutil.copytree(earlier.directory, tmp_path / "before"))
    known = earlier.reopened().type(3, actor="alice").sealed()
    older = Journal.__new__(Journal)
    older.directory, older.name, older.session = before, known.name, known.session
    with pytest.raises(CheckpointInvalid, match="history"):
        arrive(older, known.directory)
    other = Journal(tmp_path / "other").type(9, actor="mallory").sealed()
    with pytest.raises(CheckpointInvalid, match="history"):
        arrive(other, known.directory)
    arrive(other, None)


def test_one_without_its_end_is_taken_only_of_a_host_that_may_have_died(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "torn").type(6).sealed()
    (segment,) = journal.directory.glob("journal-*.seg")
    journal.reopened().type(1)
    journal.writer.finish()
    size = len(segment.read_bytes().rstrip(b"\0"))
    with segment.open("r+b") as file:
        file.truncate(size - 3)
    arrive(journal, None, may_be_torn=True)
    with pytest.raises(JournalDamaged, match="whole"):
        arrive(journal, None)
