"""A session's journal as it is read: pieces of it, judgements on it, proofs from it. Live or ended;
everything here may run in a thread, and works on the files alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal import entries
from holdfast.journal.judging import judge
from holdfast.journal.proof import prove
from holdfast.model.errors import HoldfastError, InvalidArgument, JournalDamaged
from holdfast.model.ids import SessionId
from holdfast.model.info import Judgement
from holdfast.wire.messages import journal as journal_messages

if TYPE_CHECKING:
    from holdfast.host.session_store import SessionStore


class Records:
    """The journal of one session."""

    def __init__(self, store: SessionStore, session: SessionId, known_through: int = 0) -> None:
        """`known_through`: the last entry that the host itself remembers having written."""
        self.session = session
        self._store = store
        self._directory = store.directory(session)
        self._host_key: SigningKey = store.host_key
        self._known_through = known_through

    def piece(self, first: int, max_bytes: int) -> tuple[list[bytes], bool]:
        """Records from `first` on, as many as fit (one at least), and whether there are more.
        Before a place that cannot be read: what can be. Asked again from there, it raises."""
        found: list[bytes] = []
        size = 0
        try:
            for each in JournalReader(self._directory).found(first):
                size += len(each.record)
                if found and size > max_bytes:
                    return found, True
                found.append(each.record)
        except JournalDamaged:
            if not found:
                raise
            return found, True
        return found, False

    def judged(self, thorough: bool) -> Judgement:
        reader = JournalReader(self._directory)
        judgement = judge(
            reader, self.session, check, thorough=thorough, known_through=self._known_through
        )
        if not judgement.predecessor:
            return judgement
        return judgement.replace(predecessor_agrees=self._agrees(reader, judgement.predecessor))

    def _agrees(self, reader: JournalReader, predecessor: str) -> bool | None:
        """Whether the journal of the one it follows, if it is here, has the entry it names."""
        began = next(reader.entries(1, 1)).body
        assert isinstance(began, entries.Began)
        directory = self._store.directory(SessionId(predecessor))
        if not os.path.isdir(directory):
            return None
        try:
            found = JournalReader(directory).hash_at(predecessor, began.predecessor_seq)
        except HoldfastError:
            return False
        return found == began.predecessor_hash or not began.predecessor_seq

    def proven(self, request: int, first: int, last: int) -> journal_messages.Proven:
        reader = JournalReader(self._directory)
        began = next(reader.entries(1, 1), None)
        if began is None or not isinstance(began.body, entries.Began):
            raise JournalDamaged("the journal has no beginning", hint="`hold verify` tells more")
        last = last or self._last(reader)
        if not 1 <= first <= last:
            raise InvalidArgument(f"{first} to {last} is not a range of records")
        records = reader.records(first, last)
        proof = prove(began.body, began.epoch, records, self._host_key.sign)
        return journal_messages.Proven(request, proof.witness, proof.text())

    def _last(self, reader: JournalReader) -> int:
        return self._known_through or reader.verify(self.session, check).last_seq
