"""What a host can do for the continuity of its sessions, for whoever in it asks: requests, and what
happens by policy.

One thing at a time with each session: two restores of one would be two lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.host.clock import now
from holdfast.host.continuity import checkpoint, own_state, restore
from holdfast.host.continuity.checkpoint import Making
from holdfast.host.continuity.handover import target as handover
from holdfast.host.continuity.image_store import has_saved
from holdfast.host.continuity.kept_ghosts import KeptGhosts
from holdfast.host.continuity.progress import WorkProgress
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import Checkpoint, CheckpointId, Waking
from holdfast.model.errors import HoldfastError, RestoreFailed
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.restore import RestoreReport
from holdfast.wire.messages.checkpoints import ProgressEvent
from holdfast.wire.messages.session import RehomedEvent

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession
    from holdfast.host.session_store import Stored

log = logging.getLogger(__name__)
_T = TypeVar("_T")


class SessionContinuity:
    """Of one host."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.restoring: set[SessionId] = set()  # their processes are not strays
        self._settled: dict[SessionId, asyncio.Event] = {}  # set once these are restored, or not
        self._kept_ghosts = KeptGhosts()
        self._followed: set[SessionId] = set()  # a successor of theirs is being started

    def clear_unfinished(self) -> None:
        """What an earlier daemon was putting together when it died."""
        checkpoint.clear_unfinished(self._daemon.home.state)
        restore.clear_unfinished(self._daemon.home.state)
        handover.clear_unfinished(self._daemon.home.state)

    async def checkpoint(
        self,
        live: LiveSession,
        actor: str,
        *,
        note: str = "",
        ends: bool = False,
        waking: Waking = Waking(),  # noqa: B008 (a record is frozen)
    ) -> Checkpoint:
        """See checkpoint.py, and own_state.py for a program that gives its own. `ends`: the
        session is asleep afterwards, and `waking` brings it back. Whoever asks may leave: that
        stops it, until the tree may be ended."""
        daemon = self._daemon
        progress = self._progress(live, live.spec.id, live.spec.name, "checkpoint")
        if own_state.is_offered(daemon.home, live):
            progress.phase("ask")
            saving = own_state.checkpoint(daemon, live, actor, note=note, ends=ends, waking=waking)
            return await _carried_on(_told(saving, progress), lambda: not ends)
        making = checkpoint.Making(
            daemon, live, actor, note, ends, waking, progress, self._kept_ghosts
        )
        return await _carried_on(_told(making.run(), progress), lambda: making.may_be_stopped)

    async def restore(
        self,
        found: Checkpoint,
        actor: str,
        *,
        host_is_dead: bool = False,
        files: RestoreFiles = RestoreFiles.ASK,
    ) -> tuple[LiveSession, RestoreReport]:
        """See restore.py. Whether the actor may is the caller's matter. It is done also if the
        caller leaves: a launcher at work cannot be stopped, and nothing else may happen to the
        session meanwhile."""
        return await _carried_on(self._restore(found, actor, host_is_dead, files), lambda: False)

    async def _restore(
        self, found: Checkpoint, actor: str, host_is_dead: bool, files: RestoreFiles
    ) -> tuple[LiveSession, RestoreReport]:
        with self._alone(found.session), self._recalled(found.session, host_is_dead):
            stored = restore.check_may_come_back(
                self._daemon.store.tombstone(found.session), found.session
            )
            progress = self._progress(stored, found.session, stored.info.name, "restore")
            work = restore.restore(
                self._daemon, found, actor, progress, host_is_dead=host_is_dead, files=files
            )
            live, report = await _told(work, progress)
        event = _rehomed(live, report, found)
        for operator in live.presence.recipients():
            operator.event(event)
        return live, report

    async def hand_over(
        self,
        stored: Stored,
        found: Checkpoint,
        actor: ActorId,
        ticket: str,
        name: str,
        files: RestoreFiles = RestoreFiles.ASK,
    ) -> tuple[SessionInfo, RestoreReport]:
        """To the host that gave the ticket, which people call `name`; see handover/. Whether the
        actor may is the caller's matter, and it is done also if the caller leaves."""
        work = self._hand_over(stored, found, actor, ticket, name, files)
        return await _carried_on(work, lambda: False)

    async def _hand_over(
        self,
        stored: Stored,
        found: Checkpoint,
        actor: ActorId,
        ticket: str,
        name: str,
        files: RestoreFiles = RestoreFiles.ASK,
    ) -> tuple[SessionInfo, RestoreReport]:
        with self._alone(found.session):
            progress = self._progress(stored, found.session, stored.info.name, "restore")
            source = self._daemon.handover
            info = stored.info
            await restore.judge(
                self._daemon,
                actor,
                info.id,
                info.name,
                info.labels,
                info.level,
                info.epoch,
                info.cwd,
                text=f"restore on {name or 'another host'}",
            )
            work = source.hand_over(stored, found, ticket, name, actor, files, progress)
            return await _told(work, progress)

    async def find(self, which: CheckpointId | SessionId) -> Checkpoint:
        """One of them, or the last of a session."""
        return await self._daemon.images.find(which)

    async def list(self, session: SessionId | None = None) -> tuple[Checkpoint, ...]:
        """Newest first."""
        return await self._daemon.images.list(session)

    async def delete(self, checkpoint: Checkpoint, actor: str = HOST_ACTOR) -> None:
        """Whether the actor may is the caller's matter."""
        await self._daemon.images.delete(checkpoint.id)
        if actor != HOST_ACTOR:
            who, name = self._daemon.actors.name(actor), checkpoint.session_name
            log.info("checkpoint %s of %s was deleted by %s", checkpoint.id, name, who)

    async def delete_all(self, session: SessionId) -> None:
        """Of a session that comes back no more, and of which nothing else is kept."""
        try:
            if self.latest_id(session):
                for each in await self.list(session):
                    await self.delete(each)
        except (HoldfastError, OSError) as error:
            log.error("checkpoints of %s are not deleted: %s", session, error)

    async def used_bytes(self) -> int:
        """What all checkpoints of this host use in the store."""
        return await self._daemon.images.used_bytes()

    async def drop_ghosts(self, live: Container[SessionId]) -> None:
        """Of sessions that are over, and where memory is short."""
        await self._kept_ghosts.drop_some(live)

    def latest_id(self, session: SessionId) -> str:
        """Of the last checkpoint that this host remembers; "" when there was none."""
        if not has_saved(self._daemon.home.state):
            return ""
        try:
            found = self._daemon.images.last_saved(session)
        except (HoldfastError, OSError) as error:
            log.error("the last checkpoint of %s: %s", session, error)
            return ""
        return found or ""

    def image_for_move(self, live: LiveSession, actor: str, to: str) -> tuple[Making, WorkProgress]:
        """Of a session that is about to leave, and how those who hear of it learn how far that
        is."""
        progress = self._progress(live, live.spec.id, live.spec.name, "move")
        note = f"moving to {to}"
        making = Making(
            self._daemon,
            live,
            actor,
            note,
            False,
            Waking(),
            progress,
            self._kept_ghosts,
            stands=True,
        )
        return making, progress

    def _progress(
        self, found: LiveSession | Stored, session: SessionId, name: str, work: str
    ) -> WorkProgress:
        def tell(event: ProgressEvent) -> None:
            self._daemon.operators.tell_progress(event, found)

        return WorkProgress(session, name, work, tell)

    def is_restoring(self, session: SessionId) -> bool:
        return session in self.restoring

    async def settled(self, session: SessionId) -> None:
        """Once no restore of it is under way."""
        while (event := self._settled.get(session)) is not None:
            await event.wait()

    @contextlib.contextmanager
    def _recalled(self, session: SessionId, host_is_dead: bool) -> Iterator[None]:
        """What was handed to another host is this one's again, on somebody's word that the other
        one is dead; if it then does not come back, it is not."""
        store, registry = self._daemon.store, self._daemon.registry
        stored = store.tombstone(session)
        if stored is None or stored.handed_to is None or not host_is_dead:
            yield
            return
        recalled = stored.given_back().replace(attested_epoch=stored.handed_to.epoch)
        store.rewrite_tombstone(recalled)
        registry.updated(recalled)
        try:
            yield
        except BaseException:
            store.rewrite_tombstone(stored)
            registry.updated(stored)
            raise

    @contextlib.contextmanager
    def following(self, session: SessionId) -> Iterator[None]:
        """While a successor of it is started: it is not restored, nor followed by another one."""
        self._check_nothing_begun(session)
        self._followed.add(session)
        try:
            yield
        finally:
            self._followed.discard(session)

    def _check_nothing_begun(self, session: SessionId) -> None:
        if session in self.restoring:
            raise RestoreFailed("it is being restored already", hint="`hold ls` shows it")
        if session in self._followed:
            raise RestoreFailed("a successor of it is being started", hint="`hold ls` shows it")

    @contextlib.contextmanager
    def _alone(self, session: SessionId) -> Iterator[None]:
        self._check_nothing_begun(session)
        if session in self._daemon.registry.live:
            raise RestoreFailed("it runs")
        self.restoring.add(session)
        self._settled[session] = asyncio.Event()
        try:
            yield
        finally:
            self.restoring.discard(session)
            self._settled.pop(session).set()


async def _told(work: Coroutine[Any, Any, _T], progress: WorkProgress) -> _T:
    with progress.told():
        return await work


async def _carried_on(work: Coroutine[Any, Any, _T], may_be_stopped: Callable[[], bool]) -> _T:
    """Its result. If the caller is cancelled it is stopped only if it may be, and else ends by
    itself."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if may_be_stopped():
            task.cancel()
        _unwaited.add(task)
        task.add_done_callback(_ended)
        raise


_unwaited: set[asyncio.Task[Any]] = set()  # the loop itself would forget them


def _ended(task: asyncio.Task[Any]) -> None:
    _unwaited.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("nobody waits for it any more, and it failed: %s", error)


def _rehomed(live: LiveSession, report: RestoreReport, found: Checkpoint) -> RehomedEvent:
    at = now()
    return RehomedEvent(
        session=live.spec.id,
        name=live.spec.name,
        at=at,
        epoch_before=report.epoch_before,
        epoch=report.epoch,
        kind=report.kind,
        checkpoint=report.checkpoint,
        bytes=report.bytes,
        restore_ms=round(sum(phase.ms for phase in report.phases), 1),
        downtime_s=max(0.0, at - found.created_at),
        resets=len(report.reset),
        inputs_lost=report.inputs_lost,
    )
