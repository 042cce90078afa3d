"""Effects and policies for tests of the gate: a line, who had a part in it, and what is said."""

from __future__ import annotations

import posixpath

from holdfast.adapters.bash_grammar.parser import BashGrammar
from holdfast.adapters.cedar.engine import CedarPolicy
from holdfast.adapters.cedar.starters import starter
from holdfast.adapters.cedar.toml_rules import to_cedar
from holdfast.core.gate.effect_facts import facts_of
from holdfast.core.gate.patterns import matching
from holdfast.model.actor import Actor
from holdfast.model.gate import Contributor, EffectKind, Part, ProposedEffect, Verdict
from holdfast.model.gate_facts import Facts, Score
from holdfast.model.ids import ActorId, SessionId
from holdfast.ports.policy_engine import PreparedPolicy, Question

SESSION = SessionId("0" * 26)
WORKSPACE = "/srv/work"
ACTORS = {
    name: Actor.of(bytes([number]) * 32, name, kind, uid=1000, created_at=0.0)
    for number, (name, kind) in enumerate(
        {"alice": "human", "bob": "human", "carol": "human", "bot": "agent"}.items(), 1
    )
}
GRAMMAR = BashGrammar()


def part(name: str, part: Part = Part.TRIGGER) -> Contributor:
    actor = ACTORS[name]
    return Contributor(actor.id, name, actor.kind, part)


def effect(
    text: str = "",
    *by: Contributor,
    kind: EffectKind = EffectKind.LINE,
    approved: tuple[str, ...] = (),
    cwd: str = WORKSPACE,
    labels: tuple[str, ...] = (),
    session: SessionId = SESSION,
    argv: tuple[str, ...] = (),
    path: str = "",
    destination: str = "",
    text_known: bool = True,
) -> ProposedEffect:
    """By alice, if nobody is named."""
    behind = by or (part("alice"),)
    return ProposedEffect(
        session=session,
        name="work",
        labels=labels,
        level="plain",
        epoch=1,
        kind=kind,
        actor=behind[0].actor,
        contributors=behind,
        text=text,
        text_known=text_known,
        argv=argv,
        path=path,
        cwd=cwd,
        workspace=WORKSPACE,
        destination=destination,
        approved_by=tuple(ACTORS[name].id for name in approved),
    )


class Links:
    """A filesystem of symbolic links alone: a `PathLook`."""

    def __init__(self, links: dict[str, str] | None = None) -> None:
        self._links = links or {}

    def real(self, path: str) -> str:
        found = posixpath.normpath(path)
        for link, target in self._links.items():
            if found == link or found.startswith(f"{link}/"):
                return self.real(target + found[len(link) :])
        return found

    def home(self, user: str) -> str:
        return f"/home/{user}" if user else ""


class NoScores:
    """Nothing is known of anybody: an `ActorScores`."""

    def score(self, actor: ActorId) -> Score:
        return Score()


def facts(text: str, links: dict[str, str] | None = None, home: str = "/home/alice") -> Facts:
    return facts_of(effect(text), GRAMMAR.parse, Links(links).real, home)


def compiled(toml: str) -> CedarPolicy:
    return CedarPolicy(to_cedar(toml))


def started(name: str) -> CedarPolicy:
    return compiled(starter(name))


def asked(policy: PreparedPolicy, given: ProposedEffect, score: Score | None = None) -> Verdict:
    """As host/gate/effect_judge.py asks."""
    known = facts_of(given, GRAMMAR.parse, Links().real, "/home/alice")
    scores = tuple(score or Score() for _ in given.contributors)
    approved = tuple(
        (each.id, each.name, each.kind.value)
        for each in ACTORS.values()
        if each.id in given.approved_by
    )
    return policy.decide(
        Question(given, known, scores, matching(policy.patterns, known.lines), approved)
    )


def actor_of(actor: ActorId) -> Actor | None:
    return next((each for each in ACTORS.values() if each.id == actor), None)
