"""docs/protocol.md and its vectors say what the code says: every message, field, type, default
and limit, and nothing that is not there."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import graph, info, limits, size, state
from holdfast.model.errors import ProtocolViolation
from holdfast.model.record import Record
from holdfast.wire import messages as m
from holdfast.wire.frames import Decoder, encode, output_head

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "protocol.md").read_text(encoding="utf-8")
VECTORS = json.loads((DOCS / "protocol-vectors.json").read_text(encoding="utf-8"))

_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.+) \|$", re.MULTILINE)
_NAMES = {"str": "text", "None": "nil"}


def sections() -> dict[str, str]:
    """The text under each third-level heading, by the heading without its backquotes."""
    parts = re.split(r"^#{2,3} (.+)$", TEXT, flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def values() -> dict[str, type[Record]]:
    """Every record that a message may carry, however deep."""
    found: dict[str, type[Record]] = {}
    for module in (graph, info, size, state):
        for name, kind in vars(module).items():
            if isinstance(kind, type) and issubclass(kind, Record) and kind is not Record:
                found[name] = kind
    carried: dict[str, type[Record]] = {}
    open_ends: list[type[Record]] = list(m.BY_TAG.values())
    while open_ends:
        for declared in declared_in(open_ends.pop()).values():
            for name in re.findall(r"\w+", declared):
                if name in found and name not in carried:
                    carried[name] = found[name]
                    open_ends.append(found[name])
    return carried


def declared_in(kind: type[Record]) -> dict[str, str]:
    declared: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        declared.update(inspect.get_annotations(owner))
    return {field: declared[field] for field in kind._fields}


def documented_type(declared: str) -> str:
    if " | " in declared:
        return " or ".join(documented_type(arm) for arm in declared.split(" | "))
    if inner := re.fullmatch(r"tuple\[(.+), \.\.\.\]", declared):
        return f"list of {documented_type(inner[1])}"
    if inner := re.fullmatch(r"dict\[str, (.+)\]", declared):
        return f"map of {documented_type(inner[1])}"
    return _NAMES.get(declared, declared)


def documented_default(kind: type[Record], field: str) -> str:
    if field not in kind._defaults:
        return ""
    default = kind._defaults[field]
    return f"`{json.dumps(default) if default is not None else 'nil'}`"


def expected_rows(kind: type[Record]) -> list[tuple[str, str, str]]:
    asked = issubclass(kind, m.Request | m.Answer)
    return [
        (field, documented_type(declared), documented_default(kind, field))
        for field, declared in declared_in(kind).items()
        if not (asked and field == "id")  # said once for all
    ]


@pytest.mark.parametrize("tag", m.BY_TAG)
def test_a_message_is_documented_field_by_field(tag: str) -> None:
    rows = [found[:3] for found in _ROW.findall(sections()[tag])]
    assert rows == expected_rows(m.BY_TAG[tag])


@pytest.mark.parametrize("name", values())
def test_a_value_is_documented_field_by_field(name: str) -> None:
    rows = [found[:3] for found in _ROW.findall(sections()[name])]
    assert rows == expected_rows(values()[name])


def test_nothing_is_documented_that_does_not_exist() -> None:
    described = {title for title, body in sections().items() if _ROW.search(body)}
    assert described <= {*m.BY_TAG, *values(), "Frames"}


def test_the_version_is_the_one_described() -> None:
    assert f"version {m.PROTOCOL_VERSION}, over a unix stream socket" in TEXT


def test_states_and_levels_are_all_named() -> None:
    assert all(f"`{one}`" in sections()["Session states"] for one in state.SessionState)
    assert all(f"`{one}`" in sections()["Levels"] for one in state.Level)


def test_limits_have_the_values_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", TEXT, re.MULTILINE)
    assert rows
    for name, value in rows:
        assert getattr(limits, name) == int(value), name


# -- vectors ----------------------------------------------------------------------------------


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"hex"}:
            return bytes.fromhex(value["hex"])
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda vector: vector["name"])
def test_a_vector_decodes_to_its_fields_and_back(vector: dict[str, Any]) -> None:
    expected = m.BY_TAG[vector["t"]].unpack(_from_json(vector["fields"]))
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


def test_output_sent_straight_from_the_ring_is_the_same_message() -> None:
    frame = output_head(3, 70000, 5) + b"hello"
    assert Decoder().feed(frame) == [m.Output(3, 70000, b"hello")]
