"""A live session -> a checkpoint. The session stands still while its tree is written, and then runs
on or, if that was asked for, is ended with it and asleep.

Input that comes meanwhile waits, and is delivered in order. Whatever fails, the session runs on and
the reason is given; only when all is safely stored may CRIU end the tree.

Deliberately absent: who may (core.session), and where checkpoints are kept (checkpoint_files.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters import pty
from holdfast.adapters.criu import dump as criu
from holdfast.adapters.session_memory import layout
from holdfast.adapters.shell.integration import state_path
from holdfast.adapters.shell.report_fifo import look
from holdfast.core import events as ev
from holdfast.host import levels
from holdfast.host.clock import now
from holdfast.host.continuity.checkpoint_files import (
    FORMAT,
    IMAGES,
    CheckpointFiles,
    Manifest,
)
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.checkpoint import CheckpointInfo
from holdfast.model.errors import CheckpointFailed, HoldfastError, LevelUnavailable, why_not
from holdfast.model.gate import EffectKind
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import CHECKPOINT_NOTE_MAX_CHARS
from holdfast.model.state import Level
from holdfast.ports.launch import Launch

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)

PARCEL, MEMORY, UNTYPED, SHELL_STATE = "parcel", "memory", "untyped", "shell-state"
_ENDS_S = 30.0  # for CRIU to end a tree that was checkpointed, and the keeper to say so
_TRACED_LOOK_S = 0.05


class CheckpointingHost(Protocol):
    """The daemon, as far as a checkpoint needs it."""

    files: CheckpointFiles

    @property
    def home(self) -> Home: ...

    @property
    def launcher(self) -> Launch: ...

    @property
    def actor_name(self) -> Callable[[str], str]: ...


class _Captured:
    """What the session is besides its tree, at the moment in which that stands still."""

    def __init__(self, live: LiveSession, home: Home) -> None:
        live.output.drain()
        live.commands.read_reports()
        live.journal.flush()
        self.journal_seq = live.journal.seq
        self.unread = pty.take_unread(live.fds.master)
        pty.put_unread(live.fds.master, self.unread)
        self.untyped = look(live.fds.input)
        self.size = live.core.size
        self.parcel = live.parcel_bytes()
        self.groups = criu.groups(live.spec.place.cgroup)
        self.shell_state = b""
        if live.spec.shell:
            path = state_path(levels.bell_path(home, live.spec.process_tag))
            with contextlib.suppress(OSError), open(path, "rb") as file:
                self.shell_state = file.read()
        self.memory = layout.copy(live.ring.memfd)

    def close(self) -> None:
        os.close(self.memory)

    def write(self, directory: str) -> None:
        layout.save(self.memory, f"{directory}/{MEMORY}")
        contents = {PARCEL: self.parcel, UNTYPED: self.untyped, SHELL_STATE: self.shell_state}
        for name, data in contents.items():
            with open(f"{directory}/{name}", "wb") as file:
                file.write(data)


async def checkpoint(
    host: CheckpointingHost,
    live: LiveSession,
    actor: ActorId,
    *,
    note: str = "",
    ends: bool = False,
) -> CheckpointInfo:
    """Of a session that runs. Raises CheckpointFailed, and what the session machine refuses."""
    work = _Checkpoint(host, live, actor, note, ends)
    return await work.run()


class _Checkpoint:
    """One of them."""

    def __init__(
        self, host: CheckpointingHost, live: LiveSession, actor: ActorId, note: str, ends: bool
    ) -> None:
        self._host, self._live, self._actor = host, live, actor
        self._note, self._ends = note[:CHECKPOINT_NOTE_MAX_CHARS], ends
        self._began = boottime.now()
        self._captured: _Captured | None = None
        self._made: Manifest | None = None

    async def run(self) -> CheckpointInfo:
        live, actor = self._live, self._actor
        if not live.spec.level.reaches(Level.MOVABLE):
            raise LevelUnavailable(
                f"{live.spec.name} is at level {live.spec.level}; only a movable session can be "
                "checkpointed",
                hint="`hold doctor` says what this host lacks; sessions get their level at start",
            )
        passed = await live.gate.check(
            EffectKind.CHECKPOINT, actor, "end" if self._ends else "", may_wait=True
        )
        live.handle(ev.CheckpointAsked(actor, now(), self._ends, passed))
        try:
            info = await self._make()
        except BaseException as error:
            if not live.is_closed:
                live.journal.happened(actor, entries.CheckpointFailedEntry(_reason(error)))
            raise
        finally:
            if not live.is_closed:
                live.handle(ev.CheckpointOver(HOST_ACTOR, now()))
        return info

    async def _make(self) -> CheckpointInfo:
        files, live = self._host.files, self._live
        try:
            checkpoint, making = files.begin()
        except OSError as error:
            raise CheckpointFailed(f"it cannot be stored: {why_not(error)}") from error
        try:
            async with live.halts.undisturbed():
                manifest, times = await self._dump(checkpoint, making)
            if not self._ends:
                manifest = await self._store(making, manifest, times.frozen_ms)
        except OSError as error:
            raise CheckpointFailed(f"it cannot be stored: {why_not(error)}") from error
        finally:
            if self._captured is not None:
                self._captured.close()
            if self._made is None:
                await asyncio.to_thread(files.discard, making)
        if self._ends:
            await asyncio.wait_for(asyncio.shield(live.closing.tombstone), _ENDS_S)
        return (self._made or manifest).info

    async def _dump(self, checkpoint: str, making: str) -> tuple[Manifest, criu.DumpTimes]:
        live, place = self._live, self._live.spec.place
        slave = pty.open_slave(live.fds.master)
        try:
            tree = criu.look(place, slave, gate=live.fds.gate >= 0)
        finally:
            os.close(slave)
        info = CheckpointInfo(
            id=checkpoint,
            session=live.spec.id,
            name=live.spec.name,
            epoch=live.spec.epoch,
            at=time.time(),
            actor=self._host.actor_name(self._actor),
            note=self._note,
            ended=self._ends,
        )
        manifest = Manifest(
            FORMAT,
            info,
            tree,
            place,
            live.spec.uid,
            live.core.size,
            "",
            platform.machine(),
            platform.release(),
            {},
        )
        images = os.open(f"{making}/{IMAGES}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        since = boottime.now()

        async def frozen() -> None:
            nonlocal manifest
            manifest = self._capture(manifest)
            if self._ends:
                await asyncio.to_thread(criu.finish_images, images)
                frozen_ms = (boottime.now() - since) * 1000
                manifest = await self._store(making, manifest, frozen_ms)
                live.handle(ev.CheckpointStored(self._actor, now(), checkpoint))

        try:
            times = await criu.dump(
                self._host.launcher.start_criu,
                place,
                tree,
                images,
                frozen,
                leave_running=not self._ends,
            )
            if not self._ends:
                await asyncio.to_thread(criu.finish_images, images)
        finally:
            os.close(images)
        return manifest, times

    def _capture(self, manifest: Manifest) -> Manifest:
        """While everything stands still: in memory, so that it does not take long."""
        if not self._live.core.state.is_checkpointing:
            raise CheckpointFailed(f"it is {self._live.core.state.phase} by now")
        self._captured = captured = _Captured(self._live, self._host.home)
        info = manifest.info.replace(
            journal_seq=captured.journal_seq,
            tasks=criu.processes(self._live.spec.place),
        )
        return manifest.replace(
            info=info,
            tree=manifest.tree.replace(groups=captured.groups),
            size=captured.size,
            unread=captured.unread.hex(),
        )

    async def _store(self, making: str, manifest: Manifest, frozen_ms: float) -> Manifest:
        """Written, on disk, in the journal."""
        live, captured = self._live, self._captured
        assert captured is not None
        total_ms = (boottime.now() - self._began) * 1000
        info = manifest.info.replace(frozen_ms=round(frozen_ms, 1), total_ms=round(total_ms, 1))
        manifest = manifest.replace(info=info)

        def write() -> Manifest:
            captured.write(making)
            return self._host.files.finish(making, manifest)

        made = await asyncio.to_thread(write)
        info = made.info
        entry = entries.CheckpointedEntry(
            *(info.id, made.digest, info.journal_seq, info.bytes, info.frozen_ms),
            *(info.note, info.ended),
        )
        try:
            live.journal.record(self._actor, entry, forced=True)
            await live.journal.sync()
        except HoldfastError:
            await asyncio.to_thread(self._host.files.remove, info.id)
            raise
        self._made = made
        return made


def _reason(error: BaseException) -> str:
    return error.message if isinstance(error, HoldfastError) else str(error) or "it was given up"


async def settle_interrupted(live: LiveSession) -> None:
    """The daemon before was about to have the tree ended with its checkpoint. CRIU may be doing so,
    or found that nobody answers it and lets the tree run on; while it works it traces the tree."""
    while not live.is_closed:
        if not criu.is_traced(live.spec.place):
            live.handle(ev.CheckpointOver(HOST_ACTOR, now()))
            return
        await asyncio.sleep(_TRACED_LOOK_S)
