"""An engine that decides by one policy, prepared beforehand. Replaceable: Cedar, or a service."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.gate import EffectKind, ProposedEffect, Verdict
from holdfast.model.gate_facts import Facts, Score
from holdfast.model.ids import ActorId
from holdfast.model.record import Record


class Question(Record):
    """What an engine judges by: the effect, what is known of it, and who approved it."""

    effect: ProposedEffect
    facts: Facts
    scores: tuple[Score, ...]  # of the effect's contributors, in their order
    matches: tuple[str, ...] = ()  # those of the policy's patterns that it could match
    # Of those who approved this very effect and had no hand in it: id, name and kind of each.
    approved: tuple[tuple[ActorId, str, str], ...] = ()


class PreparedPolicy(Protocol):
    """One policy, ready to be asked."""

    rules: int  # how many it has
    patterns: tuple[str, ...]  # patterns of commands that its rules ask about

    def concerns(self, kind: EffectKind) -> bool:
        """Whether it can say anything but `allow` of such an effect."""

    def decide(self, question: Question) -> Verdict:
        """At once. Raises nothing: what goes wrong is a refusal."""
        ...
