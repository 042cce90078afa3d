"""A session's journal as the host hands it out, page by page, each entry with its hash."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.journal.encoding import decode, hash_of
from holdfast.journal.entries import Entry
from holdfast.model.record import Record
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

HOST_SHOWN = "(host)"  # no actor can be called so: names begin with a letter or digit


class NumberedEntry(Record):
    """An entry as it is kept: its record, and the record's hash."""

    entry: Entry
    record: bytes
    hash: bytes


class Pages:
    """Reads one journal. `names` of the actors grow as pages come; so does `session`."""

    def __init__(self, host: Host, session: str) -> None:
        self._host = host
        self.session = session
        self.names: dict[str, str] = {}
        self.unlinked = 0  # the first entry read that is not linked to the one read before it

    def entries(self, first: int = 1, last: int | None = None) -> Iterator[NumberedEntry]:
        """From `first` on to the end there is now, or through `last`."""
        more, before = True, b""
        while more and (last is None or first <= last):
            shown = self._host.ask(
                journal_messages.GetJournal(0, self.session, first), journal_messages.JournalShown
            )
            self._learn(shown)
            more = shown.more and bool(shown.records)
            for record in shown.records:
                kept = NumberedEntry(decode(record), record, hash_of(record))
                if last is not None and kept.entry.seq > last:
                    return
                if before and kept.entry.parent != before and not self.unlinked:
                    self.unlinked = kept.entry.seq
                before, first = kept.hash, kept.entry.seq + 1
                yield kept

    def first_since(self, at: float) -> int:
        """The first entry that is not older than this. The host's clock never goes back, so it can
        be halved for; each look costs one entry."""
        low, high = 0, 1  # an entry that is older, one that is not
        while (found := self._at(high)) is not None and found < at:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            found = self._at(middle)
            low, high = (middle, high) if found is not None and found < at else (low, middle)
        return high

    def hash_at(self, seq: int) -> bytes:
        """Of an entry that is there."""
        return next(self.entries(seq, seq)).hash

    def _at(self, seq: int) -> float | None:
        shown = self._host.ask(
            journal_messages.GetJournal(0, self.session, seq, 1), journal_messages.JournalShown
        )
        self._learn(shown)
        return decode(shown.records[0]).at if shown.records else None

    def _learn(self, shown: journal_messages.JournalShown) -> None:
        self.session = shown.session  # the name may be another session's later
        self.names.update(shown.names)

    def name(self, actor: str) -> str:
        return self.names.get(actor, actor[:8]) if actor else HOST_SHOWN
