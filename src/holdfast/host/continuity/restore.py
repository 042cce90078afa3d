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
import platform
import pwd
import shutil
import socket
from functools import partial
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.session_memory import layout
from holdfast.adapters.session_memory.output_ring import make_conduit
from holdfast.adapters.shell import integration as shell
from holdfast.adapters.signing import check
from holdfast.core.gate.verdicts import refusal_text, strictest
from holdfast.core.turn.machine import SavedTurn
from holdfast.host import levels
from holdfast.host.clock import now
from holdfast.host.continuity import workspace_files
from holdfast.host.continuity.own_state import STATE, launch_again
from holdfast.host.continuity.progress import WorkProgress
from holdfast.host.continuity.restore_facts import (
    FACTS,
    IMAGES,
    MEMORY,
    PARCEL,
    SHELL_STATE,
    UNTYPED,
    RestoreFacts,
)
from holdfast.host.continuity.workspace_files import FilesToPutBack
from holdfast.host.keeper_link import Collected, KeeperLink
from holdfast.host.session import fencing_token
from holdfast.host.session.command_leaves import SavedLeaves
from holdfast.host.session.parcel import SessionFds, SessionSpec, StateBlob
from holdfast.host.session.recovery import RestoredLife, recover
from holdfast.host.session_store import CameFrom, Stored
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.keeper.boottime import boot_id
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import Checkpoint, CheckpointKind, Waking
from holdfast.model.errors import (
    CheckpointInvalid,
    GateRefused,
    NotPermitted,
    RestoreFailed,
    SessionEnded,
    StorageFailed,
    session_over,
    why_not,
)
from holdfast.model.gate import Contributor, EffectKind, Outcome, Part, ProposedEffect
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.limits import RESETS_RECORDED
from holdfast.model.restore import (
    ContinuityKind,
    DumpedTree,
    MountKind,
    RestorePhase,
    RestoreReport,
)
from holdfast.model.spec import Place
from holdfast.model.state import Level, SessionState
from holdfast.ports.launch import Launch, RestoredTree, RestoreSpec

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.lease import SessionLease
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)
ATTESTED = "the host that had it is dead"
_AT_PROMPT_S, _AT_PROMPT_LOOK_S = 0.5, 0.002
_RESTORING = "restoring"  # directories of the state in which checkpoints are laid out


async def restore(
    daemon: Daemon,
    checkpoint: Checkpoint,
    actor: str,
    progress: WorkProgress,
    *,
    host_is_dead: bool = False,
    files: RestoreFiles = RestoreFiles.ASK,
) -> tuple[LiveSession, RestoreReport]:
    """On behalf of this actor, which may; and which attests, with `host_is_dead`, that no other
    host has the session, whatever the record of its lease says. Raises CheckpointInvalid,
    RestoreFailed, and what says that the session cannot come back."""
    return await _Restore(daemon, checkpoint, actor, progress, host_is_dead, files).run()


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


async def judge(
    daemon: Daemon,
    actor: str,
    session: SessionId,
    name: str,
    labels: tuple[str, ...],
    level: Level,
    epoch: int,
    cwd: str,
    *,
    text: str,
    workspace: str = "",
) -> None:
    """A policy may refuse it. Nothing can wait for an approval in a session that does not live."""
    policy = daemon.gate_judge
    if actor == HOST_ACTOR or not policy.policy.in_force(session, labels):
        return
    asker = daemon.actors.authority.actor(ActorId(actor))
    if asker is None:  # it was revoked since the session was put to sleep for it
        raise NotPermitted(
            f"a policy is in force in {name}, and the actor that it is to be restored for has no "
            "rights here now",
            hint=f"`hold restore {name}` restores it for you",
        )
    effect = ProposedEffect(
        session,
        name,
        labels,
        level,
        epoch,
        EffectKind.CHECKPOINT,
        asker.id,
        (Contributor(asker.id, asker.name, asker.kind, Part.TRIGGER),),
        text=text,
        cwd=cwd,
        workspace=workspace or cwd,
    )
    verdict = strictest([await policy.judge(effect)])
    if verdict.outcome is not Outcome.ALLOW:
        raise GateRefused(refusal_text(verdict))


class _Restore:
    """One of them."""

    def __init__(
        self,
        daemon: Daemon,
        checkpoint: Checkpoint,
        actor: str,
        progress: WorkProgress,
        host_is_dead: bool,
        files: RestoreFiles,
    ) -> None:
        self._daemon, self._checkpoint, self._actor = daemon, checkpoint, actor
        self._progress, self._host_is_dead, self._files = progress, host_is_dead, files
        self._session = checkpoint.session
        # Its own: that of the restore before may still be on its way out.
        token = os.urandom(4).hex()
        self._directory = f"{daemon.home.state}/{_RESTORING}/{checkpoint.id}-{token}"
        self._phases: list[RestorePhase] = []
        self._since = boottime.now()

    async def run(self) -> tuple[LiveSession, RestoreReport]:
        daemon, session = self._daemon, self._session
        stored = check_may_come_back(daemon.store.tombstone(session), session)
        check_machine(self._checkpoint)
        self._progress.phase("check")
        before, lost = await asyncio.to_thread(self._check_journal)
        before = max(before, stored.attested_epoch)
        try:
            os.makedirs(os.path.dirname(self._directory), mode=0o700, exist_ok=True)
            # All of it, before anything is touched: what is not as it was saved is refused here.
            self._progress.phase("load", self._checkpoint.raw_bytes)
            told = self._progress.bytes
            await daemon.images.load(self._checkpoint.id, self._directory, told)
            kept = StateBlob.of_blob(self._file(PARCEL))
            facts = None if self._is_own else RestoreFacts.of_bytes(self._file(FACTS))
            if {session if facts is None else facts.session, kept.spec.id} != {session}:
                raise CheckpointInvalid(f"{self._checkpoint.id} is of another session")
            if kept.spec.uid != stored.uid:
                raise CheckpointInvalid(f"{self._checkpoint.id} is of a session of another user")
            if stored.came_from is not None:
                kept = kept.replace(turn=self._turn_here(kept.turn, stored.came_from))
            await self._judge(kept)
            stopped_at = stored.info.ended_at or self._checkpoint.created_at
            files = await workspace_files.compare(
                self._directory, daemon.home, kept.spec.uid, self._files, stopped_at
            )
            self._passed("check")
            name = daemon.registry.reserve(stored.uid, stored.info.name, "")
            try:
                return await self._restore(stored, facts, kept, before, lost, files)
            finally:
                daemon.registry.settle(stored.uid, name)
        except OSError as error:
            raise RestoreFailed(f"it cannot be restored: {why_not(error)}") from error
        finally:
            # Nobody waits for that.
            remove = partial(shutil.rmtree, self._directory, ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)

    def _turn_here(self, turn: SavedTurn | None, origin: CameFrom) -> SavedTurn | None:
        """With the actors that this host knows. Whoever had it brought is another one here; all
        others are who they are, by their keys."""
        if turn is None:
            return None
        authority = self._daemon.actors.authority

        def here(actor: str) -> ActorId:
            return ActorId(origin.actor_here if actor == origin.actor_there else actor)

        holder = here(turn.holder) if turn.holder else None
        if holder is None or authority.actor(holder) is None:
            holder = None  # nobody could give it back here
        queue = tuple(
            each.replace(actor=here(each.actor))
            for each in turn.queue
            if holder and authority.actor(here(each.actor)) is not None
        )
        return turn.replace(
            holder=holder,
            queue=queue,
            holders=tuple(map(here, turn.holders)),
            command_of=None if turn.command_of is None else here(turn.command_of),
        )

    def _file(self, name: str) -> bytes:
        return LaidOut(self._directory).read(name)

    def _passed(self, phase: str) -> None:
        at = boottime.now()
        self._phases.append(RestorePhase(phase, round((at - self._since) * 1000, 1)))
        self._since = at

    def _check_journal(self) -> tuple[int, int]:
        """The session's own record leads through the moment that the checkpoint is of. Gives the
        last epoch, and how many inputs were taken since."""
        found, inputs, epoch = self._checkpoint, 0, self._checkpoint.epoch
        reader = JournalReader(self._daemon.store.directory(self._session))
        verdict = reader.verify(self._session, check)
        seq, last = found.journal_seq, verdict.last_seq
        if seq > last or reader.hash_at(self._session, seq) != found.journal_head:
            raise CheckpointInvalid(
                f"{found.id} is not of the history that the journal of {found.session_name} has"
            )
        for entry in reader.entries(seq + 1, last) if seq < last else ():
            epoch = max(epoch, entry.epoch)
            if isinstance(entry.body, entries.InputEntry | entries.BlindInput):
                inputs += 1
            elif isinstance(entry.body, entries.Discontinued):
                raise SessionEnded(
                    f"the record of {found.session_name} was closed: {entry.body.reason}",
                    hint="`hold revive` starts a successor",
                )
        return epoch, inputs

    async def _judge(self, kept: StateBlob) -> None:
        spec = kept.spec
        await judge(
            self._daemon,
            self._actor,
            spec.id,
            spec.name,
            spec.labels,
            spec.level,
            spec.epoch,
            spec.cwd,
            workspace=spec.workspace,
            text="restore",
        )

    async def _restore(
        self,
        stored: Stored,
        facts: RestoreFacts | None,
        kept: StateBlob,
        before: int,
        lost: int,
        files: FilesToPutBack,
    ) -> tuple[LiveSession, RestoreReport]:
        daemon, checkpoint = self._daemon, self._checkpoint
        self._progress.phase("start")
        with contextlib.ExitStack() as undo:
            leasing: SessionLease | None = None
            if kept.lease is not None:
                leasing = await daemon.leases.acquire_again(
                    self._session,
                    kept.spec.process_tag,
                    before,
                    self._actor,
                    host_is_dead=self._host_is_dead,
                    handed_by=stored.came_from.host if stored.came_from else "",
                )
                undo.callback(leasing.release)
            epoch = leasing.runner.epoch if leasing is not None else before + 1
            bell = prepare(daemon.home, undo, LaidOut(self._directory), kept.spec, epoch)
            put_back = await workspace_files.put_back(
                files, self._directory, kept.spec.uid, checkpoint.id, undo
            )
            if facts is None:
                restored = await self._launch_again(kept, epoch, undo)
            else:
                restored = await self._restore_tree(facts, kept)
            undo.callback(remove_group, restored)
            if leasing is not None:
                leasing.check(epoch)  # the restore took its time
            report = RestoreReport(
                checkpoint=checkpoint.id,
                epoch_before=before,
                epoch=epoch,
                phases=tuple(self._phases),
                bytes=checkpoint.raw_bytes,
                reset=restored.reset,
                inputs_lost=lost,
                kind=ContinuityKind.APPLICATION if self._is_own else ContinuityKind.MEMORY,
                files=put_back,
            )
            live = self._revive(kept, restored, bell, stored, epoch, leasing, report)
            live.deposit()
            undo.pop_all()
        # From here on it is in custody, and alive, whether or not somebody still waits for it.
        daemon.store.rise(self._session)
        daemon.registry.risen(live)
        daemon.watch(live)
        live.start()
        await asyncio.shield(live.spawn(self._let_run(live, stored)))
        self._passed("run")
        log.info("%s restored from %s, epoch %d", live.spec.name, checkpoint.id, epoch)
        return live, report.replace(phases=tuple(self._phases))

    async def _let_run(self, live: LiveSession, stored: Stored) -> None:
        daemon = self._daemon
        recorded = live.spawn(live.journal.sync())
        await asyncio.sleep(0)  # it waits for the disk in a thread, and we for the same disk here
        try:
            daemon.store.save_spec(Stored(live.info(), stored.uid, boot_id()))
        except StorageFailed as error:  # needed only if it is lost
            log.error("what is known of %s: %s", self._session, error)
        await recorded
        if not self._is_own:
            await live.halts.begin()
            await _back_at_prompt(live)
        daemon.operators.follow(live)
        daemon.session_began(live)

    async def _launch_again(
        self, kept: StateBlob, epoch: int, undo: contextlib.ExitStack
    ) -> RestoredTree:
        """It runs at once: what it does is in no record yet, and none of it is lost."""
        launched = await launch_again(self._daemon, kept, epoch, self._file(STATE), undo)
        self._passed("launch")
        return RestoredTree(launched, tuple(self._phases), ())

    @property
    def _is_own(self) -> bool:
        """What its program gave is restored, and no processes."""
        return self._checkpoint.kind is CheckpointKind.APPLICATION

    async def _restore_tree(self, facts: RestoreFacts, kept: StateBlob) -> RestoredTree:
        files = LaidOut(self._directory)
        facts = facts.replace(tree=_in_this_home(facts.tree, self._daemon.home.run))
        restored = await restore_tree(self._daemon.launcher, files, facts, kept.spec)
        self._phases += restored.phases
        self._since = boottime.now()
        return restored

    def _revive(
        self,
        kept: StateBlob,
        restored: RestoredTree,
        bell: int,
        stored: Stored,
        epoch: int,
        leasing: SessionLease | None,
        report: RestoreReport,
    ) -> LiveSession:
        attested = ATTESTED if stored.attested_epoch else ""
        life = life_of(self._actor, report, self._checkpoint.journal_seq, attested)
        files = LaidOut(self._directory)
        if self._is_own:
            kept = kept.replace(leaves=None)
        return revive(
            self._daemon, files, kept, restored, bell, stored.info.name, epoch, leasing, life
        )


# -- what a move does too ---------------------------------------------------------------------


class LaidOut:
    """The files of a checkpoint, in a directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def read(self, name: str) -> bytes:
        with open(f"{self.directory}/{name}", "rb") as file:
            return file.read()


def prepare(
    home: Home, undo: contextlib.ExitStack, files: LaidOut, spec: SessionSpec, epoch: int
) -> int:
    """What the tree finds at the paths that it knows: before it is restored. Gives the FIFO of
    the shell's reports."""
    tag = spec.process_tag
    fencing_token.write(home, tag, epoch)
    undo.callback(fencing_token.remove, home, tag)
    if not spec.shell:
        return -1
    path = levels.bell_path(home, tag)
    group = pwd.getpwuid(spec.uid).pw_gid
    bell = shell.make_fifo(path, spec.uid, group)
    undo.callback(levels.remove_bell, home, tag)
    undo.callback(os.close, bell)
    shell.make_state_file(shell.state_path(path), spec.uid, group)
    with open(shell.state_path(path), "r+b") as file:
        file.write(files.read(SHELL_STATE))
    return bell


async def restore_tree(
    launcher: Launch, files: LaidOut, facts: RestoreFacts, spec: SessionSpec
) -> RestoredTree:
    """It stands still."""
    wanted = RestoreSpec(
        session=spec.process_tag,
        uid=spec.uid,
        size=facts.size,
        before=spec.place,
        tree=facts.tree,
        unread=facts.unread.hex(),
    )
    directory = f"{files.directory}/{IMAGES}"
    images = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await launcher.restore(wanted, images)
    finally:
        os.close(images)


def revive(
    daemon: Daemon,
    files: LaidOut,
    kept: StateBlob,
    restored: RestoredTree,
    bell: int,
    name: str,
    epoch: int,
    leasing: SessionLease | None,
    life: RestoredLife,
) -> LiveSession:
    """As a daemon carries on what another served: from a deposit, made of the checkpoint."""
    launched = restored.launched
    # It keeps the name that it had last: that one was reserved.
    spec = kept.spec.replace(name=name, place=launched.place, epoch=epoch)
    with contextlib.ExitStack() as ours:  # until the live session has them
        keeper = KeeperLink(socket.socket(fileno=launched.keeper), launched.keeper_pid)
        ours.callback(keeper.close)
        for fd in {launched.master, launched.pidfd, launched.gate, launched.gate_page} - {-1}:
            ours.callback(os.close, fd)
        ring = layout.load(f"{files.directory}/{MEMORY}")
        ours.callback(os.close, ring)
        output = make_conduit()
        ours.callback(os.close, output)
        untyped = make_conduit(files.read(UNTYPED))
        ours.callback(os.close, untyped)
        fds = SessionFds(
            *(launched.master, launched.pidfd, ring, output, untyped, bell),
            *(launched.gate, launched.gate_page),
        )
        blob = kept.replace(
            spec=spec,
            halt=None,
            lease=None,
            asleep_in="",
            waking=Waking(),
            leaves=_moved(kept, spec.place),
            used_at=now(),  # somebody wants it: that it was idle before it slept does not count
        ).blob()
        deposit = Collected(spec.process_tag, fds.named(), blob, None)
        live = recover(daemon, deposit, keeper, life, leasing)
        ours.pop_all()
    return live


def life_of(
    actor: str, report: RestoreReport, journal_seq: int, attested: str = ""
) -> RestoredLife:
    """What the journal says of it: first of all in the new epoch."""
    return RestoredLife(actor, journal_seq, _entry(report, journal_seq, attested))


def _in_this_home(tree: DumpedTree, run: str) -> DumpedTree:
    """What the session saw of its host's sockets it sees of this one's, at the path it knows."""
    marks = tuple(
        mark.replace(source=run) if mark.kind is MountKind.KEPT else mark for mark in tree.mounts
    )
    return tree.replace(mounts=marks)


async def _back_at_prompt(live: LiveSession) -> None:
    """A shell that was at its prompt is there again as soon as it has got a processor. Whoever woke
    the session is about to type, and would be told that it is busy."""
    last = live.commands.last
    if not live.spec.shell or (last is not None and last.status is None):
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + _AT_PROMPT_S
    while live.state() is SessionState.WORKING and loop.time() < until:
        await asyncio.sleep(_AT_PROMPT_LOOK_S)


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


def check_machine(checkpoint: Checkpoint) -> None:
    """Raises CheckpointInvalid when this one cannot take it."""
    if checkpoint.kind is CheckpointKind.APPLICATION:
        return  # its program says what it needs, if anything
    needs = checkpoint.machine
    if needs.isa != platform.machine():
        raise CheckpointInvalid(
            f"{checkpoint.id} is of a machine of kind {needs.isa}; this is {platform.machine()}"
        )
    if needs.criu and not levels.criu_version():
        raise CheckpointInvalid(
            f"{checkpoint.id} needs CRIU, and there is none that works on this machine",
            hint="as root: python -m holdfast.adapters.criu.install",
        )
    if needs.kernel and _version(platform.release()) < _version(needs.kernel):
        raise CheckpointInvalid(
            f"{checkpoint.id} is of kernel {needs.kernel}; this one, {platform.release()}, is older"
        )


def _version(release: str) -> tuple[int, ...]:
    """The first two numbers of a kernel's release."""
    numbers = release.split("-")[0].split(".")[:2]
    return tuple(int(each) for each in numbers if each.isdecimal())


def clear_unfinished(state: str) -> None:
    """A daemon died over them."""
    shutil.rmtree(f"{state}/{_RESTORING}", ignore_errors=True)


def _entry(report: RestoreReport, journal_seq: int, attested: str) -> entries.RestoredEntry:
    return entries.RestoredEntry(
        checkpoint=report.checkpoint,
        kind=report.kind,
        before=report.epoch_before,
        journal_seq=journal_seq,
        inputs_lost=report.inputs_lost,
        phases=report.phases,
        size=report.bytes,
        reset=report.reset[:RESETS_RECORDED],
        resets=len(report.reset),
        files_put_back=report.files.put_back if report.files else 0,
        files_kept_in=report.files.kept_in if report.files else (),
        attested=attested,
    )


def remove_group(restored: RestoredTree) -> None:
    """It failed after the restore: the tree must not outlive it. At level plain its keeper sees to
    that, when its connection is closed before anything was deposited."""
    if not restored.launched.place.cgroup:
        return
    cgroup.kill(restored.launched.place.cgroup)
    cgroup.remove(restored.launched.place.cgroup)
