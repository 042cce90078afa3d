"""Proofs of a range, status words and lineage: checked from what they carry, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import msgpack
import pytest

from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.chain import genesis
from holdfast.journal.encoding import decode, encode, hash_of
from holdfast.journal.entries import Discontinued
from holdfast.journal.judging import judge
from holdfast.journal.lineage import (
    _KINDS,
    Discontinuity,
    cause_of,
    discontinued,
    discontinuity,
)
from holdfast.journal.proof import (
    WITNESS_BYTES,
    SignedProof,
    check_signed,
    check_witness,
    prove,
    witness,
)
from holdfast.journal.status import Continuity, status
from holdfast.journal.verdict import Break, VerdictKind
from holdfast.model.discontinuity import DiscontinuityCause, DiscontinuityKind
from holdfast.model.errors import InvalidArgument, JournalDamaged, SessionEnded
from holdfast.model.record import Malformed
from unit.journaling import HOST, Journal, began, flip, session_id, starts, typed


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "one", limit=2000).type(30).sealed()


def proof_of(journal: Journal, first: int, last: int) -> SignedProof:
    return prove(began(journal.name), 1, journal.reader.records(first, last), HOST.sign)


@pytest.mark.requirement("N7")
@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 9), (5, 5), (7, 20), (1, 31)])
def test_a_witness_is_36_bytes_and_holds_for_its_records_alone(
    journal: Journal, first: int, last: int
) -> None:
    reader = journal.reader
    records = list(reader.records(first, last))
    before, after = reader.hash_at(journal.session, first - 1), hash_of(records[-1])
    made = witness(journal.session, first, last, before, after)
    assert len(made) == WITNESS_BYTES == 36
    assert int.from_bytes(made[:4]) == last - first + 1
    for path in journal.directory.iterdir():
        path.unlink()  # nothing else is needed
    assert check_witness(made, journal.session, first, last, records)


@pytest.mark.requirement("N7")
def test_a_witness_fits_no_other_range_session_or_record(journal: Journal) -> None:
    reader = journal.reader
    records = list(reader.records(5, 12))
    made = proof_of(journal, 5, 12).witness
    session = journal.session
    assert check_witness(made, session, 5, 12, records)
    assert not check_witness(made, session, 5, 11, records)
    assert not check_witness(made, session, 5, 11, records[:-1])
    assert not check_witness(made, session, 6, 12, records[1:])
    assert not check_witness(made, session, 4, 12, reader.records(4, 12))
    assert not check_witness(made, session_id("two"), 5, 12, records)
    assert not check_witness(made, session, 5, 12, [])
    assert not check_witness(made, session, 5, 12, records[:3] + records[4:])
    assert not check_witness(made, session, 5, 12, [records[1], records[0], *records[2:]])
    for number, record in enumerate(records):
        for at in (12, len(record) // 2, len(record) - 1):
            changed = [*records[:number], flip(record, at), *records[number + 1 :]]
            assert not check_witness(made, session, 5, 12, changed), (number, at)
    for at in range(len(made)):
        assert not check_witness(flip(made, at), session, 5, 12, records)


def test_a_witness_depends_on_everything_it_is_about() -> None:
    given = (session_id(), 5, 12, b"b" * 32, b"a" * 32)
    others = [
        (session_id("two"), *given[1:]),
        (given[0], 6, 13, *given[3:]),
        (*given[:3], b"c" * 32, given[4]),
        (*given[:4], b"c" * 32),
        (given[0], 5, 13, *given[3:]),
    ]
    assert len({witness(*given), *(witness(*other) for other in others)}) == 6


def test_a_range_that_is_none_gets_no_witness(journal: Journal) -> None:
    for first, last in ((0, 3), (4, 3), (-1, 1)):
        with pytest.raises(InvalidArgument):
            witness(journal.session, first, last, b"b" * 32, b"a" * 32)
    with pytest.raises(InvalidArgument):
        prove(began(), 1, [], HOST.sign)
    records = list(journal.reader.records(3, 6))
    with pytest.raises(InvalidArgument):
        prove(began(), 1, [records[0], records[2]], HOST.sign)


@pytest.mark.requirement("N7")
def test_a_signed_proof_stands_on_its_own_and_survives_being_text(journal: Journal) -> None:
    proof = proof_of(journal, 4, 9)
    again = SignedProof.of_text(proof.text())
    assert again == proof
    assert check_signed(again, check)
    assert check_signed(again, check, journal.reader.records(4, 9))
    assert not check_signed(again, check, journal.reader.records(4, 8))
    assert not check_signed(again, check, journal.reader.records(5, 9))
    assert proof.before == journal.reader.hash_at(journal.session, 3)
    assert proof_of(journal, 1, 2).before == genesis(journal.session)


@pytest.mark.requirement("N7")
def test_any_changed_field_of_a_signed_proof_breaks_it(journal: Journal) -> None:
    proof = proof_of(journal, 4, 9)
    for field, value in proof.pack().items():
        if isinstance(value, bytes):
            changed: object = flip(value, len(value) - 1)
        else:
            changed = value + 1 if isinstance(value, int) else session_id("two")
        assert not check_signed(proof.replace(**{field: changed}), check), field


def test_a_proof_by_a_host_the_session_did_not_name_is_refused(journal: Journal) -> None:
    stranger = SigningKey(b"s" * 32)
    records = journal.reader.records(4, 9)
    made = prove(began().replace(host_key=stranger.public), 1, records, stranger.sign)
    assert not check_signed(made, check)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"holdfast": "proof v1"}', '{"holdfast": "proof v1", "before": 3}']
)
def test_text_that_is_no_proof_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        SignedProof.of_text(text)


def test_a_proof_kept_elsewhere_gives_a_rolled_back_journal_away(tmp_path: Path) -> None:
    """Segments and head both put back: the directory alone shows nothing; the proof does."""
    journal = Journal(tmp_path).type(3).sealed()
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    proof = proof_of(journal.reopened().type(3).sealed(), 8, 9)
    for path, data in kept.items():
        path.write_bytes(data)
    verdict = journal.verdict()
    assert verdict.outcome is VerdictKind.INTACT
    found = status(verdict, journal.reader.entries(), known_through=proof.last)
    assert (found.continuity, found.gap_from, found.gap_to) == (Continuity.UNVERIFIABLE, 7, 9)


# -- status -----------------------------------------------------------------------------------


@pytest.mark.requirement("N8")
def test_an_unbroken_history_in_one_incarnation_is_continuous(journal: Journal) -> None:
    found = status(journal.verdict(), journal.reader.entries())
    assert (found.continuity, found.epoch) == (Continuity.CONTINUOUS, 1)


@pytest.mark.requirement("N8")
def test_an_epoch_that_rises_on_one_host_is_continuous_and_on_another_migrated(
    journal: Journal,
) -> None:
    last = journal.writer.chain.seq
    journal.writer.record(1002.0, 2, "alice", typed(1))
    journal.sealed()
    entries = list(journal.reader.entries())
    found = status(journal.verdict(), entries)
    assert (found.continuity, found.point, found.epoch) == (Continuity.CONTINUOUS, last + 1, 2)
    elsewhere = began(host=SigningKey(b"e" * 32))
    moved = [entry.replace(body=elsewhere) if entry.seq == last + 1 else entry for entry in entries]
    found = status(journal.verdict(), moved)
    assert (found.continuity, found.point, found.epoch) == (Continuity.MIGRATED, last + 1, 2)


@pytest.mark.requirement("N8")
def test_damage_is_unverifiable_with_the_gap_and_a_fork_is_forked(journal: Journal) -> None:
    path = journal.segments()[0]
    data = path.read_bytes()
    path.write_bytes(flip(data, list(starts(data))[4] + 20))
    verdict = journal.verdict()
    found = status(verdict, ())
    assert (found.continuity, found.gap_from) == (Continuity.UNVERIFIABLE, 5)
    assert found.reason.startswith("altered")
    forked = verdict.replace(kind=Break.FORKED)
    assert status(forked, ()).continuity is Continuity.FORKED


# -- lineage ----------------------------------------------------------------------------------


@pytest.mark.requirement("N9")
def test_a_whole_journal_is_discontinued_by_its_last_entry_and_never_extended(
    journal: Journal,
) -> None:
    verdict = journal.verdict()
    cause = DiscontinuityCause(DiscontinuityKind.HOST_LOST, boot_id="of-another-boot")
    ending = discontinued(verdict, "host lost", cause)
    assert (ending.last_seq, ending.last_hash) == (verdict.last_seq, journal.writer.chain.head)
    journal.writer.record(1003.0, 1, "", ending)
    journal.writer.finish()
    with pytest.raises(SessionEnded):
        journal.reopened().type(1)
    found = judge(journal.reader, journal.session, check)
    assert (found.status, found.discontinued, found.reason) == ("continuous", True, "host lost")
    assert found.cause == cause


@pytest.mark.requirement("N9")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("its host died", "host_lost"),
        ("its keeper died", "keeper_lost"),
        ("its host died; its journal is damaged", "host_lost"),
        ("the moon was full", "unknown"),
    ],
)
def test_an_entry_of_an_older_version_is_read_with_a_type(
    journal: Journal, text: str, kind: str
) -> None:
    verdict = journal.verdict()
    old = encode(
        1, 9.0, 1, "", 1, Discontinued(text, verdict.last_seq, verdict.last_hash), b"p" * 32
    )
    packed = msgpack.unpackb(old)
    del packed[6]["cause"]  # as it was written then
    body = decode(msgpack.packb(packed)).body
    assert isinstance(body, Discontinued) and body.cause is None
    journal.writer.record(1003.0, 1, "", body)
    journal.writer.finish()
    found = judge(journal.reader, journal.session, check)
    assert found.cause == DiscontinuityCause(kind)


@pytest.mark.requirement("N9")
def test_what_is_wrong_with_a_journal_decides_the_type_of_its_discontinuity(
    journal: Journal,
) -> None:
    whole = journal.verdict()
    for wrong, kind in (
        (Break.ALTERED, DiscontinuityKind.CORRUPTION),
        (Break.BAD_SIGNATURE, DiscontinuityKind.CORRUPTION),
        (Break.MISSING, DiscontinuityKind.CHAIN_BREAK),
        (Break.TRUNCATED, DiscontinuityKind.CHAIN_BREAK),
    ):
        verdict = whole.replace(outcome=VerdictKind.DAMAGED, kind=wrong, broken_seq=7)
        assert cause_of(verdict, b"1", b"2") == DiscontinuityCause(kind, at=7)
    forked = whole.replace(outcome=VerdictKind.DAMAGED, kind=Break.FORKED, broken_seq=6)
    two = DiscontinuityCause("conflicting_chains", at=6, a="01", b="02")
    assert cause_of(forked, b"\x01", b"\x02") == two
    assert set(Break) == set(_KINDS)


@pytest.mark.requirement("N9")
def test_a_damaged_journal_is_not_extended_and_its_end_is_stated_beside_it(
    journal: Journal,
) -> None:
    path = journal.segments()[0]
    data = path.read_bytes()
    path.write_bytes(flip(data, list(starts(data))[4] + 20))
    verdict = journal.verdict()
    with pytest.raises(JournalDamaged):
        discontinued(verdict, "damaged", cause_of(verdict))
    last = journal.reader.hash_at(journal.session, verdict.trustworthy_through)
    cause = cause_of(verdict)
    assert cause == DiscontinuityCause(DiscontinuityKind.CORRUPTION, at=5)
    made = discontinuity(journal.session, verdict, last, "damaged", 9.0, HOST.public, cause)
    statement = Discontinuity.of_text(made.signed(HOST.sign).text())
    assert statement.cause == cause
    for other in (None, cause.replace(at=4), cause.replace(kind="chain_break")):
        assert not statement.replace(cause=other).is_signed(check), "the cause is signed too"
    older = made.replace(cause=None).signed(HOST.sign)
    assert Discontinuity.of_text(older.text()) == older
    assert older.is_signed(check)
    assert not older.replace(cause=cause).is_signed(check), "nobody adds one later"
    assert (statement.last_seq, statement.last_hash) == (4, last)
    assert statement.is_signed(check, HOST.public)
    assert not statement.is_signed(check, SigningKey(b"s" * 32).public)
    assert not statement.replace(last_seq=5).is_signed(check)
    with pytest.raises(Malformed):
        Discontinuity.of_text(json.dumps({"holdfast": "something"}))
