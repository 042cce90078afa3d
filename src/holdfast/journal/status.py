"""Is this still the one history it claims to be? In the words of N8: continuous, forked,
unverifiable (with the gap), migrated (with the point). Judged from a verdict and the entries; an
opinion about neither the session's processes nor who was right in a fork.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.journal.entries import Began
from holdfast.journal.verdict import Break, Verdict, VerdictKind
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.journal.entries import Entry


class Continuity(StrEnum):
    CONTINUOUS = "continuous"  # one unbroken, signed history on one host
    FORKED = "forked"  # the host signed two histories
    UNVERIFIABLE = "unverifiable"  # something is missing or altered; the gap says where
    MIGRATED = "migrated"  # unbroken, over more than one host; the point says where


class Status(Record):
    """The word, and the place it is about."""

    continuity: Continuity
    gap_from: int = 0  # unverifiable or forked: the first entry not to be relied upon
    gap_to: int = 0  # the last one known to be missing or altered; 0: the end is not known
    point: int = 0  # the first entry of the latest incarnation; 0: there was none before it
    epoch: int = 0  # of the latest incarnation seen
    reason: str = ""  # why it is forked or unverifiable


def status(verdict: Verdict, entries: Iterable[Entry], known_through: int = 0) -> Status:
    """`entries` in order, all or only some (those the caller has read anyway); `known_through` is
    the last entry that the head, a proof or a predecessor's record knows of."""
    epoch = point = 0
    hosts: set[bytes] = set()
    for entry in entries:
        if entry.seq > verdict.trustworthy_through:
            break
        if epoch and entry.epoch > epoch:
            point = entry.seq
        epoch = max(epoch, entry.epoch)
        if isinstance(entry.body, Began):
            hosts.add(entry.body.host_key)
    reason = ""
    if verdict.kind is Break.FORKED:
        word, reason = Continuity.FORKED, verdict.detail
    elif verdict.outcome is VerdictKind.DAMAGED:
        word, reason = Continuity.UNVERIFIABLE, f"{verdict.kind}: {verdict.detail}"
    elif known_through > verdict.last_seq:
        word, reason = Continuity.UNVERIFIABLE, f"entry {known_through} is known and not here"
    else:
        # A lease that lapsed and was held again is a new epoch, and nothing moved.
        word = Continuity.MIGRATED if len(hosts) > 1 else Continuity.CONTINUOUS
    whole = word in (Continuity.CONTINUOUS, Continuity.MIGRATED)
    return Status(
        word,
        gap_from=0 if whole else verdict.trustworthy_through + 1,
        gap_to=0 if whole else max(known_through, verdict.broken_seq),
        point=point,
        epoch=epoch,
        reason=reason,
    )
