"""What judges an effect before it commits. Policies are replaceable; the seam is not."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.gate import EffectKind, ProposedEffect, Verdict


class GatePolicy(Protocol):
    """Policies in force for one host."""

    def in_force(self, session: str, labels: tuple[str, ...]) -> bool:
        """Whether any policy applies there. If none does, nothing is held and nothing is asked."""
        ...

    def concerns(self, session: str, labels: tuple[str, ...], kind: EffectKind) -> bool:
        """Whether what it says of such an effect may be another thing than `allow`. If not, `judge`
        need not be asked: a build executes a thousand programs in a second."""
        ...

    def judge(self, effect: ProposedEffect) -> Verdict:
        """Now, against the state as it is. An error of the policy is a refusal, never a pass."""
        ...
