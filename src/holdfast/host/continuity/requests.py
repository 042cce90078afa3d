"""Requests about checkpoints: made of a live session, listed, restored from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.core.access.authority import Authority
from holdfast.host.clock import now
from holdfast.host.continuity.checkpoint_files import CheckpointFiles, Manifest, is_id, no_such
from holdfast.host.continuity.restore import check_may_come_back
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.checkpoint import CheckpointInfo, ContinuityKind, RestoreReport
from holdfast.model.envelope import Right
from holdfast.model.errors import InvalidArgument, NoSuchCheckpoint
from holdfast.model.ids import ActorId, SessionId
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import (
    CheckpointList,
    CheckpointMade,
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


class CheckpointActions(Protocol):
    """What is done with checkpoints."""

    async def checkpoint(
        self, live: LiveSession, actor: ActorId, *, note: str, ends: bool
    ) -> CheckpointInfo: ...

    async def restore(
        self, manifest: Manifest, actor: ActorId
    ) -> tuple[LiveSession, RestoreReport]: ...


class CheckpointRequests:
    """Handlers of one host."""

    def __init__(
        self,
        files: CheckpointFiles,
        sessions: KnownSessions,
        authority: Authority,
        continuity: CheckpointActions,
        start: Callable[[Actor, m.Run], Awaitable[LiveSession]],
        close_for_good: Callable[[Stored], None],
    ) -> None:
        """`close_for_good`: a session that is asleep or was lost comes back no more."""
        self._files, self._sessions, self._authority = files, sessions, authority
        self._continuity, self._start, self._close = continuity, start, close_for_good

    async def checkpoint(
        self, operator: OperatorConnection, request: MakeCheckpoint, live: LiveSession
    ) -> m.Answer:
        made = await self._continuity.checkpoint(
            live, operator.actor.id, note=request.note, ends=request.end
        )
        return CheckpointMade(request.id, made)

    def checkpoints(
        self,
        operator: OperatorConnection,
        request: ListCheckpoints,
        found: LiveSession | Stored | None,
    ) -> m.Answer:
        wanted = None if found is None else _id_of(found)
        seen = [
            manifest.info
            for manifest in self._files.all()
            if (wanted is None and self._sessions.may_see_id(operator.actor, manifest.info.session))
            or manifest.info.session == wanted
        ]
        return CheckpointList(request.id, tuple(seen))

    async def restore(self, operator: OperatorConnection, request: Restore) -> m.Answer:
        actor = operator.actor
        manifest, found = self._find(actor, request.target)
        if not isinstance(found, Stored):
            raise InvalidArgument(
                f"{found.spec.name} runs; only what is asleep or was lost can be restored",
                hint=f"`hold attach {found.spec.name}`, or `hold checkpoint {found.spec.name} "
                "--end` first",
            )
        info = found.info
        self._authority.check(actor.id, Right.CHECKPOINT, info.id, info.labels, now())
        if request.cold:
            return await self._start_cold(actor, request, found)
        check_may_come_back(found, info.id)
        if manifest is None:
            raise NoSuchCheckpoint(
                f"there is no checkpoint of {info.name}",
                hint=f"`hold restore --cold {info.name}` starts its command again",
            )
        live, report = await self._continuity.restore(manifest, actor.id)
        return Restored(request.id, live.info(), report)

    def _find(self, actor: Actor, target: str) -> tuple[Manifest | None, LiveSession | Stored]:
        if not is_id(target):
            found = self._sessions.find(actor, target)
            return self._files.latest(_id_of(found)), found
        manifest = self._files.manifest(target)
        if not self._sessions.may_see_id(actor, manifest.info.session):
            raise no_such(target)
        return manifest, self._sessions.find(actor, manifest.info.session)

    async def _start_cold(self, actor: Actor, request: Restore, found: Stored) -> m.Answer:
        """The escape hatch: the same command in the same directory, and nothing of what it had
        been. Its predecessor's record says that it is over."""
        info = found.info
        check_may_come_back(found, info.id)
        self._authority.check(actor.id, Right.END, info.id, info.labels, now())
        self._close(found)
        run = m.Run(
            0,
            argv=info.argv,
            name=info.name,
            cwd=info.cwd,
            env=request.env,
            size=request.size,
            labels=info.labels,
            level=info.level,
            predecessor=info.id,
        )
        live = await self._start(actor, run)
        report = RestoreReport(
            checkpoint="",
            epoch_before=info.epoch,
            epoch=live.spec.epoch,
            kind=ContinuityKind.COLD,
        )
        return Restored(request.id, live.info(), report)


def _id_of(found: LiveSession | Stored) -> SessionId:
    return found.info.id if isinstance(found, Stored) else found.spec.id
