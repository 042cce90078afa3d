"""What a host can do for the continuity of its sessions, for whoever in it asks: requests, and what
happens by policy.

One thing at a time with each session: two restores of one would be two lives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.host.continuity import checkpoint, restore
from holdfast.host.continuity.checkpoint_files import CheckpointFiles, Manifest
from holdfast.model.checkpoint import CheckpointInfo, RestoreReport
from holdfast.model.errors import RestoreFailed
from holdfast.model.home import Home
from holdfast.model.ids import ActorId, SessionId
from holdfast.ports.launch import Launch

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession


class SessionContinuity:
    """Of one host."""

    def __init__(self, daemon: Daemon, files: CheckpointFiles) -> None:
        self.files = files
        self._daemon = daemon
        self._restoring: set[SessionId] = set()

    @property
    def home(self) -> Home:
        return self._daemon.home

    @property
    def launcher(self) -> Launch:
        return self._daemon.launcher

    @property
    def actor_name(self) -> Callable[[str], str]:
        return self._daemon.actors.name

    async def checkpoint(
        self, live: LiveSession, actor: ActorId, *, note: str = "", ends: bool = False
    ) -> CheckpointInfo:
        """See checkpoint.py. `ends`: the session is asleep afterwards."""
        return await checkpoint.checkpoint(self, live, actor, note=note, ends=ends)

    async def restore(
        self, manifest: Manifest, actor: ActorId
    ) -> tuple[LiveSession, RestoreReport]:
        """See restore.py. Whether the actor may is the caller's matter."""
        session = manifest.info.session
        with self._alone(session):
            return await restore.restore(self._daemon, manifest, actor)

    def latest(self, session: SessionId) -> Manifest | None:
        """The checkpoint that a restore by the session's name takes."""
        return self.files.latest(session)

    def latest_id(self, session: SessionId) -> str:
        """Its id; "" when there is none."""
        found = self.files.latest(session)
        return found.info.id if found is not None else ""

    @contextlib.contextmanager
    def _alone(self, session: SessionId) -> Iterator[None]:
        if session in self._restoring:
            raise RestoreFailed("it is being restored already", hint="`hold ls` shows it")
        if session in self._daemon.registry.live:
            raise RestoreFailed("it runs")
        self._restoring.add(session)
        try:
            yield
        finally:
            self._restoring.discard(session)
