"""Requests for what was recorded: the journal, proofs of it, blame, and what an actor missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.host.access.actor_book import ActorBook
from holdfast.host.session import blame
from holdfast.host.session.journal_queries import Records
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import EXEC_KEY_MAX_CHARS
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection

_JOURNAL_PIECE_MAX_BYTES = 512 << 10  # of one answer: half a frame, of blame too


class JournalRequests:
    """Handlers of one host."""

    def __init__(
        self,
        store: SessionStore,
        actors: ActorBook,
        gather_ended: Callable[[Stored], blame.Gathered],
    ) -> None:
        self._store, self._actors, self._gather_ended = store, actors, gather_ended

    async def catch_up(
        self, operator: OperatorConnection, request: turn_messages.CatchUp, live: LiveSession
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
        found: LiveSession | Stored,
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
        found: LiveSession | Stored,
    ) -> m.Answer:
        records = self._records(found)
        judgement = await asyncio.to_thread(records.judged, request.thorough)
        return journal_messages.Verified(request.id, judgement)

    async def prove(
        self,
        _: OperatorConnection,
        request: journal_messages.Prove,
        found: LiveSession | Stored,
    ) -> m.Answer:
        records = self._records(found)
        return await asyncio.to_thread(records.proven, request.id, request.first, request.last)

    async def blame(
        self,
        _: OperatorConnection,
        request: journal_messages.Blame,
        found: LiveSession | Stored,
    ) -> m.Answer:
        of = self._gather_ended(found) if isinstance(found, Stored) else blame.gathered(found)
        lines = await asyncio.to_thread(blame.lines, of)
        first, last = max(1, request.first), request.last or len(lines)
        asked = blame.fitting(lines[first - 1 : last], _JOURNAL_PIECE_MAX_BYTES)
        return journal_messages.Blamed(request.id, tuple(asked), len(lines))

    def _records(self, found: LiveSession | Stored) -> Records:
        if isinstance(found, Stored):
            return Records(self._store, found.info.id)
        found.journal.flush()
        return Records(self._store, found.spec.id, found.journal.seq)
