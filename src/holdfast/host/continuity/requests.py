"""Requests about checkpoints: made of a live session, listed, restored from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.core.access.authority import Authority
from holdfast.host.clock import now
from holdfast.host.continuity.restore import check_may_come_back
from holdfast.host.revival import Revival
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import Checkpoint, CheckpointId, CheckpointInfo
from holdfast.model.envelope import Right
from holdfast.model.errors import InvalidArgument, NoSuchCheckpoint
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.restore import ContinuityKind, RestoreReport
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import (
    CheckpointDeleted,
    CheckpointList,
    CheckpointMade,
    DeleteCheckpoint,
    ListCheckpoints,
    MakeCheckpoint,
    Restore,
    Restored,
)

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.live_session import LiveSession


class KnownSessions(Protocol):
    """Sessions of this host, live or not, as far as an actor may see them."""

    def find(self, actor: Actor, text: str, *, by_prefix: bool = False) -> LiveSession | Stored: ...

    def may_see_id(self, actor: Actor, session: SessionId) -> bool: ...


class KnownActors(Protocol):
    """Names and rights."""

    authority: Authority

    def name(self, actor: str) -> str: ...


class CheckpointActions(Protocol):
    """What is done with checkpoints."""

    async def checkpoint(
        self, live: LiveSession, actor: ActorId, *, note: str, ends: bool
    ) -> Checkpoint: ...

    async def restore(
        self, found: Checkpoint, actor: ActorId, *, host_is_dead: bool, files: RestoreFiles
    ) -> tuple[LiveSession, RestoreReport]: ...

    async def hand_over(
        self,
        stored: Stored,
        found: Checkpoint,
        actor: ActorId,
        ticket: str,
        name: str,
        files: RestoreFiles,
    ) -> tuple[SessionInfo, RestoreReport]: ...

    async def find(self, which: CheckpointId | SessionId) -> Checkpoint: ...

    async def list(self, session: SessionId | None = None) -> tuple[Checkpoint, ...]: ...

    async def delete(self, checkpoint: Checkpoint, actor: str) -> None: ...

    async def used_bytes(self) -> int: ...


class CheckpointRequests:
    """Handlers of one host."""

    def __init__(
        self,
        sessions: KnownSessions,
        actors: KnownActors,
        continuity: CheckpointActions,
        revival: Revival,
        close_for_good: Callable[[Stored], Stored],
    ) -> None:
        """`close_for_good`: a session that is asleep or was lost comes back no more."""
        self._sessions, self._actors, self._continuity = sessions, actors, continuity
        self._revival, self._close = revival, close_for_good

    async def checkpoint(
        self, operator: OperatorConnection, request: MakeCheckpoint, live: LiveSession
    ) -> m.Answer:
        with operator.waiting_for(live.spec.id):
            made = await self._continuity.checkpoint(
                live, operator.actor.id, note=request.note, ends=request.end
            )
        return CheckpointMade(request.id, self._info(made))

    async def checkpoints(
        self,
        operator: OperatorConnection,
        request: ListCheckpoints,
        found: LiveSession | Stored | None,
    ) -> m.Answer:
        wanted = None if found is None else _id_of(found)
        every = await self._continuity.list(wanted)
        may_see = self._sessions.may_see_id
        seen = [each for each in every if wanted or may_see(operator.actor, each.session)]
        return CheckpointList(request.id, tuple(map(self._info, seen)))

    async def delete(self, operator: OperatorConnection, request: DeleteCheckpoint) -> m.Answer:
        actor = operator.actor
        checkpoint, found = await self._find(actor, request.target)
        if checkpoint is None:
            raise InvalidArgument(
                f"{request.target[:80]!r} is not a checkpoint", hint="`hold checkpoints` lists them"
            )
        id, labels = _id_of(found), _labels_of(found)
        self._actors.authority.check(actor.id, Right.CHECKPOINT, id, labels, now())
        ending = found.info.ending if isinstance(found, Stored) else None
        if ending is not None and ending.checkpoint == checkpoint.id:
            raise InvalidArgument(
                f"{checkpoint.session_name} is asleep in {checkpoint.id}, and would be lost",
                hint=f"`hold restore {checkpoint.session_name}` first, or give it up with --cold",
            )
        await self._continuity.delete(checkpoint, actor.id)
        used = await self._continuity.used_bytes()
        return CheckpointDeleted(request.id, self._info(checkpoint), used)

    async def restore(self, operator: OperatorConnection, request: Restore) -> m.Answer:
        actor = operator.actor
        checkpoint, found = await self._find(actor, request.target)
        if not isinstance(found, Stored):
            raise InvalidArgument(
                f"{found.spec.name} runs; only what is asleep or was lost can be restored",
                hint=f"`hold attach {found.spec.name}`, or `hold checkpoint {found.spec.name} "
                "--end` first",
            )
        info, authority = found.info, self._actors.authority
        if found.handed_to is None or not (request.ticket or request.host_is_dead):
            check_may_come_back(found, info.id)
        if request.cold:
            check_may_come_back(found, info.id)
            return await self._start_cold(operator, request, found)
        authority.check(actor.id, Right.CHECKPOINT, info.id, info.labels, now())
        if checkpoint is None:
            checkpoint = await self._latest(info.name, info.id)
        if request.ticket:
            authority.check(actor.id, Right.MOVE, info.id, info.labels, now())
            with operator.waiting_for(info.id):
                there, report = await self._continuity.hand_over(
                    found, checkpoint, actor.id, request.ticket, request.on, request.files
                )
            return Restored(request.id, there, report)
        if request.host_is_dead:  # as grave as granting rights, as it is to force a lease
            authority.check(actor.id, Right.GRANT, info.id, info.labels, now())
        with operator.waiting_for(info.id):
            live, report = await self._continuity.restore(
                checkpoint, actor.id, host_is_dead=request.host_is_dead, files=request.files
            )
        return Restored(request.id, live.info(), report)

    async def _find(
        self, actor: Actor, target: str
    ) -> tuple[Checkpoint | None, LiveSession | Stored]:
        try:
            id = CheckpointId(target)
        except ValueError:
            return None, self._sessions.find(actor, target)
        checkpoint = await self._continuity.find(id)
        if not self._sessions.may_see_id(actor, checkpoint.session):
            raise NoSuchCheckpoint(f"there is no checkpoint {target}")
        return checkpoint, self._sessions.find(actor, checkpoint.session)

    async def _latest(self, name: str, session: SessionId) -> Checkpoint:
        try:
            return await self._continuity.find(session)
        except NoSuchCheckpoint as error:
            raise NoSuchCheckpoint(
                f"there is no checkpoint of {name}",
                hint=f"`hold restore --cold {name}` starts its command again",
            ) from error

    async def _start_cold(
        self, operator: OperatorConnection, request: Restore, found: Stored
    ) -> m.Answer:
        """The escape hatch: what is known about the session, and nothing of its memory. Its record
        says that it is over."""
        actor, info = operator.actor, found.info
        self._actors.authority.check(actor.id, Right.END, info.id, info.labels, now())
        revived = await self._revival.revive(actor, operator.inside, self._close(found))
        report = RestoreReport(
            checkpoint="",
            epoch_before=info.epoch,
            epoch=revived.info.epoch,
            kind=ContinuityKind.COLD,
        )
        return Restored(request.id, revived.info, report)

    def _info(self, made: Checkpoint) -> CheckpointInfo:
        return CheckpointInfo(
            id=made.id,
            session=made.session,
            name=made.session_name,
            epoch=made.epoch,
            kind=made.kind,
            at=made.created_at,
            actor=self._actors.name(made.created_by),
            note=made.note,
            bytes=made.raw_bytes,
            stored_bytes=made.stored_bytes,
            frozen_ms=made.frozen_ms,
            total_ms=round(made.total_ms, 1),
            bytes_new=made.new_bytes,
            method=made.method,
            copied_at_once=made.copied_at_once,
            files=made.captured.files,
            file_bytes=made.captured.bytes,
            left_out=made.captured.left_out,
            left_out_count=made.captured.left_out_count,
            journal_seq=made.journal_seq,
        )


def _labels_of(found: LiveSession | Stored) -> tuple[str, ...]:
    return found.info.labels if isinstance(found, Stored) else found.spec.labels


def _id_of(found: LiveSession | Stored) -> SessionId:
    return found.info.id if isinstance(found, Stored) else found.spec.id
