"""The exact half of `verify`: every record's checksum, number and link, and every seal, in order.

It stops at the first fault and names it. To name it correctly it may search further (is the record
that belongs here only misplaced?), which costs time only if there is a fault.
"""

from __future__ import annotations

import hashlib

from holdfast.journal.encoding import HASH_BYTES, decode, hash_of, parent_of, seq_of
from holdfast.journal.entries import MAY_FOLLOW, Began, Entry, SealEntry
from holdfast.journal.framing import (
    HEADER_BYTES,
    Whole,
    is_clean,
    read,
    read_header,
    record_after,
    written_after,
)
from holdfast.journal.signatures import Head, is_beginning_of, seal_message
from holdfast.journal.verdict import Break, BreakPoint, Verdict, VerdictKind
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.journal.signatures import Check

    Segments = Callable[[int], bytes | None]  # a segment's bytes by index; None: there are no more


_UNNAMED = "its successor names another hash"


class _Broken(Exception):
    def __init__(self, kind: Break, seq: int, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.seq, self.detail = kind, seq, detail


class RecordVerifier:
    """Verifies from a point after a good seal, or from the beginning, to the end or the first
    break."""

    def __init__(
        self, session: str, segments: Segments, head: Head | None, check: Check, start: BreakPoint
    ) -> None:
        self._session, self._segments, self._head, self._check = session, segments, head, check
        self._seals, self._host_key, self._at_head = 0, b"", b""
        self._came: list[tuple[int, bytes]] = []  # the first entry of each later host, and its key
        self._first_host = b""
        self._digest = hashlib.sha256()
        self._torn: int | None = None
        self._begin(start)

    def _begin(self, point: BreakPoint) -> None:
        self._tail = point
        self._next, self._parent, self._closed_by = point.seq, point.parent, point.closed_by
        self._signed = point.seq - 1

    def begin_behind(
        self, point: BreakPoint, host_key: bytes, at_head: bytes, seals: int = 0
    ) -> None:
        """Begin behind a seal, with all before it known to be good."""
        self._begin(point)
        self._seals, self._host_key, self._at_head = seals, host_key, at_head
        self._first_host = host_key

    def run(self) -> Verdict:
        try:
            self._records()
            self._judge_head()
        except _Broken as broken:
            # A bad seal does not say where in its block the fault is.
            doubtful = broken.kind in (Break.BAD_SIGNATURE, Break.FORKED)
            last = min(broken.seq, self._next) - 1
            return self._verdict(
                VerdictKind.DAMAGED,
                min(last, self._signed) if doubtful else last,
                broken,
            )
        whole = self._torn is None
        return self._verdict(VerdictKind.INTACT if whole else VerdictKind.TORN_TAIL, self._next - 1)

    def _verdict(
        self, outcome: VerdictKind, trustworthy: int, broken: _Broken | None = None
    ) -> Verdict:
        return Verdict(
            outcome,
            last_seq=self._next - 1,
            last_hash=self._parent,
            trustworthy_through=trustworthy,
            signed_through=min(self._signed, trustworthy),
            tail=self._tail,
            host_key=self._host_key,
            closed_by=self._closed_by,
            broken_seq=broken.seq if broken else 0,
            kind=broken.kind if broken else None,
            detail=broken.detail if broken else "",
            seals=self._seals,
            torn_size=self._torn or 0,
        )

    # -- records ------------------------------------------------------------------------------

    def _records(self) -> None:
        index, at = self._tail.segment, self._tail.offset
        while (data := self._segments(index)) is not None:
            at = at or self._enter(index, data)
            while at and (whole := read(data, at)) is not None:
                self._record(index, data, at, whole)
                at = whole.end
            if not at or not is_clean(data, at):
                self._judge_end(index, data, at)
                return
            index, at = index + 1, 0
        if index == 0:
            raise _Broken(Break.MISSING, 1, "there is no segment")

    def _enter(self, index: int, data: bytes) -> int:
        """The header of a segment fits here. Gives the offset behind it; 0 when it is cut off."""
        try:
            header = read_header(data)
        except Malformed as error:
            if len(data) < HEADER_BYTES or is_clean(data, 0):
                return 0
            raise _Broken(Break.ALTERED, self._next, str(error)) from error
        if header.session != self._session:
            raise _Broken(Break.FOREIGN, self._next, f"a segment of session {header.session}")
        if header.first != self._next:
            kind = Break.REORDERED
            if header.first > self._next and not self._comes_later(index + 1):
                kind = Break.MISSING
            raise _Broken(kind, self._next, f"a segment begins with entry {header.first} instead")
        if header.parent != self._parent:
            first = read(data, HEADER_BYTES)
            if first is None or parent_of(first.record) == self._parent:
                raise _Broken(Break.ALTERED, self._next, "the segment's header names another hash")
            raise _Broken(Break.ALTERED, self._blamed(first, first), _UNNAMED)
        return HEADER_BYTES

    def _record(self, index: int, data: bytes, at: int, whole: Whole) -> None:
        try:
            entry = decode(whole.record)
        except Malformed as error:
            raise _Broken(Break.ALTERED, self._next, str(error)) from error
        if entry.seq != self._next:
            self._misplaced(entry, index, data, whole.end)
        if entry.seq == 1 or isinstance(entry.body, Began):
            self._judge_beginning(entry)
        if entry.parent != self._parent:
            raise _Broken(Break.ALTERED, self._blamed(whole, read(data, whole.end)), _UNNAMED)
        body = entry.body
        if self._closed_by and body.tag not in MAY_FOLLOW[self._closed_by]:
            raise _Broken(Break.EXTENDED, entry.seq, f"{body.tag} follows {self._closed_by}")
        if whole.seal or isinstance(body, SealEntry):
            self._seal(entry, whole)
        else:
            self._digest.update(data[at : whole.end])
        self._next, self._parent = entry.seq + 1, hash_of(whole.record)
        if self._head is not None and entry.seq == self._head.seq:
            self._at_head = self._parent
        if body.tag in MAY_FOLLOW:
            self._closed_by = body.tag
        if whole.seal:
            self._signed, self._seals = entry.seq, self._seals + 1
            self._digest = hashlib.sha256()
            self._tail = BreakPoint(index, whole.end, self._next, self._parent, self._closed_by)

    def _judge_beginning(self, entry: Entry) -> None:
        """The session's own key must name each host that signs the seals."""
        began, seq = entry.body, entry.seq
        if not isinstance(began, Began):
            raise _Broken(Break.ALTERED, seq, "the first entry does not say what began")
        if began.session != self._session:
            raise _Broken(Break.FOREIGN, seq, f"the journal of session {began.session}")
        if not is_beginning_of(self._session, began, self._check):
            raise _Broken(Break.BAD_SIGNATURE, seq, "the session's key did not name this host")
        self._host_key = began.host_key
        if seq == 1:
            self._first_host = began.host_key
        else:
            self._came.append((seq, began.host_key))

    def _writer_at(self, seq: int) -> bytes:
        """The key of the host that wrote this entry."""
        later = (key for came, key in reversed(self._came) if came <= seq)
        return next(later, self._first_host)

    def _seal(self, entry: Entry, whole: Whole) -> None:
        body = entry.body
        if not isinstance(body, SealEntry) or not whole.seal:
            raise _Broken(Break.ALTERED, entry.seq, "its seal bit and its kind disagree")
        fits = (body.from_seq, body.digest) == (self._tail.seq, self._digest.digest())
        message = seal_message(self._session, entry)
        if not fits or not self._check(self._host_key, message, body.signature):
            what = "is not by the host's key" if fits else "does not fit the records before it"
            raise _Broken(Break.BAD_SIGNATURE, entry.seq, f"the seal {what}")

    # -- naming what is wrong -----------------------------------------------------------------

    def _blamed(self, whole: Whole, after: Whole | None) -> int:
        """Record `next` does not name the hash of the one before it. Which of the two was altered?
        Not the one before, if a seal vouches for it. This one, if its successor names what it would
        be with the right link: then only the link was. Otherwise it is not known, or both were, and
        the one before is the first that may be."""
        if self._next - 1 <= self._signed:
            return self._next
        if after is not None and after is not whole:
            linked = whole.record[:-HASH_BYTES] + self._parent
            if parent_of(after.record) == hash_of(linked):
                return self._next
        return self._next - 1

    def _misplaced(self, entry: Entry, index: int, data: bytes, at: int) -> None:
        kind = Break.REORDERED
        if entry.seq > self._next and not self._comes_later(index + 1, data, at):
            kind = Break.MISSING
        raise _Broken(kind, self._next, f"entry {entry.seq} is in its place")

    def _comes_later(self, index: int, data: bytes = b"", at: int = 0) -> bool:
        """Whether the record that belongs here comes later."""
        while data and (whole := read(data, at)) is not None:
            try:
                if seq_of(whole.record) == self._next:
                    return True
            except Malformed:
                return False
            at = whole.end
        while (later := self._segments(index)) is not None:
            try:
                if read_header(later).first <= self._next:
                    return True
            except Malformed:
                return False
            index += 1
        return False

    def _judge_end(self, index: int, data: bytes, at: int) -> None:
        """There is something here, but no complete record: a torn tail, or damage?"""
        seq = self._next
        if self._segments(index + 1) is not None or record_after(data, at, seq):
            raise _Broken(Break.ALTERED, seq, "it is incomplete, and records follow it")
        head = self._valid_head()
        if head is not None and head.seq >= seq:
            raise _Broken(Break.TRUNCATED, seq, f"it is incomplete; the head knows of {head.seq}")
        self._torn = written_after(data, at)

    def _valid_head(self) -> Head | None:
        head = self._head
        if head is None or head.session != self._session:
            return None
        # After a move it is the one of the host before, until this one has signed its own.
        key = self._writer_at(head.seq)
        return head if self._check(key, head.message(), head.signature) else None

    def _judge_head(self) -> None:
        """Compare the signed note of how far the journal goes with how far it goes."""
        head = self._valid_head()
        if head is None:
            raise _Broken(Break.HEADLESS, self._next, "no valid head says how far it went")
        if head.seq >= self._next:
            raise _Broken(Break.TRUNCATED, self._next, f"the head knows of entry {head.seq}")
        if self._at_head != head.hash:
            raise _Broken(Break.FORKED, head.seq, "the head was signed for another history")
