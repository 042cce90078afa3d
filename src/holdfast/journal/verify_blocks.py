"""The fast half of `verify`: from seal to seal, each block's bytes hashed in one go.

Seals are found by what their bytes look like, not by going from length to length, which in Python
takes twice as long as the hashing. This is safe: a false seal matches no block, and a block without
a seal is not accepted. Input made to look like the next seal only makes verification slower.

It names no faults. At anything unexpected it stops at the last good seal, and verify_records.py
continues from there. An entry that closes the journal is noticed here only right before its seal,
where the host puts it; verify_records.py finds it anywhere. Where another host begins to write it
stops as well.
"""

from __future__ import annotations

import hashlib
import struct

from holdfast.journal.chain import genesis
from holdfast.journal.encoding import decode, hash_of, pack, parent_of
from holdfast.journal.entries import Began, Body, Discontinued, EndedEntry, Entry, SealEntry
from holdfast.journal.framing import (
    FRAME_BYTES,
    HEADER_BYTES,
    SEAL_MARK,
    is_clean,
    length_at,
    read,
    read_header,
)
from holdfast.journal.signatures import Head, is_beginning_of, seal_message
from holdfast.journal.verdict import BreakPoint
from holdfast.model.limits import JOURNAL_ENTRY_MAX_BYTES
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.journal.signatures import Check
    from holdfast.journal.verify_records import Segments


class BlockVerifier:
    """Verifies as far as it can: `point` is after the last good seal."""

    def __init__(self, session: str, segments: Segments, head: Head | None) -> None:
        self._session, self._segments, self._head = session, segments, head
        self.point = BreakPoint(0, 0, 1, genesis(session))
        self.last: Entry | None = None  # the last good seal
        self.seals = 0
        self.host_key = b""
        self.at_head = b""  # hash of the record the head names
        self._beginning: Began | None = None
        self._digest = hashlib.sha256()
        self._first_parent = b""  # of the block, once its first record is known
        self._last_record = b""  # of the block so far, when it began in an earlier segment

    def is_signed(self, check: Check) -> bool:
        """Whether the host that the session named signed the last seal, which vouches for all
        before it."""
        began, entry = self._beginning, self.last
        assert entry is not None
        if began is None or not is_beginning_of(self._session, began, check):
            return False
        self.host_key = began.host_key
        assert isinstance(entry.body, SealEntry)
        return check(began.host_key, seal_message(self._session, entry), entry.body.signature)

    def run(self) -> None:
        index = 0
        while (data := self._segments(index)) is not None:
            if not self._enter(index, data) or not self._cross(index, data):
                return
            index += 1

    def _enter(self, index: int, data: bytes) -> bool:
        """The header agrees with the first record, and that with the segment before."""
        try:
            header = read_header(data)
            first = read(data, HEADER_BYTES)
            if first is None or header.session != self._session:
                return False
            entry = decode(first.record)
        except Malformed:
            return False
        if index == 0:
            if not isinstance(entry.body, Began):
                return False
            self._beginning = entry.body
        before = hash_of(self._last_record) if self._last_record else self.point.parent
        return (entry.seq, entry.parent, before) == (header.first, header.parent, header.parent)

    def _cross(self, index: int, data: bytes) -> bool:
        """Verify one segment. Whether to continue with the next."""
        view = memoryview(data)
        start = tag = HEADER_BYTES
        while (tag := data.find(_TAG, tag)) >= 0:
            tag += len(_TAG)
            at, entry, end = self._seal_around(data, start, tag)
            if entry is None:
                continue  # input bytes that only look like a seal
            if at > start:
                self._first_parent = self._first_parent or parent_of(_bytes_at(data, start))
            self._digest.update(view[start:at])
            if (
                not self._fits(entry)
                or _is_closed(data, start, at)
                or self._changes_host(data, index, start, at)
            ):
                return False
            self._pass(entry, BreakPoint(index, end, entry.seq + 1, hash_of(_bytes_at(data, at))))
            start = tag = end
        return self._leave(index, data, view, start)

    def _seal_around(self, data: bytes, start: int, tag: int) -> tuple[int, Entry | None, int]:
        """The seal whose tag ends here, if it is one that can be next: offset, entry, end."""
        for at in range(max(start, tag - _TAG_AT_MOST), tag - len(_TAG) - FRAME_BYTES):
            whole = read(data, at) if data[at] == _MARK_BYTE else None
            if whole is not None and whole.seal:
                try:
                    entry = decode(whole.record)
                except Malformed:
                    continue
                if isinstance(entry.body, SealEntry) and entry.body.from_seq == self.point.seq:
                    return at, entry, whole.end
        return 0, None, 0

    def _leave(self, index: int, data: bytes, view: memoryview, start: int) -> bool:
        """Behind the last seal of a segment: this block's seal is in a later one."""
        at, last, largest, size = start, 0, JOURNAL_ENTRY_MAX_BYTES, 0
        try:
            while 0 < (size := length_at(data, at)[0]) <= largest:
                last = at
                at += size + FRAME_BYTES
        except struct.error:
            size = 0  # the file ends here, without room ahead
        if size or at > len(data) or not is_clean(data, at):
            return False
        if self._changes_host(data, index, start, at):
            return False
        if last:
            self._last_record = _bytes_at(data, last)
            self._first_parent = self._first_parent or parent_of(_bytes_at(data, start))
        self._digest.update(view[start:at])
        return True

    def _changes_host(self, data: bytes, index: int, start: int, at: int) -> bool:
        """Whether another host seems to begin in these bytes. Behind it other seals are right."""
        if index == 0 and start == HEADER_BYTES:
            start += (length_at(data, start)[0] & ~SEAL_MARK) + FRAME_BYTES  # the very first entry
        return data.find(_BEGAN, start, at) >= 0

    def _fits(self, entry: Entry) -> bool:
        """By what the seal vouches for: its block's bytes, and the seal before it, which the first
        record of the block names."""
        assert isinstance(entry.body, SealEntry)
        return (
            entry.body.digest == self._digest.digest()
            and (self._first_parent or entry.parent) == self.point.parent
            and entry.seq >= self.point.seq
        )

    def _pass(self, entry: Entry, point: BreakPoint) -> None:
        """A new block begins behind this seal."""
        if self._head is not None and entry.seq == self._head.seq:
            self.at_head = point.parent
        self.point, self.last, self.seals = point, entry, self.seals + 1
        self._digest = hashlib.sha256()
        self._first_parent, self._last_record = b"", b""


def _is_closed(data: bytes, start: int, at: int) -> bool:
    """Whether the block seems to end with an entry that closes the journal. Rare, and once in a
    journal: verify_records.py checks it, and what may follow."""
    return any(data.find(mark, max(start, at - _LOOKED_BACK), at) >= 0 for mark in _CLOSING)


def _bytes_at(data: bytes, at: int) -> bytes:
    start = at + FRAME_BYTES
    return data[start : start + (length_at(data, at)[0] & ~SEAL_MARK)]


def _packed(body: Body, cut_behind: bytes) -> bytes:
    """How an entry with this body shows in a record: tag and the beginning of the body."""
    packed = pack((body.tag, body.pack()))
    return packed[1 : packed.index(cut_behind) + len(cut_behind)]


_TAG = _packed(SealEntry(0, b"", b""), b"from_seq")
_CLOSING = (_packed(EndedEntry(), b"code"), _packed(Discontinued("", 0, b""), b"reason"))
_BEGAN = _packed(Began("", b"", b"", b"", "", (), "", ""), b"session")
_MARK_BYTE = SEAL_MARK >> 24
_TAG_AT_MOST = FRAME_BYTES + 40 + len(_TAG)  # what stands before it: seq, time, epoch, two more
_LOOKED_BACK = 4096  # bytes before a seal in which the entry that closed the journal is noticed
