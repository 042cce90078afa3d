"""Checkpoints that nobody asks for one by one: of sessions started with `--checkpoint-every`, in
that interval and soon after they fall idle; and of all that can, before the host stops.

A session in which nothing happened since its last checkpoint gets none. Of those made here the
latest two are kept; what somebody asked for stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.proc.work import work_of
from holdfast.core.continuity.idle import CPU_NOISE_S
from holdfast.host.clock import now
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.checkpoint import Checkpoint, Waking
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.limits import CHECKPOINT_IDLE_S, CHECKPOINT_LOOK_S, CHECKPOINTS_PERIODIC
from holdfast.model.record import Record
from holdfast.model.state import Level

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)
NOTE = "periodic"  # by which those made here are known


class MakesCheckpoints(Protocol):
    """Checkpoints (session_continuity.py)."""

    async def checkpoint(
        self,
        live: LiveSession,
        actor: str,
        *,
        note: str = "",
        ends: bool = False,
        waking: Waking = ...,
    ) -> Checkpoint: ...

    async def list(self, session: SessionId | None = None) -> tuple[Checkpoint, ...]: ...

    async def delete(self, checkpoint: Checkpoint) -> None: ...

    async def drop_ghosts(self, live: Container[SessionId]) -> None: ...


class _Last(Record):
    """Of one session."""

    tried_at: float
    output: int
    cpu_s: float  # after it, for a dump uses the processor in the session's name


class PeriodicCheckpoints:
    """Of one host."""

    def __init__(
        self, sessions: Mapping[SessionId, LiveSession], continuity: MakesCheckpoints
    ) -> None:
        self._sessions, self._continuity = sessions, continuity
        self._last: dict[SessionId, _Last] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(CHECKPOINT_LOOK_S)
            for live in list(self._sessions.values()):
                try:
                    await self._look(live)
                except Exception:
                    log.exception("periodic checkpoint of %s", live.spec.name)
            await self._continuity.drop_ghosts(self._sessions)
            self._last = {each: at for each, at in self._last.items() if each in self._sessions}

    async def _look(self, live: LiveSession) -> None:
        every = live.spec.checkpoint_every_s
        if not every or live.is_closed or live.core.state.is_stopped:
            return
        last = self._last.get(live.spec.id)
        since = last.tried_at if last is not None else live.spec.created_at
        idle = now() - live.last_used_at >= CHECKPOINT_IDLE_S
        due = now() - since >= every or (idle and live.last_used_at > since)
        if not due or (last is not None and not self._changed(live, last)):
            return
        try:
            await self._continuity.checkpoint(live, HOST_ACTOR, note=NOTE)
        except HoldfastError as error:  # its journal says so; the next interval tries again
            log.warning("no periodic checkpoint of %s: %s", live.spec.name, error.message)
        else:
            await self._drop_older(live.spec.id)
        self._last[live.spec.id] = _Last(now(), live.ring.head, work_of(live.spec.place, 0).cpu_s)

    @staticmethod
    def _changed(live: LiveSession, last: _Last) -> bool:
        """Whether anything was typed, printed or computed since."""
        if live.ring.head != last.output or live.last_used_at > last.tried_at:
            return True
        return work_of(live.spec.place, 0).cpu_s - last.cpu_s > CPU_NOISE_S

    async def _drop_older(self, session: SessionId) -> None:
        mine = [each for each in await self._continuity.list(session) if each.note == NOTE]
        for each in mine[CHECKPOINTS_PERIODIC:]:
            await self._continuity.delete(each)


async def put_all_to_sleep(
    sessions: Iterable[LiveSession],
    continuity: MakesCheckpoints,
    store: SessionStore,
    actor: str,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Before the host stops: every session that can be is checkpointed and asleep, and comes back
    with the next host, on behalf of this actor. Gives their names, and why others run on."""
    done, failed = [], {}
    for live in list(sessions):
        name = live.spec.name
        if not live.spec.level.reaches(Level.MOVABLE):
            failed[name] = f"it is at level {live.spec.level}"
            continue
        try:
            waking = Waking(with_host_for=actor)
            await continuity.checkpoint(live, actor, note="shutdown", ends=True, waking=waking)
        except HoldfastError as error:
            failed[name] = error.message
            continue
        stored = store.tombstone(live.spec.id)
        if stored is not None and stored.is_asleep:
            done.append(name)
    return tuple(done), failed


class Wakes(Protocol):
    """Brings a session back that is asleep."""

    async def wake(self, stored: Stored, actor: str) -> None: ...


async def bring_back(asleep: Iterable[Stored], wakes: Wakes) -> None:
    """What was put to sleep for a shutdown, one after the other: each fills the disk's queue."""
    for stored in asleep:
        try:
            await wakes.wake(stored, stored.returns_for)
        except HoldfastError as error:
            log.error("%s stays asleep: %s", stored.info.name, error.message)
        except Exception:  # the others must come back all the same
            log.exception("%s stays asleep", stored.info.name)
