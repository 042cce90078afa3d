"""A journal goes on at another host: under that one's key, which the session's own key names."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.verdict import Break, VerdictKind
from unit.journaling import HOST, Journal, began, typed

OTHER = SigningKey(b"o" * 32)


def moved(directory: Path, *, named: bool = True, limit: int = 1 << 20) -> Journal:
    """Written by one host, then by the other; `named`: as the session's key says."""
    journal = Journal(directory, limit=limit).type(20).sealed()
    journal.writer.close()
    writer = JournalWriter.open(str(directory), journal.session, OTHER.sign, check, limit=limit)
    assert writer.host_key == HOST.public
    if named:
        writer.record(1002.0, 2, "", began(host=OTHER))
    for number in range(30, 50):
        writer.record(1003.0, 2, "alice", typed(number))
    writer.seal(1004.0, 2)
    writer.finish()
    journal.writer = writer
    return journal


@pytest.mark.parametrize("limit", [1 << 20, 700], ids=["one segment", "many"])
@pytest.mark.parametrize("thorough", [False, True])
def test_it_is_intact_across_both_hosts(tmp_path: Path, limit: int, thorough: bool) -> None:
    journal = moved(tmp_path, limit=limit)
    verdict = JournalReader(str(tmp_path)).verify(journal.session, check, thorough=thorough)
    assert (verdict.outcome, verdict.host_key) == (VerdictKind.INTACT, OTHER.public)
    assert verdict.signed_through == verdict.last_seq


def test_the_other_host_goes_on_with_it_again(tmp_path: Path) -> None:
    journal = moved(tmp_path)
    journal.writer.close()
    writer = JournalWriter.open(str(tmp_path), journal.session, OTHER.sign, check, whole=False)
    assert writer.host_key == OTHER.public
    writer.record(1005.0, 2, "alice", typed(60))
    writer.seal(1006.0, 2)
    writer.finish()
    writer.close()
    verdict = JournalReader(str(tmp_path)).verify(journal.session, check)
    assert verdict.outcome is VerdictKind.INTACT


def test_a_host_that_the_sessions_key_did_not_name_cannot_go_on_with_it(tmp_path: Path) -> None:
    journal = moved(tmp_path, named=False)
    verdict = JournalReader(str(tmp_path)).verify(journal.session, check)
    assert (verdict.outcome, verdict.kind) == (VerdictKind.DAMAGED, Break.BAD_SIGNATURE)


def test_nor_one_that_forges_the_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path).type(5).sealed()
    journal.writer.close()
    writer = JournalWriter.open(str(tmp_path), journal.session, OTHER.sign, check)
    forged = began(host=OTHER)
    writer.record(1002.0, 2, "", forged.replace(binding=OTHER.sign(b"this host may")))
    writer.seal(1004.0, 2)
    writer.finish()
    verdict = JournalReader(str(tmp_path)).verify(journal.session, check)
    assert (verdict.outcome, verdict.kind) == (VerdictKind.DAMAGED, Break.BAD_SIGNATURE)
