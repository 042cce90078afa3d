"""Requests about the host itself: what it is, and to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.host.session_registry import Specified
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.info import HostInfo, IdleSession, PrunedSession
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection


class StoppableHost(Protocol):
    """The daemon, as far as it can be asked and stopped."""

    async def host_info(self, *, residency: bool) -> HostInfo: ...

    async def metrics(self) -> str: ...

    async def prune(self, *, dry_run: bool) -> tuple[PrunedSession, ...]: ...

    async def reap(self, actor: ActorId, *, dry_run: bool) -> tuple[IdleSession, ...]: ...

    def stop(self) -> None: ...

    def shut_down(self) -> None:
        """Daemon, supervisor and relay; sessions run on."""

    async def checkpoint_all(self, actor: ActorId) -> tuple[tuple[str, ...], dict[str, str]]:
        """Names of the sessions that are asleep now, and why others are not."""
        ...

    async def end_all(self, actor: ActorId) -> None:
        """Every session that this actor may end."""


class HostRequests:
    """Handlers of one host."""

    def __init__(self, host: StoppableHost, sessions: Mapping[SessionId, Specified]) -> None:
        self._host, self._sessions = host, sessions

    async def host(self, _: OperatorConnection, request: m.GetHost) -> m.Answer:
        return m.HostShown(request.id, await self._host.host_info(residency=request.residency))

    async def metrics(self, _: OperatorConnection, request: m.GetMetrics) -> m.Answer:
        return m.MetricsShown(request.id, await self._host.metrics())

    async def prune(self, _: OperatorConnection, request: m.Prune) -> m.Answer:
        return m.Pruned(request.id, await self._host.prune(dry_run=request.dry_run))

    async def reap(self, operator: OperatorConnection, request: m.Reap) -> m.Answer:
        found = await self._host.reap(operator.actor.id, dry_run=request.dry_run)
        return m.Reaped(request.id, found)

    def restart_daemon(self, _: OperatorConnection, request: m.RestartDaemon) -> m.Answer:
        asyncio.get_running_loop().call_soon(self._host.stop)
        return m.Done(request.id)

    async def shutdown(self, operator: OperatorConnection, request: m.Shutdown) -> m.Answer:
        if request.end_sessions:
            await self._host.end_all(operator.actor.id)
        asleep, failed = (), {}  # type: tuple[str, ...], dict[str, str]
        if request.checkpoint:
            with operator.waiting_for(""):
                asleep, failed = await self._host.checkpoint_all(operator.actor.id)
        kept = tuple(sorted(live.spec.name for live in self._sessions.values()))
        asyncio.get_running_loop().call_soon(self._host.shut_down)
        return m.HostStopped(request.id, kept, asleep, failed)
