"""A checkpoint of what a session's program gives of its own state, and the session begun again with
it: at any level, without root, on any kernel. Identity, journal, output and operators go on; the
processes are others, started by the session's own command.

    parcel   the session's state blob
    memory   its shared memory: output, ledger, screen
    untyped  input in custody that the terminal had not taken
    state    what its program gave (session/snapshot_place.py)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import time
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.seccomp import filter as seccomp
from holdfast.adapters.session_memory import layout
from holdfast.adapters.shell.report_fifo import look
from holdfast.core import events as ev
from holdfast.host.clock import now
from holdfast.host.continuity.restore_facts import MEMORY, PARCEL, UNTYPED
from holdfast.host.session import fencing_token
from holdfast.host.session.parcel import StateBlob
from holdfast.host.session.snapshot_place import SnapshotPlace
from holdfast.host.session.start import what_is_hidden
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.checkpoint import (
    Checkpoint,
    CheckpointDescription,
    CheckpointId,
    CheckpointKind,
    MachineNeeds,
    Waking,
)
from holdfast.model.errors import CheckpointFailed, HoldfastError, RestoreFailed, why_not
from holdfast.model.gate import EffectKind
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import CHECKPOINT_NOTE_MAX_CHARS
from holdfast.model.spec import LaunchSpec
from holdfast.model.state import Level
from holdfast.ports.launch import Launched

if TYPE_CHECKING:
    from holdfast.host.continuity.image_store import ImageStore
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession

STATE = "state"
_MAKING = "checkpointing"  # cleared by the next daemon, as those of CRIU
_ENDS_S = 30.0  # for a tree that is killed to be gone, and its keeper to say so


class SavingHost(Protocol):
    """The daemon, as far as such a checkpoint needs it."""

    @property
    def home(self) -> Home: ...

    @property
    def images(self) -> ImageStore: ...


def place_of(home: Home, live: LiveSession) -> SnapshotPlace:
    return SnapshotPlace(home, live.spec.process_tag, live.spec.uid)


def is_offered(home: Home, live: LiveSession) -> bool:
    """Whether a program of it can be asked. What a shell has started would not be there again when
    the shell is: its offer does not count."""
    return not live.spec.is_shell and place_of(home, live).offered_by(live.spec.place) is not None


async def checkpoint(
    host: SavingHost,
    live: LiveSession,
    actor: str,
    *,
    note: str = "",
    ends: bool = False,
    waking: Waking = Waking(),  # noqa: B008 (a record is frozen)
) -> Checkpoint:
    """Of a session that offers it. Raises CheckpointFailed, and what machine and store refuse; then
    it runs on."""
    passed = None
    if actor != HOST_ACTOR:
        passed = await live.gate.check(
            EffectKind.CHECKPOINT, ActorId(actor), "end" if ends else "", may_wait=True
        )
    live.handle(ev.CheckpointAsked(actor, now(), ends, passed))
    id = CheckpointId.of_random(os.urandom(16))
    directory, killed = f"{host.home.state}/{_MAKING}/{id}", False
    try:
        try:
            made = await _save(host, live, actor, note, ends, id, directory)
        except OSError as error:
            raise CheckpointFailed(f"it cannot be stored: {why_not(error)}") from error
        if ends:
            try:
                live.handle(ev.CheckpointStored(actor, now(), id, waking))
            except HoldfastError:
                await host.images.delete(id)
                raise
            live.kill()
            killed = True
            await asyncio.wait_for(asyncio.shield(live.closing.tombstone), _ENDS_S)
        return made
    except BaseException as error:
        if not live.is_closed:
            why = error.message if isinstance(error, HoldfastError) else str(error)
            live.journal.happened(actor, entries.CheckpointFailedEntry(why or "it was given up"))
        raise
    finally:
        if not (live.is_closed or killed):  # its keeper is about to say that it is gone
            live.handle(ev.CheckpointOver(HOST_ACTOR, now()))
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


async def _save(
    host: SavingHost,
    live: LiveSession,
    actor: str,
    note: str,
    ends: bool,
    id: CheckpointId,
    directory: str,
) -> Checkpoint:
    began, at = boottime.now(), time.time()
    state = await place_of(host.home, live).ask(live.spec.place)
    if not live.core.state.is_checkpointing:
        raise CheckpointFailed(f"it is {live.core.state.phase} by now")
    live.output.drain()
    live.journal.flush()
    files = {STATE: state, PARCEL: live.parcel_bytes(), UNTYPED: look(live.fds.input)}
    memory = layout.copy(live.ring.memfd)
    description = CheckpointDescription(
        session=live.spec.id,
        session_name=live.spec.name,
        epoch=live.spec.epoch,
        kind=CheckpointKind.APPLICATION,
        created_at=at,
        created_by=ActorId(actor) if actor else actor,
        level=live.spec.level,
        machine=MachineNeeds(""),
        journal_seq=live.journal.seq,
        journal_head=live.journal.head,
        note=note[:CHECKPOINT_NOTE_MAX_CHARS],
        frozen_ms=0.0,
        total_ms=round((boottime.now() - began) * 1000, 1),
    )
    try:
        await asyncio.to_thread(_write, directory, files, memory)
    finally:
        os.close(memory)
    made = await host.images.save(description, directory, id=id)
    entry = entries.CheckpointedEntry(made.id, made.journal_seq, made.raw_bytes, 0.0, note, ends)
    try:
        live.journal.record(actor, entry, forced=True)
        if why := await live.journal.sync():
            raise CheckpointFailed(f"it cannot be recorded: {why}")
    except HoldfastError:
        await host.images.delete(id)
        raise
    return made


def _write(directory: str, files: dict[str, bytes], memory: int) -> None:
    os.makedirs(directory, mode=0o700)
    layout.save(memory, f"{directory}/{MEMORY}")
    for name, data in files.items():
        with open(f"{directory}/{name}", "wb") as file:
            file.write(data)


async def launch_again(
    daemon: Daemon, kept: StateBlob, epoch: int, state: bytes, undo: contextlib.ExitStack
) -> Launched:
    """The session's own command, as it was started, with that state to go on from."""
    spec = kept.spec
    run = daemon.store.launch(spec.id)
    if run is None:
        raise RestoreFailed("what it was started with is not on this host's disk")
    user = pwd.getpwuid(spec.uid)
    place = SnapshotPlace(daemon.home, spec.process_tag, spec.uid)
    place.make(user.pw_gid, state)
    undo.callback(place.remove)
    token = fencing_token.environment(daemon.home, spec.process_tag, epoch)
    env = {**run.env, **token, **place.environment()}
    hidden = what_is_hidden(daemon.home, user, env, spec.level, with_keys=run.with_keys)
    wanted = LaunchSpec(
        session=spec.process_tag,
        argv=spec.argv,
        env=env,
        cwd=spec.cwd,
        uid=spec.uid,
        gid=user.pw_gid,
        groups=tuple(os.getgrouplist(user.pw_name, user.pw_gid)),
        size=kept.size,
        level=spec.level,
        hidden=hidden,
        kept=(daemon.home.run,) if hidden else (),
        gate=run.gate and spec.level.reaches(Level.CONTAINED) and not seccomp.unavailable(),
    )
    return await daemon.launcher.launch(wanted, {})
