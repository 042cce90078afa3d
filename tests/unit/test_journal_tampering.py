"""Whatever is done to a journal's files, verification notices, names it and says from where on."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.chain import Chain
from holdfast.journal.encoding import decode, encode, hash_of
from holdfast.journal.entries import DetachedEntry, Discontinued, EndedEntry, SealEntry
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES, frame, header
from holdfast.journal.signatures import Head
from holdfast.journal.verdict import Break, VerdictKind
from holdfast.journal.verify_blocks import BlockVerifier
from unit.journaling import (
    HOST,
    Journal,
    began,
    change_frames,
    flip,
    frames,
    rechecked,
    session_id,
    starts,
    typed,
    verdict_of,
)

BOTH = pytest.mark.parametrize("thorough", [False, True], ids=["fast", "thorough"])


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Entries 1 began, 2 its seal, 3-8 inputs, 9 a seal."""
    return Journal(tmp_path / "one").type(6).sealed()


@BOTH
def test_an_untouched_journal_is_intact_and_signed_to_its_end(
    journal: Journal, thorough: bool
) -> None:
    verdict = journal.verdict(thorough)
    assert verdict.outcome is VerdictKind.INTACT, verdict.text()
    assert (verdict.last_seq, verdict.signed_through, verdict.trustworthy_through) == (9, 9, 9)
    assert (verdict.seals, verdict.broken_seq, verdict.host_key) == (2, 0, HOST.public)


@BOTH
def test_entries_after_the_last_seal_are_linked_and_said_not_to_be_signed(
    journal: Journal, thorough: bool
) -> None:
    verdict = journal.type(3).verdict(thorough)
    assert verdict.outcome is VerdictKind.INTACT
    assert (verdict.trustworthy_through, verdict.signed_through) == (12, 9)


@pytest.mark.requirement("N8")
def test_every_flipped_byte_is_found_at_its_entry(journal: Journal) -> None:
    """Exhaustive, both ways of a byte's life: a low bit and the top bit."""
    data = journal.segments()[0].read_bytes()
    begins = list(starts(data))
    for at in range(len(data)):
        for bit in (0, 7):
            verdict = verdict_of(journal.session, [flip(data, at, bit)], journal)
            seq = max(1, sum(begin <= at for begin in begins))
            assert verdict.outcome is VerdictKind.DAMAGED, (at, bit)
            assert verdict.broken_seq == seq, (at, bit, verdict.text())
            assert verdict.trustworthy_through == seq - 1


def test_every_byte_of_the_head_matters(journal: Journal) -> None:
    data = journal.head.read_bytes()
    for at in range(len(data)):
        journal.head.write_bytes(flip(data, at))
        verdict = journal.verdict()
        assert verdict.kind is Break.HEADLESS, (at, verdict.text())
        assert verdict.trustworthy_through == 9


@BOTH
@pytest.mark.parametrize("seq", range(1, 10))
def test_a_record_changed_on_purpose_with_its_checksum_is_found(
    journal: Journal, seq: int, thorough: bool
) -> None:
    def change(found: list[bytes]) -> list[bytes]:
        record = found[seq - 1]
        at = record.index(b"\xcb", FRAME_BYTES) + 3  # inside the time, so that it stays an entry
        found[seq - 1] = rechecked(flip(record, at))
        return found

    change_frames(journal.segments()[0], change)
    verdict = journal.verdict(thorough)
    assert verdict.outcome is VerdictKind.DAMAGED
    assert verdict.broken_seq == seq, verdict.text()
    assert verdict.kind is (Break.BAD_SIGNATURE if seq in (2, 9) else Break.ALTERED)
    assert verdict.trustworthy_through < seq


@BOTH
@pytest.mark.requirement("N8")
@pytest.mark.parametrize("seq", range(1, 9))
def test_of_two_neighbours_that_were_both_changed_neither_is_trusted(
    journal: Journal, seq: int, thorough: bool
) -> None:
    """The second one with its link too: it names neither the old neighbour nor the new one."""

    def change(found: list[bytes]) -> list[bytes]:
        for place in (seq - 1, seq):
            record = found[place]
            record = flip(record, record.index(b"\xcb", FRAME_BYTES) + 3)
            found[place] = rechecked(flip(record, len(record) - 1) if place == seq else record)
        return found

    change_frames(journal.segments()[0], change)
    verdict = journal.verdict(thorough)
    assert verdict.outcome is VerdictKind.DAMAGED
    assert verdict.trustworthy_through < seq, verdict.text()


@BOTH
@pytest.mark.parametrize("seq", range(1, 9))
def test_a_dropped_record_is_missed(journal: Journal, seq: int, thorough: bool) -> None:
    change_frames(journal.segments()[0], lambda found: found[: seq - 1] + found[seq:])
    verdict = journal.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.MISSING, seq), verdict.text()
    assert verdict.trustworthy_through == seq - 1


@BOTH
@pytest.mark.parametrize("seq", range(1, 9))
def test_two_swapped_records_are_told_from_missing_ones(
    journal: Journal, seq: int, thorough: bool
) -> None:
    def swap(found: list[bytes]) -> list[bytes]:
        found[seq - 1], found[seq] = found[seq], found[seq - 1]
        return found

    change_frames(journal.segments()[0], swap)
    verdict = journal.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.REORDERED, seq), verdict.text()


def test_a_record_put_in_twice_is_found(journal: Journal) -> None:
    change_frames(journal.segments()[0], lambda found: [*found[:4], *found[3:]])
    assert (journal.verdict().kind, journal.verdict().broken_seq) == (Break.REORDERED, 5)


@pytest.mark.requirement("N8")
def test_cut_off_at_any_byte_the_head_misses_what_is_gone(journal: Journal) -> None:
    path = journal.segments()[0]
    data = path.read_bytes()
    begins = list(starts(data))
    for size in range(len(data)):
        verdict = verdict_of(journal.session, [data[:size]], journal)
        whole = sum(end <= size for end in [*begins[1:], len(data)])
        assert verdict.outcome is VerdictKind.DAMAGED, size
        if whole:
            assert verdict.kind is Break.TRUNCATED, (size, verdict.text())
        assert verdict.broken_seq == whole + 1
        assert verdict.trustworthy_through == whole


def test_a_tail_cut_off_in_mid_record_behind_the_head_is_torn_not_damaged(
    journal: Journal,
) -> None:
    last = len(frames(journal.type(1).segments()[0].read_bytes())[-1])
    data = journal.segments()[0].read_bytes().rstrip(b"\0")
    for missing in range(1, last - 3):  # of less only zeros are left, and they say nothing
        verdict = verdict_of(journal.session, [data[:-missing]], journal)
        assert verdict.outcome is VerdictKind.TORN_TAIL, (missing, verdict.text())
        assert (verdict.last_seq, verdict.torn_size) == (9, last - missing)
        # The same with the room reserved ahead still behind it.
        verdict = verdict_of(journal.session, [data[:-missing] + bytes(500)], journal)
        assert (verdict.outcome, verdict.last_seq) == (VerdictKind.TORN_TAIL, 9)


def test_a_bad_record_with_whole_ones_behind_it_is_no_torn_tail(journal: Journal) -> None:
    """Unsigned, behind the head: only what follows tells the two apart."""
    data = journal.type(3).segments()[0].read_bytes()
    tenth = list(starts(data))[9]
    for at in range(tenth, tenth + len(frames(data)[9])):
        verdict = verdict_of(journal.session, [flip(data, at)], journal)
        assert (verdict.kind, verdict.broken_seq) == (Break.ALTERED, 10), (at, verdict.text())


def test_a_missing_head_is_not_taken_for_a_short_journal(journal: Journal) -> None:
    journal.head.unlink()
    assert journal.verdict().kind is Break.HEADLESS


@BOTH
def test_a_forged_seal_is_not_believed_nor_the_block_under_it(
    journal: Journal, thorough: bool
) -> None:
    """Everything rewritten consistently, links, checksums and head, but without the host's key."""
    forger = SigningKey.generate()
    path = journal.segments()[0]
    data = path.read_bytes()
    genuine = b"".join(frames(data)[:2])
    path.write_bytes(data[:HEADER_BYTES] + genuine)
    journal.writer.close()
    journal.head.unlink()
    chain, records = _continued(journal, genuine, forger)
    path.write_bytes(data[:HEADER_BYTES] + genuine + b"".join(records))
    head = Head(journal.session, chain.seq, chain.head, 0, 0, {}).signed(forger.sign)
    journal.head.write_bytes(head.encoded())
    verdict = journal.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.BAD_SIGNATURE, 4), verdict.text()
    assert (verdict.trustworthy_through, verdict.signed_through) == (2, 2)


def _continued(journal: Journal, genuine: bytes, key: SigningKey) -> tuple[Chain, list[bytes]]:
    """One forged input and a forged seal behind the first two genuine records."""
    chain = Chain(journal.session)
    for framed in frames(bytes(HEADER_BYTES) + genuine):
        record = framed[FRAME_BYTES:]
        chain.replay(decode(record), record, framed)
    _, forged = chain.extend(1000.5, 1, "mallory", typed(99))
    _, seal = chain.seal(1000.6, 1, key.sign)
    chain.sealed()
    return chain, [forged, seal]


@pytest.mark.requirement("N8")
@BOTH
def test_another_history_signed_by_the_same_host_is_a_fork(tmp_path: Path, thorough: bool) -> None:
    one = Journal(tmp_path / "one").type(3).sealed()
    other = Journal(tmp_path / "other").type(3, actor="bob").sealed()
    shutil.copy(other.head, one.head)
    verdict = one.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.FORKED, 6), verdict.text()
    assert other.verdict().outcome is VerdictKind.INTACT


@pytest.mark.requirement("N8")
@BOTH
def test_segments_of_two_sessions_swapped_are_foreign(tmp_path: Path, thorough: bool) -> None:
    one = Journal(tmp_path / "one", "one", limit=600).type(9).sealed()
    two = Journal(tmp_path / "two", "two", limit=600).type(9).sealed()
    assert len(one.segments()) == len(two.segments()) > 3
    for number in (0, 1, len(one.segments()) - 1):
        mine, theirs = one.segments()[number], two.segments()[number]
        kept = mine.read_bytes()
        mine.write_bytes(theirs.read_bytes())
        verdict = one.verdict(thorough)
        first = int.from_bytes(kept[34:42])
        assert (verdict.kind, verdict.broken_seq) == (Break.FOREIGN, first), verdict.text()
        mine.write_bytes(kept)
    assert one.verdict(thorough).outcome is VerdictKind.INTACT


@BOTH
def test_another_sessions_records_under_our_header_do_not_fit(
    tmp_path: Path, thorough: bool
) -> None:
    """The header forged to our id: the first record's link still says whose it is."""
    one = Journal(tmp_path / "one", "one").type(3).sealed()
    two = Journal(tmp_path / "two", "two").type(3).sealed()
    mine, theirs = one.segments()[0], two.segments()[0]
    mine.write_bytes(mine.read_bytes()[:HEADER_BYTES] + theirs.read_bytes()[HEADER_BYTES:])
    verdict = one.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.FOREIGN, 1), verdict.text()


@BOTH
def test_a_host_the_session_did_not_name_is_not_believed(tmp_path: Path, thorough: bool) -> None:
    """The whole journal rewritten by another host, under the same session id."""
    stranger = SigningKey(b"s" * 32)
    session = session_id()
    writer = JournalWriter.create(str(tmp_path), session, stranger.sign)
    writer.record(1.0, 1, "", began().replace(host_key=stranger.public))
    writer.finish()
    verdict = JournalReader(str(tmp_path)).verify(session, check, thorough=thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.BAD_SIGNATURE, 1)
    assert verdict.trustworthy_through == 0


@BOTH
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_a_deleted_segment_is_missed(tmp_path: Path, which: str, thorough: bool) -> None:
    journal = Journal(tmp_path, limit=600).type(9).sealed()
    paths = journal.segments()
    path = {"first": paths[0], "middle": paths[2], "last": paths[-1]}[which]
    first = int.from_bytes(path.read_bytes()[34:42])
    path.unlink()
    verdict = journal.verdict(thorough)
    kind = Break.TRUNCATED if which == "last" else Break.MISSING
    assert (verdict.kind, verdict.broken_seq) == (kind, first), verdict.text()


def test_the_last_segment_deleted_before_anybody_sealed_again_is_missed(tmp_path: Path) -> None:
    """A new segment is sealed as soon as it is begun, so the head knows of it."""
    journal = Journal(tmp_path, limit=2000)
    while len(journal.segments()) < 3:
        journal.type(1)
    journal.writer.sync()
    journal.segments()[-1].unlink()
    assert journal.verdict().kind is Break.TRUNCATED


@BOTH
def test_segments_of_one_session_in_another_order_are_reordered(
    tmp_path: Path, thorough: bool
) -> None:
    journal = Journal(tmp_path, limit=600).type(9).sealed()
    one, two = journal.segments()[1:3]
    first = int.from_bytes(one.read_bytes()[34:42])
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)
    verdict = journal.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.REORDERED, first), verdict.text()


@BOTH
def test_a_forged_segment_header_is_found(tmp_path: Path, thorough: bool) -> None:
    journal = Journal(tmp_path, limit=600).type(9).sealed()
    path = journal.segments()[2]
    data = path.read_bytes()
    first = int.from_bytes(data[34:42])
    path.write_bytes(header(journal.session, first, b"x" * 32) + data[HEADER_BYTES:])
    assert (journal.verdict(thorough).kind, journal.verdict(thorough).broken_seq) == (
        Break.ALTERED,
        first,
    )
    path.write_bytes(header(journal.session, first + 1, data[42:74]) + data[HEADER_BYTES:])
    assert journal.verdict(thorough).broken_seq == first


@BOTH
def test_an_entry_after_the_discontinuity_is_found_even_when_the_host_signed_it(
    tmp_path: Path, thorough: bool
) -> None:
    journal = Journal(tmp_path).type(2)
    chain = journal.writer.chain
    journal.writer.record(1001.0, 1, "", Discontinued("host lost", chain.seq, chain.head))
    closed = chain.seq
    chain.closed_by = ""  # a host that does not keep the rule
    journal.type(1).sealed()
    verdict = journal.verdict(thorough)
    assert (verdict.kind, verdict.broken_seq) == (Break.EXTENDED, closed + 1), verdict.text()


def test_a_seal_over_an_empty_block_and_late_words_after_the_end_are_fine(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.writer.seal(1001.0, 1)
    journal.writer.record(1002.0, 1, "", EndedEntry(code=0))
    journal.writer.record(1003.0, 1, "alice", DetachedEntry("a" * 32))
    journal.sealed()
    assert journal.verdict().outcome is VerdictKind.INTACT
    assert journal.verdict().closed_by == "ended"


def test_a_changed_mark_of_a_seal_is_found(journal: Journal) -> None:
    """Both ways, with the checksum made right."""
    kept = journal.segments()[0].read_bytes()
    for seq in (9, 5):
        change_frames(
            journal.segments()[0],
            lambda found, seq=seq: [  # type: ignore[misc]
                rechecked(flip(frame, 0, 7)) if number == seq else frame
                for number, frame in enumerate(found, 1)
            ],
        )
        verdict = journal.verdict()
        assert (verdict.kind, verdict.broken_seq) == (Break.ALTERED, seq), verdict.text()
        journal.segments()[0].write_bytes(kept)


def test_skimming_relies_on_every_link_between_seals(tmp_path: Path) -> None:
    """An old block replaced, its seal made to fit it, the next block left as it was: only the link
    from that block's first record to the old seal gives it away."""
    journal = Journal(tmp_path).type(3)
    journal.writer.seal(1001.0, 1)
    journal.type(3).sealed()
    path = journal.segments()[0]
    data = path.read_bytes()
    found = frames(data)
    changed = rechecked(found[4].replace(b"00000005", b"0000000X"))
    block = found[2] + found[3] + changed
    seal = decode(found[5][FRAME_BYTES:])
    assert isinstance(seal.body, SealEntry)
    body = seal.body.replace(digest=hashlib.sha256(block).digest())
    forged = encode(
        seal.seq, seal.at, seal.epoch, seal.actor, seal.actor_seq, body,
        hash_of(changed[FRAME_BYTES:]),
    )  # fmt: skip
    rest = [*found[:2], block, frame(forged, seal=True), *found[6:]]
    path.write_bytes(data[:HEADER_BYTES] + b"".join(rest))
    verdict = journal.verdict()
    assert verdict.outcome is VerdictKind.DAMAGED
    assert (verdict.kind, verdict.broken_seq) == (Break.BAD_SIGNATURE, 6), verdict.text()
    assert verdict.trustworthy_through == 2


def test_skimming_passes_every_seal_and_is_not_misled_by_input_that_looks_like_one(
    tmp_path: Path,
) -> None:
    """The bytes of a genuine seal, typed in as input: at each cut of a segment."""
    journal = Journal(tmp_path, limit=3000).type(4)
    seal = frames(journal.segments()[0].read_bytes())[1]
    assert decode(seal[FRAME_BYTES:]).body.tag == "sealed"
    for number in range(12):
        body = typed(number).replace(data=seal * (1 + number % 3))
        journal.writer.record(1000.0, 1, "mallory", body)
        if number % 4 == 3:
            journal.writer.seal(1000.0, 1)
    journal.sealed()
    skim = BlockVerifier(journal.session, journal.reader.segment, journal.reader.head())
    skim.run()
    assert len(journal.segments()) > 2
    assert skim.point.seq - 1 == journal.writer.chain.sealed_seq == journal.writer.chain.seq
    assert skim.is_signed(check)
    assert journal.verdict() == journal.verdict(thorough=True)
