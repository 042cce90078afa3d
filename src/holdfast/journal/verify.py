"""Is a journal intact? If not: where does it first break, in which way, and what is still intact.

Two methods. *By block* (verify_blocks.py) hashes each block's bytes in one go and compares with its
seal, which costs little more than hashing the file. One signature then vouches for everything: the
last seal's digest covers its block, whose first record names the hash of the seal before, and so on
down to the first. What does not match, and the tail after the last seal, is verified *by record*
(verify_records.py), which finds the exact place. `thorough` verifies everything by record.

What a verdict guarantees:
- through `signed_through`: nobody without the host's key can have changed it;
- through `trustworthy_through`: every link is right. After the last seal that rules out accidents,
  not somebody who can write the directory and makes new links.

What the directory alone cannot show: that journal *and* head were both put back to an older state,
and that records after the last head were cut off at a record's boundary. Both need a witness kept
elsewhere: a signed proof (proof.py) of a later record reveals it.
"""

from __future__ import annotations

from holdfast.journal.chain import genesis
from holdfast.journal.encoding import decode, hash_of
from holdfast.journal.entries import Began
from holdfast.journal.framing import HEADER_BYTES, read
from holdfast.journal.signatures import is_beginning_of
from holdfast.journal.verdict import BreakPoint, Verdict
from holdfast.journal.verify_blocks import BlockVerifier
from holdfast.journal.verify_records import RecordVerifier
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.journal.signatures import Check, Head
    from holdfast.journal.verify_records import Segments


def verify(
    session: str,
    segments: Segments,
    head: Head | None,
    check: Check,
    *,
    thorough: bool = False,
) -> Verdict:
    """Judge a journal. `head` is None when there is no readable one; `segments` gives the bytes of
    a segment by index, and is asked for each about once."""
    seen = _Seen(segments)
    walk = RecordVerifier(session, seen.segment, head, check, BreakPoint(0, 0, 1, genesis(session)))
    if not thorough:
        skim = BlockVerifier(session, seen.segment, head)
        skim.run()
        if skim.last is not None and skim.is_signed(check):
            walk.begin_behind(skim.point, skim.host_key, skim.at_head, skim.seals)
    return walk.run().replace(segments=len(seen.sizes), size=sum(seen.sizes.values()))


def verify_tail(
    session: str, segments: Segments, head: Head | None, check: Check
) -> Verdict | None:
    """Judge only what was written since the head: for a daemon that takes over and must not keep
    anybody waiting. None when the head does not fit the journal; then `verify` tells why."""
    data = segments(head.segment) if head is not None else None
    if head is None or data is None or head.session != session:
        return None
    seal, began = read(data, head.offset), _beginning(segments(0) or b"")
    if (
        seal is None
        or not seal.seal
        or hash_of(seal.record) != head.hash
        or began is None
        or not is_beginning_of(session, began, check)
        or not check(began.host_key, head.message(), head.signature)
    ):
        return None
    walk = RecordVerifier(session, segments, head, check, BreakPoint(0, 0, 1, genesis(session)))
    behind = BreakPoint(head.segment, seal.end, head.seq + 1, head.hash, head.closed_by)
    walk.begin_behind(behind, began.host_key, head.hash)
    return walk.run()


def _beginning(data: bytes) -> Began | None:
    """The first entry of the first segment."""
    first = read(data, HEADER_BYTES)
    try:
        body = decode(first.record).body if first is not None else None
    except Malformed:
        return None
    return body if isinstance(body, Began) else None


class _Seen:
    """Caches the segment read last: verification by record begins where that by block stopped."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._kept: tuple[int, bytes | None] = (-1, None)
        self.sizes: dict[int, int] = {}

    def segment(self, index: int) -> bytes | None:
        if self._kept[0] == index:
            return self._kept[1]
        data = self._segments(index)
        if data is not None:
            self._kept = (index, data)
            self.sizes[index] = len(data)
        return data
