"""Whether a Cedar rule can apply to an action at all, as far as that is known when nothing but the
action is. A build executes a thousand programs in a second; a policy without a word about that is
not asked for each.

Three-valued: what depends on anything else is not known (None), and counts as "it may".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def may_refuse(bodies: Iterable[dict[str, Any]], action: str) -> bool:
    """Whether these rules can say anything but permit: one forbids that may apply, or none permits
    whatever else is true."""
    permitted = False
    for body in bodies:
        applies = _applies(body, action)
        if body["effect"] == "forbid" and applies is not False:
            return True
        if body["effect"] == "permit" and applies is True:
            permitted = True
    return not permitted


def _applies(body: dict[str, Any], action: str) -> bool | None:
    known = [_all_of(body[part]) for part in ("principal", "resource")]
    known.append(_in_head(body["action"], action))
    for condition in body["conditions"]:
        value = _value(condition["body"], action)
        known.append(value if condition["kind"] == "when" else _not(value))
    return _and(known)


def _all_of(scope: dict[str, Any]) -> bool | None:
    return True if scope["op"] == "All" else None


def _in_head(scope: dict[str, Any], action: str) -> bool | None:
    if scope["op"] == "All":
        return True
    named = [*scope.get("entities", ()), *([scope["entity"]] if "entity" in scope else [])]
    return any(each["id"] == action for each in named)


def _value(node: Any, action: str) -> bool | None:
    if not isinstance(node, dict) or len(node) != 1:
        return None
    ((operator, parts),) = node.items()
    if operator == "Value":
        return parts if isinstance(parts, bool) else None
    if operator == "!":
        return _not(_value(parts["arg"], action))
    if operator in ("&&", "||"):
        values = [_value(parts[side], action) for side in ("left", "right")]
        return _and(values) if operator == "&&" else _not(_and(map(_not, values)))
    if operator in ("==", "!=", "in") and parts["left"] == {"Var": "action"}:
        named = parts["right"].get("Set", [parts["right"]])
        ids = [_entity(each) for each in named]
        if None in ids:
            return None
        return (action in ids) is (operator != "!=")
    return None


def _entity(node: Any) -> str | None:
    try:
        return str(node["Value"]["__entity"]["id"])
    except (KeyError, TypeError):
        return None


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    if False in found:
        return False
    return None if None in found else True
