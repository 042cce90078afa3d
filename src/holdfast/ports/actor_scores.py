"""How actors have done so far, as a policy may judge by it."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.gate_facts import Score
from holdfast.model.ids import ActorId


class ActorScores(Protocol):
    """Of one host."""

    def score(self, actor: ActorId) -> Score:
        """At once, from memory: an effect waits for it."""
        ...
