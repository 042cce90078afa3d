"""docs/protocol.md, its reference and its vectors say what the code says. What the reference has of
each field comes from the declarations; tests/unit/test_protocol_schema.py watches over those."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.turn.policy import POLICIES
from holdfast.core.turn.table import TurnStepKind
from holdfast.journal.status import Continuity
from holdfast.journal.verdict import Break, VerdictKind
from holdfast.model import actor, envelope, limits, shell_state, state
from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import ActorId, OperatorId
from holdfast.wire.frames import Decoder, encode, output_head
from holdfast.wire.messages import BY_TAG, access, journal, turn
from holdfast.wire.messages import admission as wire_admission
from holdfast.wire.messages import session as m
from holdfast.wire.messages.access import claim_text
from unit import documented
from unit.scripts import script

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "protocol.md").read_text(encoding="utf-8")
SECTIONS = documented.sections(TEXT)
REFERENCE = documented.sections((DOCS / "protocol-reference.md").read_text(encoding="utf-8"))
VECTORS = json.loads((DOCS / "protocol-vectors.json").read_text(encoding="utf-8"))


def test_the_reference_is_written_from_todays_schema() -> None:
    made = script("protocol-reference")
    assert made.REFERENCE.read_text(encoding="utf-8") == made.reference(), "run `make schema`"


def test_a_field_that_nobody_explained_is_an_error_not_an_empty_cell() -> None:
    made = script("protocol-reference")
    with pytest.raises(SystemExit, match=r"hello\.versions"):
        made.Reference(made._schema()).table("hello", {"versions": {"type": {"list": "int"}}})


def test_every_message_has_its_section() -> None:
    assert [tag for tag in BY_TAG if tag not in REFERENCE] == []


@pytest.mark.parametrize("tag", ["hello", "submit", "forward_data", "turn_event", "failed"])
def test_the_rows_of_a_message_are_its_fields_in_their_order(tag: str) -> None:
    kind = BY_TAG[tag]
    asked = issubclass(kind, m.Request | m.Answer)
    rows = [row[0] for row in documented.rows(REFERENCE[tag])]
    assert rows == [field for field in kind._fields if not (asked and field == "id")]


def test_the_version_is_the_one_described() -> None:
    assert f"version {m.PROTOCOL_VERSION}, over a unix stream socket" in TEXT


@pytest.mark.parametrize(
    ("title", "words"),
    [
        *((kind.__name__, kind) for kind in (envelope.Right, envelope.ScopeKind)),
        *((kind.__name__, kind) for kind in (actor.ActorKind, actor.Colour)),
        *((kind.__name__, kind) for kind in (shell_state.ChangeKind, shell_state.What)),
        *((kind.__name__, kind) for kind in (state.SessionState, state.Level)),
        # Declared as text: their words belong to packages that the messages may not import.
        ("turn_event", TurnStepKind),
        ("Judgement", VerdictKind),
        ("Judgement", Break),
        ("Judgement", Continuity),
    ],
)
def test_every_word_of_an_enumeration_is_named_where_it_is_used(
    title: str, words: type[StrEnum]
) -> None:
    assert [word for word in words if f"`{word}`" not in REFERENCE[title]] == []


def test_roles_and_turn_policies_are_named_as_they_are() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", REFERENCE["Roles"], re.MULTILINE)
    roles = {name: set(re.findall(r"`([\w.]+)`", rights)) for name, rights in rows}
    assert set(roles) == set(envelope.ROLES)
    for name, rights in envelope.ROLES.items():
        assert roles[name] == set(rights) or (name == "admin" and roles[name] == set()), name
    assert all(f"`{name}`" in SECTIONS["The turn"] for name in POLICIES)


def test_every_request_about_authority_has_its_right_named() -> None:
    modules = (access, turn, journal, wire_admission)
    asked = [kind.tag for module in modules for kind in vars(module).values() if _is_request(kind)]
    assert len(asked) > 20
    named = set(re.findall(r"`(\w+)`", SECTIONS["What each request needs"]))
    assert [tag for tag in asked if tag not in named] == []


def _is_request(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, m.Request) and bool(kind.tag)


def test_a_claim_is_signed_over_the_bytes_described() -> None:
    from holdfast.adapters.signing import SigningKey

    vector = VECTORS["claim"]
    key = SigningKey(bytes.fromhex(vector["actor_seed"]))
    assert key.public.hex() == vector["actor_key"]
    assert ActorId.of_key(key.public) == vector["actor"]
    host_key, challenge = bytes.fromhex(vector["host_key"]), bytes.fromhex(vector["challenge"])
    signed = b"holdfast claim v1\0" + host_key + challenge + bytes.fromhex(vector["operator"])
    assert claim_text(host_key, challenge, OperatorId(vector["operator"])) == signed
    assert signed.hex() == vector["signed"]
    assert key.sign(signed).hex() == vector["signature"]


def test_limits_have_the_values_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", TEXT, re.MULTILINE)
    assert rows
    for name, value in rows:
        assert getattr(limits, name) == int(value), name


# -- vectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda vector: vector["name"])
def test_a_vector_decodes_to_its_fields_and_back(vector: dict[str, Any]) -> None:
    expected = BY_TAG[vector["t"]].unpack(documented.from_json(vector["fields"]))
    (decoded,) = Decoder(limits.SNAPSHOT_MAX_BYTES).feed(bytes.fromhex(vector["frame"]))
    assert decoded == expected
    assert Decoder(limits.SNAPSHOT_MAX_BYTES).feed(encode(expected)) == [expected]


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["why"])
def test_a_vector_to_be_refused_is(vector: dict[str, str]) -> None:
    with pytest.raises(ProtocolViolation):
        Decoder().feed(bytes.fromhex(vector["frame"]))


def test_every_kind_of_message_but_the_plainest_has_a_vector() -> None:
    shown = {vector["t"] for vector in VECTORS["messages"]}
    assert {"hello", "welcome", "run", "attach", "attached", "input", "accepted"} <= shown
    assert {"output", "resync", "gap", "closed", "state", "failed", "exec", "exec_ended"} <= shown
    assert {"claim", "actor_shown", "grant", "envelopes", "request_turn", "turn_shown"} <= shown
    assert {"turn_event", "turn_lost", "handed_over", "dismissed", "seize", "halted"} <= shown
    assert {"journal", "journal_shown", "verified", "proven", "blamed"} <= shown


def test_output_sent_straight_from_the_ring_is_the_same_message() -> None:
    frame = output_head(3, 70000, 5) + b"hello"
    assert Decoder().feed(frame) == [m.Output(3, 70000, b"hello")]
