"""A host for which no policy was ever set."""

from __future__ import annotations

from holdfast.model.gate import ALLOWED, EffectKind, ProposedEffect, Verdict


class NoPolicy:
    """A GatePolicy by which nothing is in force anywhere."""

    def in_force(self, session: str, labels: tuple[str, ...]) -> bool:
        return False

    def concerns(self, session: str, labels: tuple[str, ...], kind: EffectKind) -> bool:
        return False

    def judge(self, effect: ProposedEffect) -> Verdict:
        return ALLOWED
