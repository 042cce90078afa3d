"""The judgement of a journal: the verdict on its bytes, its status (N8), how it was closed, and
which session it follows (N9). The same from a host and from a directory alone.
"""

from __future__ import annotations

from holdfast.journal.entries import Began, Discontinued, EndedEntry
from holdfast.journal.status import Continuity, status
from holdfast.model.discontinuity import cause_of_text
from holdfast.model.errors import HoldfastError, JournalDamaged
from holdfast.model.info import Judgement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.journal.entries import Entry
    from holdfast.journal.reading import JournalReading
    from holdfast.journal.signatures import Check
    from holdfast.journal.verdict import Verdict

_TAIL_ENTRIES = 64  # searched for the closing entry, which few entries can follow


def judge(
    reader: JournalReading,
    session: str,
    check: Check,
    *,
    thorough: bool = False,
    known_through: int = 0,
) -> Judgement:
    """`known_through`: the last entry known from another source."""
    verdict = reader.verify(session, check, thorough=thorough)
    known = _entries(reader, verdict)
    judged = status(verdict, known, known_through)
    began = known[0].body if known else None
    ended = next(filter(None, map(_discontinued, reversed(known))), None)
    return Judgement(
        session=session,
        verdict=str.__str__(verdict.outcome),
        status=str.__str__(judged.continuity),
        records=verdict.last_seq,
        seals=verdict.seals,
        bytes=verdict.size,
        trustworthy_through=verdict.trustworthy_through,
        signed_through=verdict.signed_through,
        broken_at=verdict.broken_seq or None,
        problem=str.__str__(verdict.kind) if verdict.kind else "",
        detail=_detail(verdict, judged.reason, judged.continuity),
        torn_bytes=verdict.torn_size,
        gap_from=judged.gap_from,
        gap_to=judged.gap_to,
        point=judged.point,
        epoch=judged.epoch,
        closed_by=verdict.closed_by,
        **_ending(reader, verdict, ended, check),
        **_lineage(began),
    )


def _entries(reader: JournalReading, verdict: Verdict) -> list[Entry]:
    """The first entry and the last ones; all of them when the incarnation changed in between. Of a
    damaged journal, those before the damage, as far as it can be read."""
    last = verdict.trustworthy_through
    known: list[Entry] = []
    if last:
        try:
            known = list(reader.entries(1, 1))
            known += reader.entries(max(2, last - _TAIL_ENTRIES), last)
            if known and known[0].epoch != known[-1].epoch:
                known = list(reader.entries(1, last))
        except HoldfastError:  # already in the verdict
            return known[:1]
    return known


def _discontinued(entry: Entry) -> Discontinued | None:
    """The discontinuity in an entry. A lost session did not end by itself either."""
    body = entry.body
    if isinstance(body, EndedEntry) and body.lost is not None:
        return Discontinued(body.lost, entry.seq - 1, entry.parent)
    return body if isinstance(body, Discontinued) else None


def _detail(verdict: Verdict, reason: str, word: Continuity) -> str:
    if word is Continuity.UNVERIFIABLE and verdict.kind is None:
        return reason  # more is known of than is here
    return verdict.text()


def _ending(
    reader: JournalReading, verdict: Verdict, ended: Discontinued | None, check: Check
) -> dict[str, Any]:
    """The statement of discontinuity: the journal's last entry, whose seal the verdict judged, or
    beside the journal, with a signature of its own."""
    if ended is not None:
        return {
            "discontinued": True,
            "reason": ended.reason,
            "cause": ended.cause or cause_of_text(ended.reason),
            "discontinued_after": ended.last_seq,
            "statement": "entry",
        }
    try:
        beside = reader.discontinuity()
    except JournalDamaged:
        return {"statement": "invalid"}
    if beside is None:
        return {}
    # Without the first entry the expected key is unknown: use the one it names.
    if not beside.is_signed(check, verdict.host_key):
        return {"statement": "invalid"}
    return {
        "discontinued": True,
        "reason": beside.reason,
        "cause": beside.cause or cause_of_text(beside.reason),
        "discontinued_after": beside.last_seq,
        "statement": "beside",
    }


def _lineage(began: object) -> dict[str, Any]:
    if not isinstance(began, Began) or not began.predecessor:
        return {}
    return {"predecessor": began.predecessor, "predecessor_seq": began.predecessor_seq}
