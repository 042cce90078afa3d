"""Idle sessions out of memory, and back when they are needed: a checkpoint that ends the session,
and a restore of it.

An evicted session is asleep like any that was ended with a checkpoint; its tombstone also says that
it wakes by itself. Whoever needs it meanwhile waits for one and the same restore.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.checkpoint import Checkpoint, CheckpointId, Waking
from holdfast.model.errors import CheckpointFailed, HoldfastError, session_over
from holdfast.model.ids import SessionId
from holdfast.model.restore import RestoreReport
from holdfast.model.state import Level

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)


class SleepsAndWakes(Protocol):
    """Checkpoints and restores (session_continuity.py)."""

    async def checkpoint(
        self,
        live: LiveSession,
        actor: str,
        *,
        note: str = "",
        ends: bool = False,
        waking: Waking = ...,
    ) -> Checkpoint: ...

    async def find(self, which: CheckpointId | SessionId) -> Checkpoint: ...

    async def restore(self, found: Checkpoint, actor: str) -> tuple[LiveSession, RestoreReport]: ...

    def is_restoring(self, session: SessionId) -> bool: ...

    async def settled(self, session: SessionId) -> None:
        """Once no restore of it is under way."""
        ...


class Eviction:
    """Of one host."""

    def __init__(self, continuity: SleepsAndWakes, store: SessionStore) -> None:
        self._continuity, self._store = continuity, store
        self._waking: dict[SessionId, asyncio.Task[None]] = {}
        self.woken = 0

    def can_evict(self, live: LiveSession) -> bool:
        """At other levels its memory cannot be saved."""
        return live.spec.level.reaches(Level.MOVABLE)

    async def evict(self, live: LiveSession, actor: str) -> None:
        """It is asleep when this returns. Raises HoldfastError; then it runs on."""
        session = live.spec.id
        waking = Waking(on_use=True)
        await self._continuity.checkpoint(live, actor, note="idle", ends=True, waking=waking)
        stored = self._store.tombstone(session)
        if stored is None or not stored.is_asleep:
            raise CheckpointFailed("it ended before it was asleep")

    def would_wake(self, stored: Stored) -> bool:
        """For whoever uses it: also while it is restored for somebody else."""
        return stored.wakes or self._continuity.is_restoring(stored.info.id)

    async def wake(self, stored: Stored, actor: str) -> None:
        """It is live when this returns; this actor needs it. Raises what a restore raises."""
        session = stored.info.id
        if session not in self._waking and self._continuity.is_restoring(session):
            await self._continuity.settled(session)
            if not self._is_still_asleep(stored):
                return
            if not (stored.wakes or stored.returns_for):
                raise session_over(stored.info.name, stored.info.ending)
        waking = self._waking.get(session)
        if waking is None:
            loop = asyncio.get_running_loop()
            waking = self._waking[session] = loop.create_task(self._wake(stored, actor))
            waking.add_done_callback(lambda _: self._waking.pop(session, None))
        await asyncio.shield(waking)

    def _is_still_asleep(self, stored: Stored) -> bool:
        found = self._store.tombstone(stored.info.id)
        return found is not None and found.is_asleep

    async def _wake(self, stored: Stored, actor: str) -> None:
        ending = stored.info.ending
        assert ending is not None
        found = await self._continuity.find(CheckpointId(ending.checkpoint))
        try:
            await self._continuity.restore(found, actor)
        except HoldfastError as error:
            log.error("%s does not wake: %s", stored.info.name, error.message)
            raise
        self.woken += 1
        log.info("%s is awake", stored.info.name)
