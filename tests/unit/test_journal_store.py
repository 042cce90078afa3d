"""The journal on disk: what is written stays, what is torn is cut and told, a full disk refuses."""

from __future__ import annotations

import ctypes
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.journal_files.segments import JournalReader, state_discontinuity
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.entries import CarriedOn, EndedEntry, InputEntry
from holdfast.journal.lineage import Discontinuity
from holdfast.journal.verdict import VerdictKind
from holdfast.model.errors import (
    InvalidArgument,
    JournalDamaged,
    LimitReached,
    SessionEnded,
    StorageFailed,
)
from holdfast.model.limits import JOURNAL_AHEAD_BYTES, JOURNAL_ENTRY_MAX_BYTES
from unit.journaling import HOST, OPERATOR, Journal, began, flip, session_id, starts, typed

WHOLE = pytest.mark.parametrize("whole", [True, False], ids=["whole", "tail only"])


def test_what_a_writer_that_died_had_not_finished_is_cleared_away(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(2)
    journal.writer.close()
    (tmp_path / "journal.head.new").write_bytes(b"half")
    JournalWriter.open(str(tmp_path), journal.session, HOST.sign, check).close()
    assert not list(tmp_path.glob("*.new"))


@WHOLE
def test_a_reopened_journal_goes_on_in_one_chain(tmp_path: Path, whole: bool) -> None:
    journal = Journal(tmp_path, limit=2000).type(7).type(2, actor="bob")
    for _ in range(3):
        journal.writer.sync()
        journal.reopened(whole).type(3).type(1, actor="bob")
        assert journal.writer.cut is None
    assert journal.sealed().verdict().outcome is VerdictKind.INTACT
    entries = list(journal.reader.entries())
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    for actor, count in (("alice", 16), ("bob", 5)):
        numbers = [entry.actor_seq for entry in entries if entry.actor == actor]
        assert numbers == list(range(1, count + 1))


@WHOLE
def test_a_daemon_killed_without_a_word_loses_nothing_it_wrote(tmp_path: Path, whole: bool) -> None:
    """Nothing is synced or closed: the next writer has only the files."""
    journal = Journal(tmp_path)
    journal.writer.sync()
    journal.type(5)
    successor = JournalWriter.open(str(tmp_path), journal.session, HOST.sign, check, whole=whole)
    assert (successor.chain.seq, successor.chain.head) == (
        journal.writer.chain.seq,
        journal.writer.chain.head,
    )
    successor.record(1002.0, 1, "", CarriedOn(7))
    successor.finish()
    verdict = journal.verdict()
    assert (verdict.outcome, verdict.last_seq) == (VerdictKind.INTACT, 9)


@WHOLE
@pytest.mark.parametrize("room", [0, 5000], ids=["at the end of the file", "with room behind it"])
def test_a_torn_tail_is_cut_at_opening_and_told(tmp_path: Path, room: int, whole: bool) -> None:
    journal = Journal(tmp_path).type(2).sealed().type(1).type(1, size=900)
    path = journal.segments()[0]
    data = path.read_bytes()
    last = list(starts(data))[-1]
    torn = data[last : last + 800]  # longer than what comes next: none of it may show behind that
    path.write_bytes(data[:last] + torn + bytes(room))
    assert journal.verdict().outcome is VerdictKind.TORN_TAIL
    journal.reopened(whole)
    assert journal.writer.cut == len(torn)
    assert journal.type(1, actor="bob").verdict().outcome is VerdictKind.INTACT
    assert journal.verdict().last_seq == 7
    assert torn not in path.read_bytes()
    assert journal.reopened(whole).writer.cut is None


def test_a_segment_that_never_got_its_header_is_part_of_the_torn_tail(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(2).sealed().type(1)
    (tmp_path / "journal-00000002.seg").write_bytes(bytes(100))
    assert journal.verdict().outcome is VerdictKind.TORN_TAIL
    assert journal.reopened().writer.cut == 0
    assert len(journal.segments()) == 1
    assert journal.type(1).verdict().outcome is VerdictKind.INTACT


@WHOLE
@pytest.mark.parametrize("seq", [1, 4, 7])
def test_damage_before_the_tail_is_refused_and_left_as_it_is(
    tmp_path: Path, seq: int, whole: bool
) -> None:
    """A quick opening looks at the first entry, for the keys, and at what is behind the head."""
    journal = Journal(tmp_path).type(2).sealed().type(4)
    path = journal.segments()[0]
    data = path.read_bytes()
    spoiled = flip(data, list(starts(data))[seq - 1] + 20)
    path.write_bytes(spoiled)
    if whole or seq != 4:
        with pytest.raises(JournalDamaged, match=f"at entry {seq}"):
            journal.reopened(whole)
    else:
        journal.reopened(whole)
        assert journal.verdict().broken_seq == seq
    assert path.read_bytes() == spoiled


def test_a_journal_is_begun_only_once(tmp_path: Path) -> None:
    Journal(tmp_path)
    with pytest.raises(InvalidArgument):
        JournalWriter.create(str(tmp_path), session_id(), HOST.sign)


def test_an_ended_journal_takes_no_input_even_after_reopening(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(1)
    journal.writer.record(1001.0, 1, "", EndedEntry(code=0))
    journal.writer.finish()
    for whole in (True, False):
        with pytest.raises(SessionEnded):
            journal.reopened(whole).type(1)
    assert journal.verdict().last_seq == 5


# -- room -------------------------------------------------------------------------------------


def test_room_is_held_ahead_of_every_entry(tmp_path: Path) -> None:
    journal = Journal(tmp_path, limit=300_000)
    for _ in range(60):
        journal.type(1, size=10_000)
        sizes = [path.stat().st_size for path in journal.segments()]
        # Record by record it may have been used; before the next effect it is there again.
        journal.writer.reserve()
        used = sum(1 for _ in journal.reader.entries())
        assert used == journal.writer.chain.seq
        last = journal.segments()[-1]
        end = len(last.read_bytes().rstrip(b"\0"))
        assert last.stat().st_size - end >= JOURNAL_AHEAD_BYTES - 32, sizes


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    place = tmp_path / "disk"
    place.mkdir()
    if libc.mount(b"none", bytes(place), b"tmpfs", 0, b"size=400k") != 0:
        pytest.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield place
    finally:
        libc.umount2(bytes(place), 2)


def test_a_full_disk_refuses_the_entry_and_keeps_room_for_what_happened(small_disk: Path) -> None:
    journal = Journal(small_disk)
    journal.writer.sync()
    chain = journal.writer.chain
    with pytest.raises(StorageFailed):
        for _ in range(10_000):
            journal.type(1, size=4000)
    assert chain.seq > 20
    before = (chain.seq, chain.head, dict(chain.actors))
    for _ in range(3):
        with pytest.raises(StorageFailed):
            journal.type(1)
        assert (chain.seq, chain.head, dict(chain.actors)) == before
    assert journal.verdict().last_seq == before[0]
    # The reserve is there for what must be said.
    journal.writer.record(2000.0, 1, "", EndedEntry(lost="disk full"), spend_reserve=True)
    assert journal.verdict().outcome is VerdictKind.INTACT
    assert journal.verdict().closed_by == "ended"


def test_room_that_comes_back_is_used(small_disk: Path) -> None:
    journal = Journal(small_disk)
    journal.writer.sync()
    (small_disk / "ballast").write_bytes(bytes(100_000))
    with pytest.raises(StorageFailed):
        for _ in range(10_000):
            journal.type(1, size=4000)
    (small_disk / "ballast").unlink()
    journal.type(3, size=4000).sealed()
    assert journal.verdict().outcome is VerdictKind.INTACT


def test_a_new_segment_that_has_no_room_is_not_begun(small_disk: Path) -> None:
    """The limit of a segment yields; the entry is written into the old one's reserve."""
    journal = Journal(small_disk, limit=100_000)
    journal.writer.sync()
    with pytest.raises(StorageFailed):
        for _ in range(10_000):
            journal.type(1, size=4000)
    journal.writer.record(2000.0, 1, "", EndedEntry(lost="disk full"), spend_reserve=True)
    assert [path.suffix for path in small_disk.iterdir() if ".new" in path.name] == []
    assert journal.verdict().outcome is VerdictKind.INTACT


def test_a_write_that_stops_short_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path).type(1)
    before = journal.writer.chain.head

    def short(fd: int, data: bytes, at: int) -> int:
        return real(fd, data[:100], at)

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", short)
    with pytest.raises(StorageFailed):
        journal.type(1)
    monkeypatch.undo()
    assert journal.writer.chain.head == before
    assert journal.verdict().last_seq == 3
    small = Journal.type(journal, 1, size=1)
    assert small.sealed().verdict().outcome is VerdictKind.INTACT


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, kept[1]))
    try:
        with pytest.raises(StorageFailed):
            for _ in range(1000):
                journal.type(1, size=4000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)
    assert journal.verdict().outcome is not VerdictKind.DAMAGED
    assert journal.sealed().verdict().outcome is VerdictKind.INTACT


def test_an_entry_over_the_limit_is_refused_and_the_chain_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    huge = InputEntry(OPERATOR, 1, 1, "paste", bytes(JOURNAL_ENTRY_MAX_BYTES), 0)
    with pytest.raises(LimitReached):
        journal.writer.record(1000.0, 1, "alice", huge)
    assert journal.type(1).sealed().verdict().outcome is VerdictKind.INTACT


def test_the_largest_entry_fits_whatever_a_segments_limit_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path, limit=1000)
    large = InputEntry(OPERATOR, 1, 1, "paste", bytes(JOURNAL_ENTRY_MAX_BYTES - 300), 0)
    for _ in range(3):
        journal.writer.record(1000.0, 1, "alice", large)
    assert journal.sealed().verdict().outcome is VerdictKind.INTACT


# -- durability -------------------------------------------------------------------------------


def test_the_head_follows_a_seal_only_once_the_records_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path).type(2)
    journal.writer.sync()
    head = journal.head.read_bytes()
    order: list[str] = []

    def fails(fd: int) -> None:
        order.append("data")
        raise OSError(5, "it broke")

    journal.writer.seal(1001.0, 1)
    assert journal.head.read_bytes() == head
    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(StorageFailed):
        journal.writer.sync()
    assert (order, journal.head.read_bytes()) == (["data"], head)
    monkeypatch.undo()
    journal.writer.sync()
    found = journal.reader.head()
    assert found is not None
    assert found.seq == 5


def test_sync_in_another_thread_never_disturbs_the_writing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, limit=20_000)
    stop, faults = threading.Event(), []

    def syncing() -> None:
        while not stop.is_set():
            try:
                journal.writer.sync()
            except Exception as error:  # whatever it is, the test must show it
                faults.append(error)
                return

    thread = threading.Thread(target=syncing)
    thread.start()
    try:
        journal.type(3000)
    finally:
        stop.set()
        thread.join(10)
    assert not faults
    assert len(journal.segments()) > 10
    assert journal.sealed().verdict(thorough=True).outcome is VerdictKind.INTACT


# -- reading ----------------------------------------------------------------------------------


def test_a_reader_begins_anywhere_and_opens_only_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, limit=1500).type(80).sealed()
    last = journal.writer.chain.seq
    reader = journal.reader
    for first in range(1, last + 1):
        assert [entry.seq for entry in reader.entries(first, first + 2)] == list(
            range(first, min(first + 2, last) + 1)
        )
    opened: list[int] = []
    real = reader.segment

    def noted(index: int) -> bytes | None:
        opened.append(index)
        return real(index)

    monkeypatch.setattr(reader, "segment", noted)
    assert len(list(reader.records(40, 44))) == 5
    assert len(set(opened)) <= 2
    assert list(reader.entries(last + 1)) == []
    with pytest.raises(InvalidArgument):
        list(reader.records(last - 1, last + 1))


def test_a_reader_ends_at_a_torn_tail_and_raises_at_damage(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(5)
    path = journal.segments()[0]
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[:-10])
    assert [entry.seq for entry in journal.reader.entries()] == [1, 2, 3, 4, 5, 6]
    path.write_bytes(flip(data, list(starts(data))[3] + 30))
    with pytest.raises(JournalDamaged, match="entry 4"):
        list(journal.reader.entries())


def test_what_was_recorded_is_what_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    made = [journal.writer.record(1000.5, 7, "bob", typed(number)) for number in range(5)]
    entries = [entry for entry in journal.reader.entries() if entry.actor == "bob"]
    assert [entry.seq for entry in entries] == made
    assert [entry.body for entry in entries] == [typed(number) for number in range(5)]
    assert {(entry.at, entry.epoch) for entry in entries} == {(1000.5, 7)}
    first = next(iter(journal.reader.entries()))
    assert first.body == began()
    places = list(journal.reader.found())
    data = journal.segments()[0].read_bytes()
    assert [found.offset for found in places] == list(starts(data))


# -- beside the journal -----------------------------------------------------------------------


def test_a_discontinuity_is_stated_once_and_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(2)
    assert journal.reader.discontinuity() is None
    made = Discontinuity(journal.session, "damaged", 3, b"h" * 32, 5.0, HOST.public)
    statement = made.signed(HOST.sign)
    state_discontinuity(str(tmp_path), statement)
    found = journal.reader.discontinuity()
    assert found == statement
    assert found is not None
    assert found.is_signed(check, HOST.public)
    with pytest.raises(InvalidArgument):
        state_discontinuity(str(tmp_path), statement)
    (tmp_path / "journal.discontinued").write_text("{}")
    with pytest.raises(JournalDamaged):
        journal.reader.discontinuity()


def test_a_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    path = str(tmp_path / "host.key")
    key = SigningKey.load_or_create(path)
    assert SigningKey.load_or_create(path).public == key.public
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["host.key"]
    signature = key.sign(b"words")
    assert check(key.public, b"words", signature)
    assert not check(key.public, b"word", signature)
    assert not check(b"short", b"words", signature)
    assert not check(HOST.public, b"words", signature)


def test_reading_where_no_journal_is_says_so(tmp_path: Path) -> None:
    assert list(JournalReader(str(tmp_path)).entries()) == []
    verdict = JournalReader(str(tmp_path)).verify(session_id(), check)
    assert verdict.outcome is VerdictKind.DAMAGED
    with pytest.raises(StorageFailed):
        JournalReader(str(tmp_path / "nowhere"))
