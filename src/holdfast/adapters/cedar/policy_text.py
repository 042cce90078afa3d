"""A Cedar text, checked before it may be in force: each statement alone, so that an error says in
which line its statement begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import cedarpy

from holdfast.adapters.cedar.schema import SCHEMA
from holdfast.model.errors import PolicyInvalid
from holdfast.model.record import Record

RULES_MAX = 1000  # of one policy: a decision asks each
QUORUM_MAX = 16

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ANNOTATIONS = ("id", "reason", "hold", "quorum", "approvers")
_schema = cedarpy.Schema.from_str(SCHEMA)


class PolicyRule(Record):
    """One statement."""

    id: str
    line: int  # in which it begins, from 1
    text: str
    hold: bool = False  # a forbid that approvals lift
    quorum: int = 1
    approvers: tuple[str, ...] = ()
    reason: str = ""
    patterns: tuple[str, ...] = ()


def rules_of(text: str) -> tuple[PolicyRule, ...]:
    """The rules of a text. Raises PolicyInvalid, with line and reason, at the first wrong one."""
    found: list[PolicyRule] = []
    for line, statement in statements(text):
        rule = _rule(statement, line, len(found) + 1)
        twin = next((each for each in found if each.id == rule.id), None)
        if twin is not None:
            raise wrong(line, f"there is already a rule {rule.id!r}, in line {twin.line}")
        found.append(rule)
        if len(found) > RULES_MAX:
            raise wrong(line, f"a policy has at most {RULES_MAX} rules")
    if not found:
        raise wrong(1, "it has no rule")
    return tuple(found)


def wrong(line: int, why: str) -> PolicyInvalid:
    return PolicyInvalid(
        f"line {line}: {why}", hint="the policy that was in force stays; docs/gate.md has examples"
    )


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with its semicolon, and the line in which it begins."""
    line, begin, begin_line, at = 1, None, 1, 0
    while at < len(text):
        char = text[at]
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if begin is None and not char.isspace():
            begin, begin_line = at, line
        if char == '"':
            end = _string_end(text, at)
            line += text.count("\n", at, end)
            at = end
            continue
        if char == "\n":
            line += 1
        if char == ";" and begin is not None:
            yield begin_line, text[begin : at + 1]
            begin = None
        at += 1
    if begin is not None:
        yield begin_line, text[begin:]


def _string_end(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))


def _rule(statement: str, line: int, number: int) -> PolicyRule:
    try:
        parsed = json.loads(cedarpy.policies_to_json_str(statement))
    except (ValueError, RecursionError) as error:
        raise wrong(line, f"not a statement of Cedar: {error}") from error
    if parsed.get("templates") or len(parsed["staticPolicies"]) != 1:
        raise wrong(line, "a template is not a rule; write the statement without slots")
    (body,) = parsed["staticPolicies"].values()
    checked = cedarpy.validate_policies(statement, _schema)
    if not checked.validation_passed:
        raise wrong(
            line, "; ".join(dict.fromkeys(_without_id(e.error) for e in checked.errors[:3]))
        )
    notes = {key: value or "" for key, value in body.get("annotations", {}).items()}
    unknown = sorted(set(notes) - set(_ANNOTATIONS))
    if unknown:
        raise wrong(
            line, f"unknown annotation @{unknown[0]}; known are @{', @'.join(_ANNOTATIONS)}"
        )
    id = notes.get("id", "") or f"rule-{number}"
    if not _ID.fullmatch(id):
        raise wrong(line, f"not an id: {id[:80]!r}; letters, digits, '.', '_', '-', at most 64")
    forbids, hold = body["effect"] == "forbid", "hold" in notes
    if hold and not forbids:
        raise wrong(line, "@hold is for forbid: what is held is forbidden until it is approved")
    if not hold and ("quorum" in notes or "approvers" in notes):
        raise wrong(line, "@quorum and @approvers are for rules with @hold")
    return PolicyRule(
        id=id,
        line=line,
        text=statement,
        hold=hold,
        quorum=_quorum(notes.get("quorum", "1"), line),
        approvers=tuple(
            each.strip() for each in notes.get("approvers", "").split(",") if each.strip()
        ),
        reason=notes.get("reason", "") or notes.get("hold", ""),
        patterns=tuple(dict.fromkeys(_patterns(body))),
    )


def _without_id(error: str) -> str:
    """Cedar's own name of the statement says nothing here."""
    return re.sub(r"for policy `policy\d+`, ", "", error)


def _quorum(text: str, line: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= QUORUM_MAX:
        raise wrong(line, f"not a quorum: {text[:20]!r}; a number from 1 to {QUORUM_MAX}")
    return int(text)


def _patterns(node: Any) -> Iterator[str]:
    """Texts that `context.matches` is asked for: the host has to look for these."""
    if isinstance(node, list):
        for each in node:
            yield from _patterns(each)
    elif isinstance(node, dict):
        for operator in ("contains", "containsAny", "containsAll"):
            asked = node.get(operator)
            if isinstance(asked, dict) and _is_matches(asked.get("left")):
                yield from _texts(asked.get("right"))
        for each in node.values():
            yield from _patterns(each)


def _is_matches(node: Any) -> bool:
    return bool(node == {".": {"left": {"Var": "context"}, "attr": "matches"}})


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(value := node.get("Value"), str):
            yield value
        elif isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))
        for each in node.get("Set", ()):
            yield from _texts(each)
