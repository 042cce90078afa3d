"""The score of one action, and an actor's record of many.

    score = 0                                      refused as malformed, or by envelope or policy
    score = (success + 1 / (1 + side effects)) / 2  otherwise; success is 1 or 0

An action whose effects are not known has no score, and counts neither way. What was refused only
because somebody else was at work (a held turn, a busy shell) did not happen, and is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.model.errors import ActorRevoked, EnvelopeExpired, InvalidArgument, NotPermitted
from holdfast.model.measured import ActionScore, DayScore, Deviation, ScoreTotals

# Codes of refusals that are the actor's own doing: malformed, or not allowed.
INVALID = frozenset((
    InvalidArgument.code, NotPermitted.code, EnvelopeExpired.code, ActorRevoked.code,
    "gate_refused",
))  # fmt: skip
REFUSED = ActionScore(False, False, 0, {}, 0.0)
UNKNOWN = ActionScore(True, None, None, {}, None)


def score(missing: Sequence[Deviation], unexpected: Sequence[Deviation]) -> ActionScore:
    """Of an action that ran and was measured."""
    success = not missing
    count = len(unexpected)
    return ActionScore(
        True,
        success,
        count,
        dict(sorted(Counter(each.kind for each in unexpected).items())),
        (success + 1 / (1 + count)) / 2,
    )


def unmeasured(status: int | None, expected: int) -> ActionScore:
    """Of one that ran, and whose effects nobody could measure."""
    failed = status is not None and status != expected
    return UNKNOWN.replace(success=False) if failed else UNKNOWN


def with_action(totals: ScoreTotals, one: ActionScore) -> ScoreTotals:
    """These, and one more."""
    measured = one.valid and one.side_effects is not None
    return ScoreTotals(
        totals.actions + 1,
        totals.valid + one.valid,
        totals.measured + measured,
        totals.success + (measured and bool(one.success)),
        totals.clean + (measured and one.side_effects == 0),
        totals.side_effects + (one.side_effects or 0),
        totals.points + (one.score or 0.0),
        totals.scored + (one.score is not None),
    )


def together(days: Sequence[DayScore]) -> ScoreTotals:
    """All of these days."""
    fields = ScoreTotals._fields
    return ScoreTotals(*(sum(getattr(each.totals, name) for each in days) for name in fields))


def mean(totals: ScoreTotals) -> float | None:
    return totals.points / totals.scored if totals.scored else None
