"""Requests for what was recorded: the journal, proofs of it, blame, and what an actor missed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.adapters.signing import check
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session import blame
from holdfast.host.session.blame import Gathered
from holdfast.host.session.handoff import Handoffs
from holdfast.host.session.output import OutputPump
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.record import SessionRecord
from holdfast.host.session_store import SessionStore, Stored, journal_of
from holdfast.journal import entries
from holdfast.journal.certificate import Certificate, certify, life_of
from holdfast.journal.judging import judge
from holdfast.journal.proof import prove
from holdfast.journal.pruned import PrunedJournal
from holdfast.journal.verdict import VerdictKind
from holdfast.model.errors import HoldfastError, InvalidArgument, JournalDamaged
from holdfast.model.ids import SessionId
from holdfast.model.info import Judgement
from holdfast.model.limits import EXEC_KEY_MAX_CHARS
from holdfast.model.size import Size
from holdfast.ports.screen import ScreenPort
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

_JOURNAL_PIECE_MAX_BYTES = 512 << 10  # of one answer: half a frame, of blame too


class RecordedSession(Protocol):
    """A live session, as far as its record and its output are read."""

    spec: SessionSpec
    journal: SessionRecord
    handoffs: Handoffs
    ring: Ring
    output: OutputPump

    @property
    def size(self) -> Size: ...


Found = RecordedSession | Stored


class JournalRequests:
    """Handlers of one host."""

    def __init__(
        self,
        store: SessionStore,
        actors: ActorBook,
        make_tall_screen: Callable[[Size], ScreenPort],
    ) -> None:
        """`make_tall_screen`: makes one from which nothing scrolls away by itself."""
        self._store, self._actors, self._make_tall_screen = store, actors, make_tall_screen

    async def catch_up(
        self, operator: OperatorConnection, request: turn_messages.CatchUp, live: RecordedSession
    ) -> m.Answer:
        if len(request.key) > EXEC_KEY_MAX_CHARS:
            raise InvalidArgument(f"a key has at most {EXEC_KEY_MAX_CHARS} characters")
        handoff = await live.handoffs.for_actor(
            operator.actor.id, request.since_seq, look=True, key=request.key
        )
        return turn_messages.CaughtUp(request.id, handoff)

    async def journal(
        self, operator: OperatorConnection, request: journal_messages.GetJournal, found: Found
    ) -> m.Answer:
        records = self._records(found)
        if request.since_seq < 1:
            raise InvalidArgument("journal records are numbered from 1")
        limit = min(max(request.max_bytes, 1), _JOURNAL_PIECE_MAX_BYTES)
        found_entries, more = await asyncio.to_thread(records.piece, request.since_seq, limit)
        names = {str(each.id): each.name for each in self._actors.seen_by(operator.actor)}
        session = records.session
        return journal_messages.JournalShown(request.id, session, tuple(found_entries), more, names)

    async def verify(
        self, _: OperatorConnection, request: journal_messages.Verify, found: Found
    ) -> m.Answer:
        records = self._records(found, judged=True)
        judgement = await asyncio.to_thread(records.judged, request.thorough)
        return journal_messages.Verified(request.id, judgement)

    async def prove(
        self, _: OperatorConnection, request: journal_messages.Prove, found: Found
    ) -> m.Answer:
        records = self._records(found)
        return await asyncio.to_thread(records.proven, request.id, request.first, request.last)

    async def certificate(
        self, _: OperatorConnection, request: journal_messages.Certify, found: Found
    ) -> m.Answer:
        records = self._records(found)
        certificate = await asyncio.to_thread(records.certified)
        return journal_messages.Certified(request.id, certificate.text())

    async def blame(
        self, _: OperatorConnection, request: journal_messages.Blame, found: Found
    ) -> m.Answer:
        lines = await asyncio.to_thread(blame.lines, self.gather(found))
        first, last = max(1, request.first), request.last or len(lines)
        asked = blame.fitting(lines[first - 1 : last], _JOURNAL_PIECE_MAX_BYTES)
        return journal_messages.Blamed(request.id, tuple(asked), len(lines))

    def _records(self, found: Found, *, judged: bool = False) -> Records:
        if judged and isinstance(found, Stored):  # also what is left of one that was removed
            return Records(self._store, found.info.id)
        session, through = journal_of(found)
        return Records(self._store, session, through or 0)

    def gather(self, found: Found) -> Gathered:
        """What blame reads: the output that is held now, or that was held at the end."""
        names = {str(each.id): each.name for each in self._actors.authority.actors()}
        if isinstance(found, Stored):
            session, through = journal_of(found)  # or it was removed
            with self._store.open_output(session) as file:
                held, held_from = file.read(), found.info.held_from
            size = found.info.size
        else:
            found.output.drain()
            session, through = journal_of(found)
            held, held_from = found.ring.copy(found.ring.tail, found.ring.head), found.ring.tail
            size = found.size
        directory = self._store.directory(session)
        return Gathered(
            held=held,
            held_from=held_from,
            size=size,
            make_screen=self._make_tall_screen,
            directory=directory,
            through=through,
            names=names,
        )


class Records:
    """The journal of one session, live or ended, read from its files alone: in a thread."""

    def __init__(self, store: SessionStore, session: SessionId, known_through: int = 0) -> None:
        """`known_through`: the last entry that the host itself remembers having written."""
        self.session, self._store, self._known_through = session, store, known_through
        self._directory = store.directory(session)

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
        pruned = self._store.pruned(self.session)
        if pruned is not None:
            return _of_pruned(self.session, pruned)
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
        began = self._began(reader)
        last = last or self._last(reader)
        if not 1 <= first <= last:
            raise InvalidArgument(f"{first} to {last} is not a range of records")
        records = reader.records(first, last)
        proof = prove(*began, records, self._store.host_key.sign)
        return journal_messages.Proven(request, proof.witness, proof.text())

    def certified(self) -> Certificate:
        """Of the whole journal, which must be intact."""
        reader = JournalReader(self._directory)
        verdict = reader.verify(self.session, check)
        if verdict.outcome is VerdictKind.DAMAGED:
            raise JournalDamaged(
                f"nothing can be certified: {verdict.text()}", hint="`hold verify` tells more"
            )
        last = min(self._known_through or verdict.last_seq, verdict.last_seq)
        life = life_of(reader.entries(1, last))
        host = self._store.host_key
        proof = prove(*self._began(reader), reader.records(1, last), host.sign)
        return certify(life, proof, now(), host.sign)

    def _began(self, reader: JournalReader) -> tuple[entries.Began, int]:
        """The entry in which the session's key named this host, and its epoch."""
        first = next(reader.entries(1, 1), None)
        if first is None or not isinstance(first.body, entries.Began):
            raise JournalDamaged("the journal has no beginning", hint="`hold verify` tells more")
        own = self._store.host_key.public
        if first.body.host_key == own:
            return first.body, first.epoch
        for entry in reader.entries(1, self._last(reader)):  # it came here from another host
            if isinstance(entry.body, entries.Began) and entry.body.host_key == own:
                return entry.body, entry.epoch
        return first.body, first.epoch

    def _last(self, reader: JournalReader) -> int:
        return self._known_through or reader.verify(self.session, check).last_seq


def _of_pruned(session: SessionId, left: PrunedJournal) -> Judgement:
    """What the host signed when it removed the journal, if that is what it signed."""
    valid = left.is_valid(session, check)
    said = f"{left.verdict} when it was removed, its last hash was {left.last_hash.hex()}"
    known = left.last_seq if valid else 0
    return Judgement(
        session=session,
        verdict="pruned",
        status="unverifiable",
        records=known,
        seals=0,
        bytes=0,
        trustworthy_through=known,
        signed_through=known,
        detail=said if valid else "the statement about it is not signed by its host",
        gap_from=1,
        gap_to=known,
        epoch=left.epoch if valid else 0,
        closed_by=left.closed_by if valid else "",
    )
