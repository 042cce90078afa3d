"""Ended sessions are removed from disk after a while (core.retention), now and then or when asked.
What stays of each is its tombstone, marked as pruned, and a signed statement (journal.pruned)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import check
from holdfast.core.retention import EndedSession, PruneReason, choose
from holdfast.host.session_store import SessionStore, Stored
from holdfast.journal.entries import Began
from holdfast.journal.pruned import PrunedJournal
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import SessionId
from holdfast.model.info import PrunedSession
from holdfast.model.limits import PRUNE_EVERY_S, PRUNE_FIRST_S, PRUNED_AT_ONCE

log = logging.getLogger(__name__)
_DAY_S = 86400.0


class Retention:
    """Of one host."""

    def __init__(
        self, store: SessionStore, days: float, size: int, pruned: Callable[[Stored], None]
    ) -> None:
        """`pruned` is called for each session that was removed."""
        self._store, self._keep_s, self._keep_bytes = store, days * _DAY_S, size
        self._pruned = pruned
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Until it is cancelled."""
        await asyncio.sleep(PRUNE_FIRST_S)
        while True:
            try:
                gone = await self.prune(dry_run=False)
                if gone:
                    freed = sum(each.bytes for each in gone)
                    log.info("pruned %d ended sessions, %d bytes", len(gone), freed)
            except (OSError, HoldfastError) as error:
                log.error("ended sessions could not be pruned: %s", error)
            await asyncio.sleep(PRUNE_EVERY_S)

    async def prune(self, *, dry_run: bool) -> tuple[PrunedSession, ...]:
        """What was removed, or would be; a bounded number at a time, the oldest first."""
        async with self._one_at_a_time:
            chosen = await asyncio.to_thread(self._choose)
            if dry_run:
                return tuple(_told(stored, each, why) for stored, each, why in chosen)
            gone = []
            for stored, each, why in chosen[:PRUNED_AT_ONCE]:
                try:
                    left = await asyncio.to_thread(self._remove, stored)
                except (OSError, HoldfastError) as error:
                    log.error("session %s is not pruned: %s", each.id, error)
                    continue
                self._pruned(left)
                gone.append(_told(stored, each, why))
            return tuple(gone)

    def disk_bytes(self) -> int:
        """What all ended sessions use, pruned ones too. Reads every directory: not on the loop."""
        ended = (stored.info.id for stored in self._store.all_tombstones())
        return sum(self._store.disk_bytes(session) for session in ended)

    def _choose(self) -> list[tuple[Stored, EndedSession, PruneReason]]:
        found = {
            stored.info.id: stored
            for stored in self._store.all_tombstones()
            if stored.info.pruned_at is None
        }
        ended = (_ended(stored, self._store.disk_bytes(id)) for id, stored in found.items())
        chosen = choose(ended, time.time(), self._keep_s, self._keep_bytes)
        return [(found[each.id], each, why) for each, why in chosen]

    def _remove(self, stored: Stored) -> Stored:
        left = stored.replace(info=stored.info.replace(pruned_at=time.time()))
        # One that is there already is from a removal that was cut off: the journal may be half
        # gone, and only that statement knows it whole.
        self._store.prune(left, self._store.pruned(left.info.id) or self._statement(left))
        return left

    def _statement(self, left: Stored) -> PrunedJournal:
        info, key = left.info, self._store.host_key
        reader = JournalReader(self._store.directory(info.id))
        verdict = reader.verify(info.id, check)
        last, began = verdict.trustworthy_through, _began(reader)
        return PrunedJournal(
            session=info.id,
            name=info.name,
            epoch=info.epoch,
            ending=str(info.ending),
            ended_at=info.ended_at or 0.0,
            last_seq=last,
            last_hash=reader.hash_at(info.id, last) if last else b"",
            verdict=str(verdict.outcome),
            closed_by=verdict.closed_by,
            at=info.pruned_at or 0.0,
            session_key=began.session_key if began is not None else b"",
            host_key=key.public,
            binding=began.binding if began is not None else b"",
        ).signed(key.sign)


def _began(reader: JournalReader) -> Began | None:
    try:
        first = next(reader.entries(1, 1), None)
    except HoldfastError:
        return None
    return first.body if first is not None and isinstance(first.body, Began) else None


def _ended(stored: Stored, size: int) -> EndedSession:
    info = stored.info
    # A session that was lost stays until somebody has acknowledged it.
    kept = info.ending is None or stored.stays_listed
    return EndedSession(SessionId(info.id), info.ended_at or 0.0, size, kept)


def _told(stored: Stored, each: EndedSession, why: PruneReason) -> PrunedSession:
    return PrunedSession(each.id, stored.info.name, each.ended_at, each.bytes, why.value)
