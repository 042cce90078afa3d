"""How the documents write a record down: a heading, and a table with one row per field."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable
from typing import Any

from holdfast.model.record import Record

ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.+) \|$", re.MULTILINE)
_NAMES = {"str": "text", "None": "nil"}

Row = tuple[str, str, str]  # field, type, default


def sections(text: str) -> dict[str, str]:
    """The text under each second- and third-level heading, by the heading without backquotes."""
    parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def rows(section: str) -> list[Row]:
    return [found[:3] for found in ROW.findall(section)]


def expected_rows(kind: type[Record], *, without: Iterable[str] = ()) -> list[Row]:
    return [
        (field, _type(declared), _default(kind, field))
        for field, declared in declared_in(kind).items()
        if field not in without
    ]


def declared_in(kind: type[Record]) -> dict[str, str]:
    declared: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        declared.update(inspect.get_annotations(owner))
    return {field: declared[field] for field in kind._fields}


def _type(declared: str) -> str:
    if " | " in declared:
        return " or ".join(_type(arm) for arm in declared.split(" | "))
    if inner := re.fullmatch(r"tuple\[(.+), \.\.\.\]", declared):
        return f"list of {_type(inner[1])}"
    if inner := re.fullmatch(r"dict\[str, (.+)\]", declared):
        return f"map of {_type(inner[1])}"
    return _NAMES.get(declared, declared)


def _default(kind: type[Record], field: str) -> str:
    if field not in kind._defaults:
        return ""
    default = kind._defaults[field]
    if isinstance(default, bytes):
        return f"`{default.hex() or 'empty'}`"
    return f"`{json.dumps(default) if default is not None else 'nil'}`"


def from_json(value: Any) -> Any:
    """Plain data from a file of vectors, where bytes are written `{"hex": "..."}`."""
    if isinstance(value, dict):
        if set(value) == {"hex"}:
            return bytes.fromhex(value["hex"])
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value
