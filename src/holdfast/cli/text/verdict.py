"""What is said of a journal, in plain words: for `hold verify` and `hold status`."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.text.discontinuity import reason_text
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.info import Judgement

_MEANING = {
    "altered": "bytes are not the ones that were written",
    "missing": "an entry is not there, and later ones are",
    "reordered": "an entry is where another belongs",
    "foreign": "it is of another session",
    "truncated": "the end is cut off; the signed head knows of more",
    "bad_signature": "it is not signed by the key it must be signed by",
    "headless": "there is no valid head file beside it, so a missing end would not be noticed",
    "forked": "the host signed another history too",
    "extended": "something follows the entry that closed the journal",
}


def verdict_lines(of: Judgement) -> Iterator[str]:
    """Is it whole; if not, where does it first break, how, and what remains valid."""
    if of.verdict == "pruned":
        yield f"pruned: its {of.records} entries were removed from disk{_closed(of)}"
        yield f"  {sanitize(of.detail)}"
        if of.signed_through:
            yield "the host signed this; a proof or an export of it can still be held against it"
        return
    if of.verdict == "intact":
        yield f"intact: all {of.records} entries are whole and linked{_closed(of)}"
    elif of.verdict == "torn_tail":
        yield (
            f"torn tail: after entry {of.records} there are {of.torn_bytes} bytes of an entry that "
            f"was never completed, as a sudden death leaves them"
        )
    else:
        yield f"damaged: the first broken link is at entry {of.broken_at}"
        kind = of.problem.replace("_", " ")
        yield f"  {kind}: {_MEANING.get(of.problem, 'of a kind not known here')}"
        yield f"  {sanitize(of.detail)}"
    if of.verdict != "damaged" and of.status in ("unverifiable", "forked"):
        yield f"but {of.status}: {sanitize(of.detail)}"
    yield from _trust(of)
    yield from _statement(of)


def _closed(of: Judgement) -> str:
    return f"; the journal is closed: {of.closed_by}" if of.closed_by else ""


def _trust(of: Judgement) -> Iterator[str]:
    signed, linked = of.signed_through, of.trustworthy_through
    if signed:
        yield f"signed through entry {signed}: only the host's key could have changed it"
    if linked > signed:
        yield (
            f"linked through entry {linked}: not signed yet; accidents are ruled out, "
            f"a forger who can write the files is not"
        )
    if not linked:
        yield "nothing in it can be trusted"
    elif of.verdict == "damaged":
        yield f"nothing after entry {linked} can be trusted"


def status_lines(of: Judgement) -> Iterator[str]:
    """In the words of N8, with the place each is about."""
    if of.status == "continuous":
        since = f" since entry {of.point}" if of.point else ""
        yield (
            f"continuous: one unbroken history of {of.records} entries, in epoch {of.epoch}{since}"
        )
    elif of.status == "migrated":
        begins = f"epoch {of.epoch} begins at entry {of.point}, on another host"
        yield f"migrated: unbroken, {of.records} entries; {begins}"
    elif of.status == "forked":
        yield f"forked: two histories are signed, which part at entry {of.gap_from} or later"
    else:
        through = f"entry {of.gap_to}" if of.gap_to else "an end that is not known"
        gap = f"the gap is entry {of.gap_from}"
        if of.gap_to != of.gap_from:
            gap = f"the gap goes from entry {of.gap_from} to {through}"
        yield f"unverifiable: {gap} ({sanitize(of.detail)})"
    if of.verdict == "torn_tail":
        yield f"torn tail: {of.torn_bytes} bytes behind entry {of.records} were never completed"
    if of.closed_by == "ended" and not of.discontinued:
        yield "ended: the session's own processes ended, and its journal is closed"
    yield from _statement(of)
    if of.predecessor:
        yield f"follows {of.predecessor} after its entry {of.predecessor_seq}{_agrees(of)}"


def _agrees(of: Judgement) -> str:
    if of.predecessor_agrees is None:
        return " (its journal is not here to compare)"
    return " (its journal agrees)" if of.predecessor_agrees else " (its journal does NOT agree)"


def _statement(of: Judgement) -> Iterator[str]:
    if of.statement == "invalid":
        yield "beside it is a statement of discontinuity that this host's key did not sign"
    elif of.discontinued:
        where = "its last entry" if of.statement == "entry" else "a signed statement beside it"
        yield (
            f"discontinued: {reason_text(of.reason, of.cause)}; said by {where}; "
            f"trustworthy through entry {of.discontinued_after}"
        )
