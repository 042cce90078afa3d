"""An actor's record, for a policy that judges by it."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.ids import ActorId
from holdfast.model.measured import ActorScore


class Scores(Protocol):
    """Scores of the actors of one host."""

    def of(self, actor: ActorId, days: int = 30) -> ActorScore:
        """Its last so many days, today among them. An actor without a record has counts of 0, and
        None for a score: that is not a good record."""
        ...
