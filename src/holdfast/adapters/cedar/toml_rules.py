"""Rules in TOML, for those who need no more than "who, what, then": compiled to Cedar.

    default = "allow"

    [[rule]]
    name = "no-network"
    who = ["agent"]
    hosts = true
    then = "refuse"

A rule matches if everything that it names is so. The strictest rule that matches counts. Rules that
refuse or hold by what a line *does* also match a line that could not be read (`unread = false`
turns that off): else nobody would have to break a rule, but only to write it strangely.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from holdfast.adapters.cedar.policy_text import wrong
from holdfast.adapters.cedar.schema import ENTITY_OF
from holdfast.model.actor import ActorKind
from holdfast.model.errors import PolicyInvalid
from holdfast.model.gate import EffectKind

_OUTCOMES = ("allow", "refuse", "hold")

# Key -> the set of the context that it asks about.
_SETS = {
    "commands": "commands", "destroys": "destructive", "to": "hosts", "assigns": "assigned",
    "lines": "matches", "actors": "actors",
}  # fmt: skip
# Key -> the yes or no of the context.
_FLAGS = {
    "destructive": "isDestructive", "network": "usesNetwork", "writes_outside": "writesOutside",
    "paths_outside": "pathsOutside", "nested": "nested", "dynamic": "dynamic", "shaped": "shaped",
    "others": "others", "triggers": "triggers",
}  # fmt: skip
# Of these a line that could not be read may be either.
_OF_TEXT = frozenset(
    ("commands", "destroys", "to", "assigns", "lines", "destructive", "network", "writes_outside",
     "paths_outside", "nested", "dynamic")
)  # fmt: skip
_OTHER = ("name", "who", "what", "labels", "then", "reason", "quorum", "approvers", "unread",
          "score_below", "score_from", "actions_from")  # fmt: skip
_KNOWN = (*_SETS, *_FLAGS, *_OTHER)


def to_cedar(text: str) -> str:
    """The same rules in Cedar. Raises PolicyInvalid."""
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise wrong(int(found[1]) if found else 1, f"not TOML: {error}") from error
    lines = _lines_of_rules(text)
    unknown = set(read) - {"default", "rule"}
    if unknown:
        raise wrong(1, f"unknown key {sorted(unknown)[0]!r}; known are default and rule")
    default, rules = read.get("default", "allow"), read.get("rule", [])
    if default not in _OUTCOMES:
        raise wrong(1, f"default is one of {', '.join(_OUTCOMES)}")
    if not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        raise wrong(1, "rules are written as [[rule]]")
    compiled = [
        _compiled(rule, number, lines[number - 1] if number <= len(lines) else 1)
        for number, rule in enumerate(rules, 1)
    ]
    return "\n".join(_statements(default, compiled)) + "\n"


def _lines_of_rules(text: str) -> list[int]:
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if re.match(r"\s*\[\[\s*rule\s*\]\]", line)
    ]


class _Compiled:
    """One rule, in parts of Cedar."""

    def __init__(self, name: str, then: str, notes: str, scope: str, condition: str) -> None:
        self.name, self.then, self.notes = name, then, notes
        self.scope, self.condition = scope, condition


def _statements(default: str, rules: list[_Compiled]) -> Iterator[str]:
    if default != "refuse":
        yield '@id("default") permit(principal, action, resource);'
    if default == "hold":
        allowed = " || ".join(f"({each.condition})" for each in rules if each.then == "allow")
        unless = f" unless {{ {allowed} }}" if allowed else ""
        yield (
            '@id("default-hold") @hold("") @reason("this policy holds what no rule allows") '
            f"forbid(principal, action, resource){unless};"
        )
    for rule in rules:
        head = f"@id({_text(rule.name)})"
        when = f" when {{ {rule.condition} }};"
        if rule.then == "allow":
            if default == "refuse":
                yield f"{head} permit{rule.scope}{when}"
            continue
        if rule.then == "hold" and default == "refuse":
            yield f"@id({_text(f'{rule.name}.permit')}) permit{rule.scope}{when}"
        yield f"{head} {rule.notes}forbid{rule.scope}{when}"


def _compiled(rule: dict[str, Any], number: int, line: int) -> _Compiled:
    for key in rule:
        if key not in _KNOWN:
            raise wrong(line, f"unknown key {key!r}; known are {', '.join(sorted(_KNOWN))}")
    name, then = rule.get("name", f"rule-{number}"), rule.get("then")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,55}", name):
        raise wrong(line, "name is letters, digits, '_', '-', at most 56")
    if then not in _OUTCOMES:
        raise wrong(line, f"then is one of {', '.join(_OUTCOMES)}")
    if then != "hold" and ("quorum" in rule or "approvers" in rule):
        raise wrong(line, 'quorum and approvers are for rules with then = "hold"')
    return _Compiled(name, then, _notes(rule, then, line), _SCOPE, _condition(rule, then, line))


_SCOPE = "(principal, action, resource)"


def _notes(rule: dict[str, Any], then: str, line: int) -> str:
    reason = rule.get("reason", "")
    if not isinstance(reason, str):
        raise wrong(line, "reason is a text")
    found = [f"@reason({_text(reason)})"] if reason else []
    if then == "hold":
        found.append('@hold("")')
        quorum = rule.get("quorum", 1)
        if type(quorum) is not int:
            raise wrong(line, "quorum is a number")
        found.append(f'@quorum("{quorum}")')
        approvers = _texts(rule, "approvers", line)
        if approvers:
            found.append(f"@approvers({_text(', '.join(approvers))})")
    return "".join(f"{each} " for each in found)


def _condition(rule: dict[str, Any], then: str, line: int) -> str:
    about, of_text = list(_about(rule, line)), list(_of_text(rule, line))
    for key, asks in (("score_below", "<"), ("score_from", ">=")):
        if key in rule:
            about.append(f"context.score {asks} {_number(rule, key, line)}")
    if "actions_from" in rule:
        about.append(f"context.actions >= {_number(rule, 'actions_from', line)}")
    unread = rule.get("unread", True)
    if type(unread) is not bool:
        raise wrong(line, "unread is true or false")
    if of_text:
        text = " && ".join(of_text)
        # To allow something it must have been read; to stop something it need not.
        if then == "allow":
            about.append(f"{text} && !context.unread")
        else:
            about.append(f"(({text}) || context.unread)" if unread else f"({text})")
    return " && ".join(about) or "true"


def _about(rule: dict[str, Any], line: int) -> Iterator[str]:
    kinds = _texts(rule, "who", line)
    for kind in kinds:
        if kind not in list(ActorKind):
            raise wrong(line, f"who is some of {', '.join(ActorKind)}; not {kind!r}")
    if kinds:
        yield "(" + " || ".join(f"principal is {ENTITY_OF[ActorKind(k)]}" for k in kinds) + ")"
    effects = _texts(rule, "what", line)
    for effect in effects:
        if effect not in list(EffectKind):
            raise wrong(line, f"what is some of {', '.join(EffectKind)}; not {effect!r}")
    if effects:
        yield "(" + " || ".join(f"action == Action::{_text(each)}" for each in effects) + ")"
    if labels := _texts(rule, "labels", line):
        yield f"resource.labels.containsAny({_set(labels)})"
    if "actors" in rule:
        yield f"context.actors.containsAny({_set(_texts(rule, 'actors', line))})"
    for key in ("shaped", "others", "triggers"):
        if key in rule:
            yield _flag(rule, key, line)


def _of_text(rule: dict[str, Any], line: int) -> Iterator[str]:
    for key in _SETS:
        if key in rule and key in _OF_TEXT:
            yield f"context.{_SETS[key]}.containsAny({_set(_texts(rule, key, line))})"
    for key in _FLAGS:
        if key in rule and key in _OF_TEXT:
            yield _flag(rule, key, line)


def _flag(rule: dict[str, Any], key: str, line: int) -> str:
    if type(rule[key]) is not bool:
        raise wrong(line, f"{key} is true or false")
    asked = f"context.{_FLAGS[key]}"
    if key == "writes_outside":  # what it writes when it runs may be outside
        asked = "(context.writesOutside || context.writesUnknown)"
    return asked if rule[key] else f"!{asked}"


def _number(rule: dict[str, Any], key: str, line: int) -> int:
    value = rule[key]
    if type(value) is not int or not 0 <= value <= 1_000_000_000:
        raise wrong(line, f"{key} is a number")
    return value


def _texts(rule: dict[str, Any], key: str, line: int) -> list[str]:
    value = rule.get(key, [])
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise wrong(line, f"{key} is a text, or a list of texts")
    if key in rule and not found:
        raise wrong(line, f"{key} is empty: it would match nothing")
    return found


def _set(texts: list[str]) -> str:
    return f"[{', '.join(_text(each) for each in texts)}]"


def _text(value: str) -> str:
    """As Cedar writes a text."""
    if any(not char.isprintable() for char in value):
        raise PolicyInvalid(f"not a printable text: {value[:40]!r}")
    return json.dumps(value, ensure_ascii=False)
