"""Journals of any shape: intact as written, and no change to them goes unseen."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.signing import check
from holdfast.journal.encoding import decode
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES
from holdfast.journal.proof import check_signed, check_witness, prove
from holdfast.journal.verdict import VerdictKind
from unit.journaling import HOST, Journal, began, frames, verdict_of

# What is done, in order: entries by an actor, a seal, a daemon that is replaced (quickly or not).
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["alice", "bob"]), st.integers(1, 6), st.integers(0, 400)),
        st.sampled_from(["seal", "sync", "reopen", "reopen quickly"]),
    ),
    min_size=1,
    max_size=12,
)
limits = st.sampled_from([400, 1000, 3000, 1 << 20])


def build(directory: str, script: list[object], limit: int) -> Journal:
    journal = Journal(Path(directory), limit=limit)
    for step in script:
        if isinstance(step, tuple):
            actor, count, size = step
            journal.type(count, actor, size)
        elif step == "seal":
            journal.writer.seal(1000.0, 1)
        elif step == "sync":
            journal.writer.sync()
        else:
            journal.reopened(whole=step == "reopen")
    return journal


@settings(max_examples=60, derandomize=True, deadline=None)
@given(steps, limits)
def test_whatever_is_written_is_intact_fast_or_thorough_and_read_back_in_order(
    script: list[object], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        journal = build(directory, script, limit)
        fast, thorough = journal.verdict(), journal.verdict(thorough=True)
        assert fast.outcome is VerdictKind.INTACT, fast.text()
        assert fast == thorough
        assert fast.last_seq == journal.writer.chain.seq
        assert fast.last_hash == journal.writer.chain.head
        entries = list(journal.reader.entries())
        assert [entry.seq for entry in entries] == list(range(1, fast.last_seq + 1))
        counts: dict[str, int] = {}
        for entry in entries:
            counts[entry.actor] = counts.get(entry.actor, 0) + 1
            assert entry.actor_seq == counts[entry.actor]
        journal.writer.close()


@pytest.mark.requirement("N8")
@settings(max_examples=80, derandomize=True, deadline=None)
@given(steps, limits, st.data())
def test_any_change_to_a_sealed_journal_is_found_no_later_than_where_it_was_made(
    script: list[object], limit: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        journal = build(directory, script, limit).sealed()
        segments = [path.read_bytes() for path in journal.segments()]
        journal.writer.close()
        number = data.draw(st.integers(0, len(segments) - 1), label="segment")
        old = segments[number]
        at = data.draw(st.integers(0, len(old) - 1), label="offset")
        kind = data.draw(st.sampled_from(["set", "delete", "insert", "cut"]), label="change")
        value = data.draw(st.integers(0, 255), label="byte")
        size = data.draw(st.integers(1, 200), label="size")
        new = {
            "set": old[:at] + bytes([value]) + old[at + 1 :],
            "delete": old[:at] + old[at + size :],
            "insert": old[:at] + bytes([value]) * size + old[at:],
            "cut": old[:at],
        }[kind]
        segments[number] = new
        verdict = verdict_of(journal.session, segments, journal)
        if new == old:
            assert verdict.outcome is VerdictKind.INTACT
            return
        assert verdict.outcome is VerdictKind.DAMAGED
        assert verdict.broken_seq <= _seq_at(old, at)
        assert verdict.trustworthy_through < verdict.broken_seq


def _seq_at(segment: bytes, at: int) -> int:
    """The entry a byte of a segment belongs to; a header to the first entry behind it."""
    begin, seq = HEADER_BYTES, 0
    for framed in frames(segment):
        if seq and begin > at:
            break
        seq = decode(framed[FRAME_BYTES:]).seq
        begin += len(framed)
    return seq or int.from_bytes(segment[34:42])


@pytest.mark.requirement("N7")
@settings(max_examples=40, derandomize=True, deadline=None)
@given(steps, limits, st.data())
def test_a_proof_holds_for_its_range_and_for_no_other(
    script: list[object], limit: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        journal = build(directory, script, limit)
        end = journal.writer.chain.seq
        journal.writer.close()
        first = data.draw(st.integers(1, end), label="first")
        last = data.draw(st.integers(first, end), label="last")
        records = list(journal.reader.records(first, last))
        proof = prove(began(), 1, records, HOST.sign)
        assert check_signed(proof, check, records)
        one = data.draw(st.integers(1, end), label="other first")
        two = data.draw(st.integers(one, end), label="other last")
        others = list(journal.reader.records(one, two))
        assert check_witness(proof.witness, journal.session, one, two, others) == (
            (one, two) == (first, last)
        )
