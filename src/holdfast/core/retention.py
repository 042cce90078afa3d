"""Which ended sessions are removed from disk: those that ended too long ago, and then the oldest
until the rest is small enough. What somebody still has to hear of is kept, and so is the living:
it is not asked about here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from holdfast.model.ids import SessionId
from holdfast.model.record import Record


class PruneReason(StrEnum):
    """The rule by which a session is removed."""

    AGE = "age"  # it ended longer ago than `retention_days`
    SIZE = "size"  # ended sessions together use more than `retention_bytes`


class EndedSession(Record):
    """What an ended session uses on disk."""

    id: SessionId
    ended_at: float
    bytes: int
    lost: bool  # nobody knows how it ended, and nobody has acknowledged that yet


def choose(
    ended: Iterable[EndedSession], now: float, keep_s: float, keep_bytes: int
) -> list[tuple[EndedSession, PruneReason]]:
    """Oldest first. A limit of 0 is none."""
    oldest_first = sorted(ended, key=lambda each: each.ended_at)
    total = sum(each.bytes for each in oldest_first)
    chosen = []
    for each in oldest_first:
        if each.lost:
            continue
        if keep_s and now - each.ended_at > keep_s:
            chosen.append((each, PruneReason.AGE))
        elif keep_bytes and total > keep_bytes:
            chosen.append((each, PruneReason.SIZE))
        else:
            continue
        total -= each.bytes
    return chosen
