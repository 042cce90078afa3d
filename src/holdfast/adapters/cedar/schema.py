"""What a Cedar policy may ask about. A policy that asks for anything else is refused when it is
set: at the time of a decision Cedar skips a rule that fails, and a skipped `forbid` forbids
nothing."""

from __future__ import annotations

import json
from typing import Any

from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, EffectKind, Part
from holdfast.model.gate_facts import Score
from holdfast.model.record import Record
from holdfast.ports.policy_engine import Question

ENTITY_OF = {kind: kind.value.capitalize() for kind in ActorKind}  # Human, Agent, Service, Device

# One line for each thing a rule may ask; docs/gate.md says the same in a table.
_CONTEXT = """
  actor: String, name: String, triggers: Bool, parts: Set<String>, score: Long, actions: Long,
  actors: Set<String>, kinds: Set<String>, others: Bool, shaped: Bool,
  text: String, known: Bool, parsed: Bool, dynamic: Bool, opaque: Bool, unread: Bool, nested: Bool,
  commands: Set<String>, lines: Set<String>, pipelines: Set<String>, matches: Set<String>,
  destructive: Set<String>, isDestructive: Bool,
  writes: Set<String>, redirects: Set<String>, writesOutside: Bool, writesUnknown: Bool,
  paths: Set<String>, pathsOutside: Bool,
  hosts: Set<String>, usesNetwork: Bool, assigned: Set<String>, functions: Set<String>,
  environment: Set<String>, path: String, argv: Set<String>, cwd: String, destination: String,
  turnHolder: String, epoch: Long,
"""

SCHEMA = (
    f"entity {', '.join(ENTITY_OF.values())} = {{ name: String }};\n"
    "entity Session = { name: String, labels: Set<String>, level: String, workspace: String };\n"
    f"type Facts = {{{_CONTEXT}}};\n"
    f"action {', '.join(json.dumps(each.value) for each in EffectKind)} appliesTo {{\n"
    f"  principal: [{', '.join(ENTITY_OF.values())}], resource: [Session], context: Facts\n"
    "};\n"
)


class Principal(Record):
    """One of those behind an effect: an actor, with all its parts in it."""

    contributor: Contributor
    parts: tuple[Part, ...]
    score: Score


def principals(question: Question) -> tuple[Principal, ...]:
    """Each actor once, in the order of the contributors."""
    found: dict[str, Principal] = {}
    for by, score in zip(question.effect.contributors, question.scores, strict=True):
        known = found.get(by.actor)
        parts = (*(known.parts if known is not None else ()), by.part)
        found[by.actor] = Principal(by, parts, score)
    return tuple(found.values())


def entities(question: Question, asked: tuple[Principal, ...]) -> str:
    """The session, and everybody behind the effect, as Cedar's JSON. Their ids are numbers: what
    people write stays in attributes, where nothing has to be escaped."""
    effect = question.effect
    session = {
        "name": effect.name,
        "labels": list(effect.labels),
        "level": effect.level,
        "workspace": effect.workspace,
    }
    actors = [
        {"uid": _uid(each, number), "attrs": {"name": each.contributor.name}, "parents": []}
        for number, each in enumerate(asked)
    ]
    return json.dumps([*actors, {"uid": _SESSION, "attrs": session, "parents": []}])


def requests(question: Question, asked: tuple[Principal, ...]) -> list[dict[str, Any]]:
    """Whether each of them may have this effect."""
    shared = _shared_context(question)
    return [
        {
            "principal": _uid(each, number),
            "action": {"type": "Action", "id": question.effect.kind.value},
            "resource": _SESSION,
            "context": {**shared, **_own_context(question, each)},
        }
        for number, each in enumerate(asked)
    ]


_SESSION = {"type": "Session", "id": "0"}


def _uid(principal: Principal, number: int) -> dict[str, str]:
    return {"type": ENTITY_OF[principal.contributor.kind], "id": str(number)}


def _own_context(question: Question, principal: Principal) -> dict[str, Any]:
    by = principal.contributor
    return {
        "actor": str(by.actor),
        "name": by.name,
        "triggers": by.actor == question.effect.actor,
        "parts": [each.value for each in principal.parts],
        "score": principal.score.percent,
        "actions": principal.score.actions,
    }


def _shared_context(question: Question) -> dict[str, Any]:
    effect, facts = question.effect, question.facts
    behind = effect.contributors
    return {
        "actors": sorted({each.name for each in behind}),
        "kinds": sorted({each.kind.value for each in behind}),
        "others": any(each.actor != effect.actor for each in behind),
        "shaped": any(each.part is Part.SHAPED for each in behind),
        "text": effect.text,
        "known": effect.text_known,
        "parsed": facts.parsed,
        "dynamic": facts.dynamic,
        "opaque": facts.opaque,
        "unread": facts.unread,
        "nested": facts.nested,
        "commands": list(facts.commands),
        "lines": list(facts.lines),
        "pipelines": list(facts.pipelines),
        "matches": list(question.matches),
        "destructive": list(facts.destructive),
        "isDestructive": bool(facts.destructive),
        "writes": list(facts.writes),
        "redirects": list(facts.redirects),
        "writesOutside": bool(facts.writes_outside),
        "writesUnknown": facts.writes_unknown,
        "paths": list(facts.paths),
        "pathsOutside": bool(facts.paths_outside),
        "hosts": list(facts.hosts),
        "usesNetwork": bool(facts.hosts),
        "assigned": list(facts.assigned),
        "functions": list(facts.functions),
        "environment": list(facts.environment),
        "path": effect.path,
        "argv": list(effect.argv),
        "cwd": effect.cwd,
        "destination": effect.destination,
        "turnHolder": str(effect.turn_holder),
        "epoch": effect.epoch,
    }
