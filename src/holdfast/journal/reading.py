"""Reading a journal entry by entry from files that the caller opens: for the host, and for checking
a journal without one.

    journal-00000001.seg    header and records (framing.py), with zeros reserved ahead
    journal.head            the last seal known to be on disk, signed; replaced as a whole
    journal.discontinued    the statement beside one that cannot be extended (lineage.py)

Not here: opening files (adapters.segments, cli.journal_files), and judging what is read (verify.py,
judging.py).
"""

from __future__ import annotations

from holdfast.journal.chain import genesis
from holdfast.journal.encoding import decode, hash_of, seq_of
from holdfast.journal.entries import Entry
from holdfast.journal.framing import (
    FRAME_BYTES,
    HEADER_BYTES,
    is_clean,
    length_at,
    read,
    read_header,
    record_after,
)
from holdfast.journal.lineage import Discontinuity
from holdfast.journal.signatures import Head
from holdfast.journal.verify import verify
from holdfast.model.errors import InvalidArgument, JournalDamaged, StorageFailed
from holdfast.model.record import Malformed, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.journal.signatures import Check
    from holdfast.journal.verdict import Verdict

    # The bytes of a file by its name, at most so many (-1: all). Raises StorageFailed.
    Read = Callable[[str, int], bytes]

HEAD_NAME = "journal.head"
DISCONTINUED_NAME = "journal.discontinued"
_PREFIX, _SUFFIX = "journal-", ".seg"


def segment_name(number: int) -> str:
    return f"{_PREFIX}{number:08d}{_SUFFIX}"


def segment_names(names: Iterable[str]) -> list[str]:
    """Those of a directory's files that are segments, in order."""
    return sorted(
        name
        for name in names
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and _is_number(name)
    )


def _is_number(name: str) -> bool:
    digits = name[len(_PREFIX) : -len(_SUFFIX)]
    return digits.isascii() and digits.isdigit()


class FoundRecord(Record):
    """An entry and its place."""

    entry: Entry
    record: bytes
    segment: int  # index, from 0
    offset: int


class JournalReading:
    """One journal, read in place, one segment at a time. The segments are those there were at the
    beginning; what is appended to the last one meanwhile may or may not be seen."""

    def __init__(self, names: Iterable[str], read: Read) -> None:
        """`names`: of all files in the journal's directory."""
        there = list(names)
        self.names = segment_names(there)
        self._stated = DISCONTINUED_NAME in there
        self._read = read

    def segment(self, index: int) -> bytes | None:
        """All bytes of one segment; None after the last."""
        return self._read(self.names[index], -1) if 0 <= index < len(self.names) else None

    def head(self) -> Head | None:
        """The head, unchecked; None when there is none that can be read."""
        try:
            return Head.decode(self._read(HEAD_NAME, -1))
        except (StorageFailed, Malformed):
            return None

    def discontinuity(self) -> Discontinuity | None:
        """The statement beside the journal, unchecked. An unreadable one is damage, not absence."""
        if not self._stated:
            return None
        try:
            return Discontinuity.of_text(self._read(DISCONTINUED_NAME, -1).decode())
        except (Malformed, UnicodeDecodeError) as error:
            raise JournalDamaged(f"the statement of discontinuity: {error}") from error

    def verify(self, session: str, check: Check, *, thorough: bool = False) -> Verdict:
        return verify(session, self.segment, self.head(), check, thorough=thorough)

    def found(self, first: int = 1, last: int | None = None) -> Iterator[FoundRecord]:
        """Entries in order, from `first` through `last`, read as they are asked for. Checksums and
        numbers are checked, links and seals are not: that is `verify`. Ends at a torn tail."""
        for record, index, at in self._records(first, last):
            try:
                entry = decode(record)
            except Malformed as error:
                raise self._damaged(seq_of(record), str(error)) from error
            yield FoundRecord(entry, record, index, at)

    def entries(self, first: int = 1, last: int | None = None) -> Iterator[Entry]:
        return (found.entry for found in self.found(first, last))

    def records(self, first: int, last: int) -> Iterator[bytes]:
        """The records of a range, for proofs. Raises InvalidArgument when it is not all there."""
        seq = first - 1
        for record, _, _ in self._records(first, last):
            seq += 1
            yield record
        if seq != last or first < 1:
            raise InvalidArgument(f"the journal has no entries {first} to {last}")

    def _records(self, first: int, last: int | None) -> Iterator[tuple[bytes, int, int]]:
        """Record, segment, offset."""
        if last is not None and last < first:
            return
        index, expected = self._index_of(first), 0
        while (data := self.segment(index)) is not None:
            at, expected = self._start(index, data, first, expected)
            while at and (whole := read(data, at)) is not None:
                self._require_number(whole.record, expected)
                yield whole.record, index, at
                if expected == last:
                    return  # what follows does not matter, even if damaged
                expected, at = expected + 1, whole.end
            index += 1
            if not at or not is_clean(data, at):
                if index < len(self.names) or record_after(data, at, expected):
                    raise self._damaged(expected, "it is incomplete, and records follow it")
                return

    def _require_number(self, record: bytes, expected: int) -> None:
        try:
            seq = seq_of(record)
        except Malformed as error:
            raise self._damaged(expected, str(error)) from error
        if seq != expected:
            raise self._damaged(expected, f"entry {seq} is in its place")

    def hash_at(self, session: str, seq: int) -> bytes:
        """The hash of one record; of the session's id for 0."""
        return hash_of(next(self.records(seq, seq))) if seq else genesis(session)

    def _index_of(self, seq: int) -> int:
        """The segment an entry is in, by the headers alone."""
        low, high = 0, len(self.names)
        while high - low > 1:
            middle = (low + high) // 2
            data = self._read(self.names[middle], HEADER_BYTES)
            try:
                first = read_header(data).first
            except Malformed:
                # The last one may be incomplete while it is created; any other is damage, which
                # reading reports.
                first = seq + 1
            low, high = (middle, high) if first <= seq else (low, middle)
        return low

    def _start(self, index: int, data: bytes, first: int, expected: int) -> tuple[int, int]:
        """Offset and number of the first record wanted of a segment; offset 0: it has no header."""
        try:
            found = read_header(data).first
        except Malformed as error:
            if index + 1 < len(self.names) or not is_clean(data[:HEADER_BYTES], 0):
                raise self._damaged(expected, str(error)) from error
            return 0, expected
        if expected and found != expected:
            raise self._damaged(expected, f"a segment begins with entry {found} instead")
        at, seq = HEADER_BYTES, found
        if seq > first and not expected:
            raise self._damaged(first, f"the journal begins with entry {seq}")
        while seq < first and (whole_size := _size_at(data, at)):
            at, seq = at + FRAME_BYTES + whole_size, seq + 1
        return at, seq

    def _damaged(self, seq: int, detail: str) -> JournalDamaged:
        return JournalDamaged(
            f"the journal breaks at entry {seq}: {detail}",
            hint="`hold verify` shows what is still intact",
        )


def _size_at(data: bytes, at: int) -> int:
    """Length of the record here, unchecked; 0 where there is none."""
    if at + FRAME_BYTES > len(data):
        return 0
    return int(length_at(data, at)[0]) & 0x7FFF_FFFF
