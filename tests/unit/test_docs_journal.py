"""docs/journal.md and its vectors say what the code says, and enough of it: a verifier written from
the page alone agrees with ours on every journal, whole or spoilt."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgpack
import pytest

from holdfast.adapters.signing import SigningKey, check
from holdfast.journal import proof
from holdfast.journal.encoding import decode, hash_of
from holdfast.journal.entries import BY_TAG, MAY_FOLLOW
from holdfast.journal.lineage import Discontinuity
from holdfast.journal.proof import SignedProof
from holdfast.journal.signatures import Head
from holdfast.journal.verdict import Break
from holdfast.model import limits
from unit import documented, journal_vectors
from unit.plain_verifier import Verifier, is_proof, witness

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "journal.md").read_text(encoding="utf-8")
SECTIONS = documented.sections(TEXT)
VECTORS: dict[str, Any] = json.loads((DOCS / "journal-vectors.json").read_text(encoding="utf-8"))

SESSION: str = VECTORS["session"]
RECORDS = [bytes.fromhex(each["record"]) for each in VECTORS["records"]]
FILES = {
    **{each["name"]: bytes.fromhex(each["bytes"]) for each in VECTORS["segments"]},
    "journal.head": bytes.fromhex(VECTORS["head"]["bytes"]),
}

# -- the page ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", BY_TAG)
def test_an_entry_is_documented_field_by_field(tag: str) -> None:
    assert documented.rows(SECTIONS[tag]) == documented.expected_rows(BY_TAG[tag])
    assert ("Sealed at once." in SECTIONS[tag]) is BY_TAG[tag].lifecycle
    assert ("Closes the journal." in SECTIONS[tag]) is (tag in MAY_FOLLOW)


def test_no_entry_is_documented_that_does_not_exist() -> None:
    assert {title for title, body in SECTIONS.items() if documented.ROW.search(body)} <= set(BY_TAG)


@pytest.mark.parametrize(
    ("title", "kind"),
    [("Keys and signatures", Head), ("Proofs", SignedProof), ("Discontinuity", Discontinuity)],
)
def test_what_is_signed_is_documented_in_its_order(
    title: str, kind: type[Head | SignedProof | Discontinuity]
) -> None:
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| .+ \|$", SECTIONS[title], re.MULTILINE)
    assert tuple(rows) == kind._fields


def test_every_fault_is_named() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \|$", SECTIONS["Verifying"], re.MULTILINE)
    assert rows == list(Break)


def test_what_may_follow_an_end_is_named() -> None:
    (step,) = re.findall(r"^5\. (.+?)^6\. ", SECTIONS["Verifying"], re.MULTILINE | re.DOTALL)
    ended, discontinued = (set(re.findall(r"`(\w+)`", part)) for part in step.split(";"))
    assert ended == {"ended", *MAY_FOLLOW["ended"]}
    assert discontinued == {"discontinued", *MAY_FOLLOW["discontinued"]}


def test_limits_have_the_values_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", TEXT, re.MULTILINE)
    assert rows
    assert all(getattr(limits, name) == int(value) for name, value in rows)
    assert f"signs {limits.JOURNAL_SEAL_S:.0f} s after" in TEXT
    assert f"within {limits.JOURNAL_BURST_S * 1000:.0f} ms" in SECTIONS["input"]


# -- the vectors ------------------------------------------------------------------------------


def test_the_vectors_are_what_is_written_today_byte_by_byte() -> None:
    assert journal_vectors.made() == VECTORS


def test_every_part_of_the_vectors_is_explained() -> None:
    section = SECTIONS["Test vectors"]
    assert [part for part in set(VECTORS) - {"about"} if f"`{part}`" not in section] == []
    assert [part for part in VECTORS["broken"][0] if f"`{part}`" not in section] == []


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda vector: str(vector["kind"]))
def test_a_record_has_the_fields_and_hash_that_are_said(vector: dict[str, Any]) -> None:
    record = bytes.fromhex(vector["record"])
    body, parent = documented.from_json(vector["body"]), bytes.fromhex(vector["parent"])
    names = ("seq", "at", "epoch", "actor", "actor_seq", "kind")
    fields = [*(vector[name] for name in names), body, parent]
    assert msgpack.packb(fields) == record
    assert hash_of(record).hex() == vector["hash"]
    entry = decode(record)
    assert (entry.seq, entry.body) == (vector["seq"], BY_TAG[vector["kind"]].unpack(body))
    file = bytes.fromhex(VECTORS["segments"][vector["segment"]]["bytes"])
    assert file[vector["offset"] + 8 :].startswith(record)


def test_signatures_are_by_the_keys_over_the_messages_that_are_said() -> None:
    session_key = SigningKey(bytes.fromhex(VECTORS["session_seed"]))
    host = SigningKey(bytes.fromhex(VECTORS["host_seed"]))
    assert session_key.public.hex() == VECTORS["session_key"]
    assert host.public.hex() == VECTORS["host_key"]
    bound = bytes.fromhex(VECTORS["binding"]["message"])
    assert session_key.sign(bound).hex() == VECTORS["binding"]["signature"]
    assert len(VECTORS["seals"]) > 2
    for seal in VECTORS["seals"]:
        assert host.sign(bytes.fromhex(seal["message"])).hex() == seal["signature"]
    head = Head.decode(FILES["journal.head"])
    assert host.sign(bytes.fromhex(VECTORS["head"]["message"])) == head.signature
    for part in ("proof", "discontinuity", "discontinuity_v1"):
        signed = bytes.fromhex(VECTORS[part]["message"])
        assert host.sign(signed).hex() == json.loads(VECTORS[part]["text"])["signature"]


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("case", VECTORS["broken"], ids=lambda case: str(case["why"]))
def test_a_spoilt_journal_is_judged_as_is_said(case: dict[str, Any], thorough: bool) -> None:
    found = journal_vectors.verdict(SESSION, _spoilt(case), thorough=thorough)
    assert (found.outcome, found.kind or "") == (case["verdict"], case["problem"])
    assert found.broken_seq == case["broken_at"]
    assert found.trustworthy_through == case["trustworthy_through"]
    assert found.signed_through == case["signed_through"]


@pytest.mark.parametrize("case", VECTORS["broken"], ids=lambda case: str(case["why"]))
def test_a_verifier_written_from_the_page_agrees(case: dict[str, Any]) -> None:
    files = _spoilt(case)
    segments = [files[name] for name in sorted(files) if name.endswith(".seg")]
    verifier = Verifier(SESSION)
    assert verifier.verify(segments, files.get("journal.head", b"")) == case["verdict"]
    assert verifier.signed_through == case["signed_through"]


def test_the_spoilt_journals_show_most_of_the_faults() -> None:
    shown = {case["problem"] for case in VECTORS["broken"]}
    assert {*Break} - shown == {Break.FORKED}  # which takes a second history
    assert "torn_tail" in {case["verdict"] for case in VECTORS["broken"]}


def test_a_proof_is_checked_from_the_page_as_by_us() -> None:
    span = VECTORS["range"]
    records = RECORDS[span["first"] - 1 : span["last"]]
    claimed = bytes.fromhex(span["witness"])
    assert len(claimed) == 36
    assert witness(SESSION, span["first"], span["last"], records) == claimed
    assert proof.check_witness(claimed, SESSION, span["first"], span["last"], records)
    ours = SignedProof.of_text(VECTORS["proof"]["text"])
    assert proof.check_signed(ours, check, records)
    fields = {**ours.pack()}
    assert is_proof(SESSION, fields, records)
    assert not is_proof(SESSION, {**fields, "epoch": 2}, records)


@pytest.mark.parametrize("form", ["discontinuity", "discontinuity_v1"])
def test_a_statement_of_discontinuity_is_by_the_host(form: str) -> None:
    statement = Discontinuity.of_text(VECTORS[form]["text"])
    assert (statement.cause is None) == form.endswith("v1")
    assert statement.is_signed(check, bytes.fromhex(VECTORS["host_key"]))
    assert not statement.replace(last_seq=1).is_signed(check)


def _spoilt(case: dict[str, Any]) -> dict[str, bytes]:
    edits = [
        (edit["file"], edit["offset"], edit["remove"], bytes.fromhex(edit["insert"]))
        for edit in case["edits"]
    ]
    return journal_vectors.spoilt(FILES, edits)
