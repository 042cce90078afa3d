"""A checkpoint -> the same session, alive, in the next epoch.

In this order: everything is checked before anything is touched; the tree is restored and stands
still; it is put into custody; the journal says so, in the new epoch; only then it runs. What fails
before it is in custody leaves everything as it was. From there on the session is alive: a daemon
that dies leaves it to the next one, which lets it run.

Nothing is executed again: what the journal has is evidence, and stays that (M5).

Deliberately absent: how the tree is put together (adapters/launch/restored_child.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pwd
import socket
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.session_memory import layout
from holdfast.adapters.session_memory.output_ring import make_conduit
from holdfast.adapters.shell import integration as shell
from holdfast.adapters.signing import check
from holdfast.core.gate.verdicts import strictest
from holdfast.host import levels
from holdfast.host.continuity.checkpoint import MEMORY, PARCEL, SHELL_STATE, UNTYPED
from holdfast.host.continuity.checkpoint_files import IMAGES, Manifest
from holdfast.host.keeper_link import Collected, KeeperLink
from holdfast.host.session import fencing_token
from holdfast.host.session.command_leaves import SavedLeaves
from holdfast.host.session.parcel import SessionFds, StateBlob
from holdfast.host.session.recovery import RestoredLife, recover
from holdfast.host.session_store import Stored
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.keeper.boottime import boot_id
from holdfast.model.checkpoint import RestorePhase, RestoreReport
from holdfast.model.errors import (
    CheckpointInvalid,
    GateRefused,
    RestoreFailed,
    SessionEnded,
    session_over,
)
from holdfast.model.gate import Contributor, EffectKind, Outcome, Part, ProposedEffect
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import RESETS_RECORDED
from holdfast.model.spec import Place
from holdfast.ports.launch import RestoredTree, RestoreSpec

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.lease import SessionLease
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)


async def restore(
    daemon: Daemon, manifest: Manifest, actor: ActorId
) -> tuple[LiveSession, RestoreReport]:
    """On behalf of this actor, which may. Raises CheckpointInvalid, RestoreFailed, and what says
    that the session cannot come back."""
    return await _Restore(daemon, manifest, actor).run()


def check_may_come_back(stored: Stored | None, session: SessionId) -> Stored:
    """Only what is asleep or was lost: an id whose session ended never lives again."""
    if stored is None:
        raise RestoreFailed(f"this host knows nothing of the session {session}")
    ending = stored.info.ending
    if ending is None or not (ending.checkpoint or ending.lost is not None):
        raise session_over(
            stored.info.name,
            ending,
            hint="what has ended does not live again; `hold restore --cold` starts a successor",
        )
    if stored.successor:
        raise session_over(stored.info.name, ending)
    return stored


class _Restore:
    """One of them."""

    def __init__(self, daemon: Daemon, manifest: Manifest, actor: ActorId) -> None:
        self._daemon, self._manifest, self._actor = daemon, manifest, actor
        self._session = manifest.info.session
        self._phases: list[RestorePhase] = []
        self._since = boottime.now()

    async def run(self) -> tuple[LiveSession, RestoreReport]:
        daemon, manifest, session = self._daemon, self._manifest, self._session
        stored = check_may_come_back(daemon.store.tombstone(session), session)
        files = daemon.continuity.files
        await asyncio.to_thread(files.check, manifest)
        before, lost = await asyncio.to_thread(self._check_journal)
        kept = StateBlob.of_blob(files.read(manifest.info.id, PARCEL))
        if kept.spec.id != session:
            raise CheckpointInvalid(f"{manifest.info.id} is of another session")
        await self._judge(kept)
        self._passed("check")
        name = daemon.registry.reserve(stored.uid, stored.info.name, "")
        try:
            return await self._restore(stored, kept, before, lost)
        finally:
            daemon.registry.settle(stored.uid, name)

    def _passed(self, phase: str) -> None:
        at = boottime.now()
        self._phases.append(RestorePhase(phase, round((at - self._since) * 1000, 1)))
        self._since = at

    def _check_journal(self) -> tuple[int, int]:
        """The session's own record names this checkpoint, with its digest: none of another session,
        and no older one in its place, passes. Gives the last epoch, and how many inputs were taken
        since."""
        info, found, inputs, epoch = self._manifest.info, False, 0, self._manifest.info.epoch
        reader = JournalReader(self._daemon.store.directory(self._session))
        last = reader.verify(self._session, check).last_seq
        for entry in reader.entries(info.journal_seq + 1, last):
            epoch = max(epoch, entry.epoch)
            body = entry.body
            if isinstance(body, entries.CheckpointedEntry) and body.id == info.id:
                found = body.digest == self._manifest.digest
            elif isinstance(body, entries.InputEntry | entries.BlindInput):
                inputs += 1
            elif isinstance(body, entries.Discontinued):
                raise SessionEnded(
                    f"the record of {info.name} was closed: {body.reason}",
                    hint="`hold restore --cold` starts a successor",
                )
        if not found:
            raise CheckpointInvalid(f"the journal of {info.name} does not know {info.id} as it is")
        return epoch, inputs

    async def _judge(self, kept: StateBlob) -> None:
        """A policy may refuse it. Nothing can wait for an approval in a session that does not
        live."""
        daemon, spec = self._daemon, kept.spec
        judge = daemon.gate_judge
        if not judge.policy.in_force(spec.id, spec.labels):
            return
        actor = daemon.actors.authority.actor(self._actor)
        assert actor is not None, "it has rights"
        effect = ProposedEffect(
            spec.id,
            spec.name,
            spec.labels,
            spec.level,
            spec.epoch,
            EffectKind.CHECKPOINT,
            actor.id,
            (Contributor(actor.id, actor.name, actor.kind, Part.TRIGGER),),
            text="restore",
            cwd=spec.cwd,
            workspace=spec.workspace or spec.cwd,
        )
        verdict = strictest([await judge.judge(effect)])
        if verdict.outcome is not Outcome.ALLOW:
            raise GateRefused(f"the policy refuses it: {verdict.reason or 'it gives no reason'}")

    async def _restore(
        self, stored: Stored, kept: StateBlob, before: int, lost: int
    ) -> tuple[LiveSession, RestoreReport]:
        daemon, manifest = self._daemon, self._manifest
        with contextlib.ExitStack() as undo:
            leasing: SessionLease | None = None
            if kept.lease is not None:
                leasing = await daemon.leases.acquire(self._session)
                undo.callback(leasing.release)
            epoch = leasing.tenure.epoch if leasing is not None else before + 1
            bell = self._prepare(undo, kept, epoch)
            restored = await self._restore_tree(kept)
            undo.callback(_remove_group, restored)
            if leasing is not None:
                leasing.check(epoch)  # the restore took its time
            report = RestoreReport(
                checkpoint=manifest.info.id,
                epoch_before=before,
                epoch=epoch,
                phases=tuple(self._phases),
                bytes=manifest.info.bytes,
                reset=restored.reset,
                inputs_lost=lost,
            )
            live = self._revive(kept, restored, bell, epoch, leasing, report)
            live.deposit()
            undo.pop_all()
        # From here on it is in custody, and alive.
        daemon.store.rise(self._session)
        daemon.registry.risen(live)
        daemon.watch(live)
        live.start()
        await live.journal.sync()
        daemon.store.save_spec(Stored(live.info(), stored.uid, boot_id()))
        await asyncio.to_thread(cgroup.thaw, live.spec.place.cgroup)
        self._passed("run")
        daemon.session_began(live)
        log.info("%s restored from %s, epoch %d", live.spec.name, manifest.info.id, epoch)
        return live, report.replace(phases=tuple(self._phases))

    async def _restore_tree(self, kept: StateBlob) -> RestoredTree:
        daemon, manifest = self._daemon, self._manifest
        directory = f"{daemon.continuity.files.directory(manifest.info.id)}/{IMAGES}"
        wanted = RestoreSpec(
            session=kept.spec.process_tag,
            uid=kept.spec.uid,
            size=manifest.size,
            before=kept.spec.place,
            tree=manifest.tree,
            unread=manifest.unread,
        )
        images = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            restored = await daemon.launcher.restore(wanted, images)
        finally:
            os.close(images)
        self._phases += restored.phases
        self._since = boottime.now()
        return restored

    def _prepare(self, undo: contextlib.ExitStack, kept: StateBlob, epoch: int) -> int:
        """What the tree finds at the paths that it knows: before it is restored. Gives the FIFO of
        the shell's reports."""
        daemon, spec = self._daemon, kept.spec
        tag = spec.process_tag
        fencing_token.write(daemon.home, tag, epoch)
        undo.callback(fencing_token.remove, daemon.home, tag)
        if not spec.shell:
            return -1
        path = levels.bell_path(daemon.home, tag)
        group = pwd.getpwuid(spec.uid).pw_gid
        bell = shell.make_fifo(path, spec.uid, group)
        undo.callback(levels.remove_bell, daemon.home, tag)
        undo.callback(os.close, bell)
        shell.make_state_file(shell.state_path(path), spec.uid, group)
        with open(shell.state_path(path), "r+b") as file:
            file.write(daemon.continuity.files.read(self._manifest.info.id, SHELL_STATE))
        return bell

    def _revive(
        self,
        kept: StateBlob,
        restored: RestoredTree,
        bell: int,
        epoch: int,
        leasing: SessionLease | None,
        report: RestoreReport,
    ) -> LiveSession:
        """As a daemon carries on what another served: from a deposit, made of the checkpoint."""
        daemon, manifest, launched = self._daemon, self._manifest, restored.launched
        spec = kept.spec.replace(place=launched.place, epoch=epoch)
        with contextlib.ExitStack() as ours:  # until the live session has them
            keeper = KeeperLink(socket.socket(fileno=launched.keeper), launched.keeper_pid)
            ours.callback(keeper.close)
            for fd in {launched.master, launched.pidfd, launched.gate, launched.gate_page} - {-1}:
                ours.callback(os.close, fd)
            ring = layout.load(f"{daemon.continuity.files.directory(manifest.info.id)}/{MEMORY}")
            ours.callback(os.close, ring)
            output = make_conduit()
            ours.callback(os.close, output)
            untyped = make_conduit(daemon.continuity.files.read(manifest.info.id, UNTYPED))
            ours.callback(os.close, untyped)
            fds = SessionFds(
                *(launched.master, launched.pidfd, ring, output, untyped, bell),
                *(launched.gate, launched.gate_page),
            )
            blob = kept.replace(
                spec=spec, halt=None, lease=None, asleep_in="", leaves=_moved(kept, spec.place)
            ).blob()
            life = RestoredLife(self._actor, manifest.info.journal_seq, _entry(report, manifest))
            deposit = Collected(spec.process_tag, fds.named(), blob, None)
            live = recover(daemon, deposit, keeper, life, leasing)
            ours.pop_all()
        return live


def _moved(kept: StateBlob, place: Place) -> SavedLeaves | None:
    """The groups of commands are below the session's own, wherever that is."""
    if kept.leaves is None:
        return None
    before = kept.spec.place.cgroup
    groups = {
        number: group.replace(path=place.cgroup + group.path.removeprefix(before))
        for number, group in kept.leaves.groups.items()
    }
    return kept.leaves.replace(groups=groups)


def _entry(report: RestoreReport, manifest: Manifest) -> entries.RestoredEntry:
    return entries.RestoredEntry(
        checkpoint=report.checkpoint,
        kind=report.kind,
        before=report.epoch_before,
        journal_seq=manifest.info.journal_seq,
        inputs_lost=report.inputs_lost,
        phases=report.phases,
        size=report.bytes,
        reset=report.reset[:RESETS_RECORDED],
        resets=len(report.reset),
    )


def _remove_group(restored: RestoredTree) -> None:
    """It failed after the restore: the tree must not outlive it."""
    cgroup.kill(restored.launched.place.cgroup)
    cgroup.remove(restored.launched.place.cgroup)
