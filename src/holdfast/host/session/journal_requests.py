"""Requests for what was recorded: the journal, proofs of it, blame, and what an actor missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.host.access.actor_book import ActorBook
from holdfast.host.session import blame
from holdfast.host.session.blame import Gathered
from holdfast.host.session.journal_queries import Records
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import EXEC_KEY_MAX_CHARS
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.adapters.session_memory.output_ring import Ring
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.handoff import Handoffs
    from holdfast.host.session.output import OutputPump
    from holdfast.host.session.parcel import SessionSpec
    from holdfast.host.session.record import SessionRecord
    from holdfast.model.size import Size
    from holdfast.ports.screen import ScreenPort

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
        self,
        operator: OperatorConnection,
        request: journal_messages.GetJournal,
        found: RecordedSession | Stored,
    ) -> m.Answer:
        records = self._records(found)
        if request.since_seq < 1:
            raise InvalidArgument("journal records are numbered from 1")
        limit = min(max(request.max_bytes, 1), _JOURNAL_PIECE_MAX_BYTES)
        entries, more = await asyncio.to_thread(records.piece, request.since_seq, limit)
        names = {str(each.id): each.name for each in self._actors.seen_by(operator.actor)}
        session = records.session
        return journal_messages.JournalShown(request.id, session, tuple(entries), more, names)

    async def verify(
        self,
        _: OperatorConnection,
        request: journal_messages.Verify,
        found: RecordedSession | Stored,
    ) -> m.Answer:
        records = self._records(found)
        judgement = await asyncio.to_thread(records.judged, request.thorough)
        return journal_messages.Verified(request.id, judgement)

    async def prove(
        self,
        _: OperatorConnection,
        request: journal_messages.Prove,
        found: RecordedSession | Stored,
    ) -> m.Answer:
        records = self._records(found)
        return await asyncio.to_thread(records.proven, request.id, request.first, request.last)

    async def blame(
        self,
        _: OperatorConnection,
        request: journal_messages.Blame,
        found: RecordedSession | Stored,
    ) -> m.Answer:
        lines = await asyncio.to_thread(blame.lines, self._gather(found))
        first, last = max(1, request.first), request.last or len(lines)
        asked = blame.fitting(lines[first - 1 : last], _JOURNAL_PIECE_MAX_BYTES)
        return journal_messages.Blamed(request.id, tuple(asked), len(lines))

    def _records(self, found: RecordedSession | Stored) -> Records:
        if isinstance(found, Stored):
            return Records(self._store, found.info.id)
        found.journal.flush()
        return Records(self._store, found.spec.id, found.journal.seq)

    def _gather(self, found: RecordedSession | Stored) -> Gathered:
        """What blame reads: the output that is held now, or that was held at the end."""
        names = {str(each.id): each.name for each in self._actors.authority.actors()}
        if isinstance(found, Stored):
            info = found.info
            with self._store.open_output(info.id) as file:
                held, held_from = file.read(), info.held_from
            size, session, through = info.size, info.id, None
        else:
            found.output.drain()
            found.journal.flush()
            held, held_from = found.ring.copy(found.ring.tail, found.ring.head), found.ring.tail
            size, session, through = found.size, found.spec.id, found.journal.seq
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
