"""The end of a move that the session comes to.

What comes is put aside. The tree is made of the image and stands still, in nobody's custody: if
this daemon dies it goes, and is made again. It becomes a session of this host when the lease is
ours, and not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from typing import TYPE_CHECKING

from holdfast.core import events as session_events
from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import TargetMove
from holdfast.core.continuity.move_table import TargetState
from holdfast.host.clock import now
from holdfast.host.continuity import restore, workspace_files
from holdfast.host.continuity.arrived_journal import check_arrived
from holdfast.host.continuity.moving import messages as m
from holdfast.host.continuity.moving.handover_lease import HandoverLease, RecordAtSource
from holdfast.host.continuity.moving.move_book import KeptTarget, MoveBook
from holdfast.host.continuity.moving.runner import MoveRunner, Told
from holdfast.host.continuity.moving.session_files import ArrivingFiles
from holdfast.host.continuity.restore_facts import FACTS, PARCEL, RestoreFacts
from holdfast.host.session import fencing_token
from holdfast.host.session.parcel import StateBlob
from holdfast.keeper import boottime
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import Checkpoint, CheckpointId
from holdfast.model.errors import (
    CheckpointInvalid,
    HoldfastError,
    RestoreFailed,
    why_not,
)
from holdfast.model.home import Home
from holdfast.model.ids import ActorId
from holdfast.model.restore import DumpedTree, MountKind, RestoreReport
from holdfast.ports.launch import RestoredTree
from holdfast.wire.messages.base import Message

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession
    from holdfast.ports.host_link import HostLink

log = logging.getLogger(__name__)


class TargetRunner(MoveRunner):
    """Of one session."""

    machine: TargetMove

    def __init__(self, daemon: Daemon, book: MoveBook, kept: KeptTarget, told: Told) -> None:
        super().__init__(kept.propose.name, told)
        self._daemon, self._book = daemon, book
        self._kept, self.session = kept, kept.session
        self._on_disk: KeptTarget | None = None
        self.machine = TargetMove.of(kept.machine)
        self._at_source = RecordAtSource(self.send)
        owner = daemon.store.host_key.public.hex()
        self._lease = HandoverLease(self.session, owner, self._at_source, self._store, kept.lease)
        self._files = ArrivingFiles(book.files(kept.propose.move))
        self._directory = f"{daemon.home.state}/restoring/{kept.propose.move}"
        self._undo = contextlib.ExitStack()
        self._restored: RestoredTree | None = None
        self._checkpoint: Checkpoint | None = None
        self._bell = -1

    @property
    def move(self) -> str:
        return self._kept.propose.move

    @property
    def source(self) -> str:
        return self._kept.propose.source

    @property
    def source_key(self) -> bytes:
        return self._kept.source

    @property
    def live(self) -> LiveSession | None:
        return self._daemon.registry.live.get(self.session)

    def _store(self) -> None:
        kept = self._kept.replace(machine=self.machine.kept(), lease=self._lease.kept())
        if kept != self._on_disk:  # most progress changes only a deadline
            self._book.keep(kept)
            self._kept = self._on_disk = kept

    def _back_to_kept(self) -> None:
        self.machine = TargetMove.of(self._kept.machine)

    def _has_tree(self) -> bool:
        return self._restored is not None or self.live is not None

    def carry_on(self) -> None:
        """A new daemon does."""
        if self.live is None and not self.machine.is_over:
            with contextlib.suppress(HoldfastError):
                self._reserve_name()
        self.give(ev.Recovered(boottime.now(), self._has_tree()))

    def agree(self) -> None:
        """To what was proposed. Raises what stands in the way."""
        self._reserve_name()
        self._files.clear()
        self.begin()

    def _reserve_name(self) -> None:
        proposed, registry = self._kept.propose, self._daemon.registry
        name = registry.reserve(proposed.uid, proposed.name, "")
        self._undo.callback(registry.settle, proposed.uid, name)
        self._daemon.continuity.restoring.add(self.session)
        self._undo.callback(self._daemon.continuity.restoring.discard, self.session)

    # -- effects ----------------------------------------------------------------------------------

    def _carry_out(self, effect: ev.MoveEffect) -> None:
        match effect:
            case ev.RestoreTree():
                self._begin(self._restore(), self._not_restored)
            case ev.LookAtRecord():
                self._begin(self._look(), lambda _: ev.RecordUnknown(boottime.now()))
            case ev.ClaimLease(heir_of=epoch):
                self._begin(self._claim(epoch), self._again)
            case ev.AdoptEpoch(epoch=epoch):
                self._adopt(epoch)
            case ev.DeliverHeld(held=held):
                self._deliver(held)
            case ev.LiveHere():
                self._live_here()
            case ev.Discard(reason=reason):
                self._undo.close()  # another move of it may come at once
                self._begin(self._discard(reason))
            case ev.Tell():
                self._tell(effect)
            case _:
                raise AssertionError(f"no way to carry out {effect}")

    def _not_restored(self, why: str) -> ev.MoveEvent:
        if self.state in (TargetState.CLAIMING, TargetState.DELIVERING):
            self._again(why)  # it was restored once, and nobody else may have it
        return ev.MoveFailed(boottime.now(), why)

    async def _restore(self) -> ev.MoveEvent:
        """Of the image, so that it stands still. What its processes know by a path is put there
        first."""
        daemon, directory = self._daemon, self._directory
        await self._let_go_of_tree()
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
        id = CheckpointId(self._kept.checkpoint)
        checkpoint = await daemon.images.load(id, directory)
        restore.check_machine(checkpoint)
        files = restore.LaidOut(directory)
        kept, facts = (
            StateBlob.of_blob(files.read(PARCEL)),
            RestoreFacts.of_bytes(files.read(FACTS)),
        )
        if {facts.session, kept.spec.id, checkpoint.session} != {self.session}:
            raise CheckpointInvalid(f"{id} is of another session")
        self._check_user(kept)
        facts = facts.replace(tree=_at_home(facts.tree, self._kept.propose.home, daemon.home))
        with contextlib.ExitStack() as undo:
            stopped_at = checkpoint.created_at
            found = await workspace_files.compare(
                directory, daemon.home, kept.spec.uid, RestoreFiles.RESTORE, stopped_at
            )
            await workspace_files.put_back(found, directory, kept.spec.uid, id, undo)
            self._bell = restore.prepare(daemon.home, undo, files, kept.spec, kept.spec.epoch)
            restored = await restore.restore_tree(daemon.launcher, files, facts, kept.spec)
            undo.callback(restore.remove_group, restored)
            self._tree_undo = undo.pop_all()
        self._restored, self._checkpoint = restored, checkpoint
        if self.machine.is_over:  # discarded meanwhile: nobody else lets go of it
            await self._let_go_of_tree()
            raise RestoreFailed("the move was called off while the tree was restored")
        return ev.TreeRestored(boottime.now())

    _tree_undo = contextlib.ExitStack()

    async def _let_go_of_tree(self) -> None:
        """Without a deposit its keeper ends it."""
        restored, self._restored = self._restored, None
        undo, self._tree_undo = self._tree_undo, contextlib.ExitStack()
        await asyncio.to_thread(undo.close)
        if restored is not None:
            launched = restored.launched
            mine = {launched.master, launched.pidfd, launched.gate, launched.gate_page}
            for fd in {*mine, launched.keeper} - {-1}:
                os.close(fd)

    async def _look(self) -> ev.MoveEvent:
        record = await self._lease.look()
        if record is None:
            return ev.RecordUnknown(boottime.now())
        to = record.successor if record.released else ""
        return ev.RecordIs(boottime.now(), record.epoch, record.incarnation, to)

    async def _claim(self, heir_of: int) -> ev.MoveEvent:
        epoch = await self._lease.inherit(heir_of, self.machine.incarnation)
        at = boottime.now()
        return ev.Claimed(at, epoch) if epoch else ev.ClaimOusted(at)

    def _adopt(self, epoch: int) -> None:
        """From here on it is in custody, and a session of this host."""
        daemon, restored = self._daemon, self._restored
        if self.live is not None:
            return  # a daemon before us had come so far
        assert restored is not None and self._checkpoint is not None
        kept = self._parcel()
        self._files.become(daemon.store.directory(self.session))
        fencing_token.write(daemon.home, kept.spec.process_tag, epoch)
        checkpoint = self._checkpoint
        report = RestoreReport(
            checkpoint=checkpoint.id,
            epoch_before=self.machine.heir_of,
            epoch=epoch,
            phases=restored.phases,
            bytes=checkpoint.raw_bytes,
            reset=restored.reset,
        )
        life = restore.life_of(self._kept.admitted_by, report, checkpoint.journal_seq)
        files = restore.LaidOut(self._directory)
        self._restored = None  # from here on its descriptors are closed if this fails
        live = restore.revive(
            daemon, files, kept, restored, self._bell, kept.spec.name, epoch, None, life
        )
        live.deposit()
        self._tree_undo.pop_all()
        daemon.store.rise(self.session)
        daemon.registry.risen(live)
        daemon.watch(live)
        live.start()

    def _parcel(self) -> StateBlob:
        """As it was when the source had stopped, with the actors that this host knows."""
        kept = StateBlob.of_blob(self._kept.parcel)
        kept = kept.replace(came_as={self._kept.admitted_by: self._kept.mover})
        if kept.turn is None:
            return kept
        turn, knows = kept.turn, self._daemon.actors.authority.actor
        holder = None if turn.holder is None else self._actor(turn.holder)
        if holder is not None and knows(holder) is None:
            holder = None  # nobody could give it back here
        queue = tuple(
            each.replace(actor=self._actor(each.actor))
            for each in turn.queue
            if knows(self._actor(each.actor)) is not None
        )
        holders = tuple(map(self._actor, turn.holders))
        command_of = None if turn.command_of is None else self._actor(turn.command_of)
        turn = turn.replace(
            holder=holder, queue=queue if holder else (), holders=holders, command_of=command_of
        )
        return kept.replace(turn=turn)

    def _actor(self, at_source: str) -> ActorId:
        """The person who moved the session is another actor here. All others are who they are, by
        their keys, if they are known here at all."""
        there, here = self._kept.mover, self._kept.admitted_by
        return ActorId(here if at_source == there else at_source)

    def _deliver(self, held: tuple[ev.HeldInput, ...]) -> None:
        live = self.live
        assert live is not None
        for each in held:
            try:
                offered = session_events.InputOffered(
                    self._actor(each.actor),
                    now(),
                    each.operator,
                    each.seq,
                    each.data,
                    each.form,
                    each.intent,
                )
                live.handle(offered)
            except (HoldfastError, ValueError) as refusal:
                # Its client, which has no answer yet, hears of it when it sends it again.
                log.info("an input held for %s: %s", self.what, refusal)
        self.give(ev.Delivered(boottime.now()))

    def _live_here(self) -> None:
        live = self.live
        self._undo.close()
        if live is not None:
            self._spawn(self._living(live))

    async def _living(self, live: LiveSession) -> None:
        try:
            await self._let_run(live)
        except Exception:
            log.exception("%s came from %s, and does not run yet", self.what, self.source)
            self._recover_soon()

    async def _let_run(self, live: LiveSession) -> None:
        await live.journal.sync()
        live.save_spec()
        await live.halts.begin()
        self._daemon.operators.follow(live)
        self._daemon.session_began(live)
        log.info("%s came from %s, epoch %d", self.what, self.source, live.spec.epoch)
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
        await self._told_other(m.MoveSettled(True))

    async def _discard(self, reason: str) -> ev.MoveEvent:
        await self._let_go_of_tree()
        for each in (self._directory, self._files.directory):
            await asyncio.to_thread(shutil.rmtree, each, ignore_errors=True)
        if self.live is None:
            self._daemon.store.forget_arrival(self.session)  # its key came with the checkpoint
        self._note_brought(self.link)
        await self._delete_checkpoint()
        await self._told_other(m.MoveSettled(False, reason))
        return ev.Progress(boottime.now())

    async def _delete_checkpoint(self) -> None:
        if self._kept.checkpoint:
            with contextlib.suppress(HoldfastError):
                await self._daemon.images.delete(CheckpointId(self._kept.checkpoint))

    def _note_brought(self, link: HostLink | None) -> bool:
        """The checkpoint is ours to delete as soon as all of it is here, before the source says
        which it was. Whether it is news."""
        if link is None or link.brought is None or self._kept.checkpoint:
            return False
        self._kept = self._kept.replace(checkpoint=link.brought)
        return True

    async def listen(self, link: HostLink) -> None:
        try:
            await super().listen(link)
        finally:
            if self._note_brought(link) and self.state is TargetState.DISCARDED:
                await self._delete_checkpoint()

    # -- what the source says ---------------------------------------------------------------------

    async def _heard(self, message: Message) -> None:
        at = boottime.now()
        match message:
            case m.File():
                if self.state in (TargetState.RECEIVING, TargetState.RESTORED):
                    await asyncio.to_thread(self._files.take, message)
                    if self.machine.is_over:  # discarded meanwhile: nobody else removes it
                        await asyncio.to_thread(self._files.clear)
                    self._note_brought(self.link)
                    self.give(ev.Progress(boottime.now()))
            case m.Image(checkpoint=checkpoint):
                if self.state is TargetState.RECEIVING:
                    self._begin(self._arrived(checkpoint))
            case m.Rest(held=held, parcel=parcel):
                if self.state is TargetState.RESTORED:
                    self._begin(self._whole(held, parcel))
                else:
                    self.give(ev.RestArrived(at, held))
            case m.Note(note="progress"):
                self.give(ev.Progress(at))
            case m.Note(note=note, reason=reason):
                with contextlib.suppress(ValueError):
                    self.give(ev.Noted(at, ev.MoveNote(note), reason))
            case m.RecordFound() | m.RecordWritten():
                self._at_source.answered(message)
            case m.MoveSettled():
                self.acknowledged()

    async def _arrived(self, checkpoint: str) -> ev.MoveEvent:
        try:
            id = CheckpointId(checkpoint)
        except ValueError as error:
            raise CheckpointInvalid("the source names no checkpoint") from error
        if (await self._daemon.images.find(id)).session != self.session:
            raise CheckpointInvalid(f"{id} is of another session")
        self._kept = self._kept.replace(checkpoint=id)  # ours to delete from here on
        return ev.ImageArrived(boottime.now())

    async def _whole(self, held: tuple[ev.HeldInput, ...], parcel: bytes) -> ev.MoveEvent:
        """Everything is on the disk, and its journal leads to where the image was taken."""
        try:
            await asyncio.to_thread(self._files.sync)
            checkpoint, store = self._checkpoint, self._daemon.store
            assert checkpoint is not None
            known = store.directory(self.session) if store.is_known(self.session) else None
            await asyncio.to_thread(
                check_arrived, self._files.directory, known, self.session, checkpoint
            )
        except OSError as error:
            raise RestoreFailed(f"it cannot be kept: {why_not(error)}") from error
        kept = StateBlob.of_blob(parcel)
        if kept.spec.id != self.session:
            raise CheckpointInvalid("what came is of another session")
        self._check_user(kept)
        self._kept = self._kept.replace(parcel=parcel)
        return ev.RestArrived(boottime.now(), held)

    def _check_user(self, came: StateBlob) -> None:
        """It runs as the user that was proposed, who was judged, and no other."""
        proposed, spec = self._kept.propose, came.spec
        if (spec.user, spec.uid) != (proposed.user, proposed.uid):
            raise CheckpointInvalid(
                f"what came is of user {spec.user} ({spec.uid}), "
                f"and {proposed.user} ({proposed.uid}) was proposed"
            )

    def acknowledged(self) -> None:
        """The source knows what became of it."""
        if self.machine.is_over:
            self._book.forget(KeptTarget, self.move)
            self.close()
            if not self._daemon.moves.is_coming(self.session):  # tickets are of a session
                self._daemon.links.settled(self.session)

    def call_off(self) -> bool:
        """Its source proposes another one, so it runs on there."""
        self.give(ev.Noted(boottime.now(), ev.MoveNote.CALLED_OFF, "it is moved anew"))
        return self.machine.is_over

    async def say_where_it_is(self) -> None:
        """To a source that came back."""
        if self.machine.is_over:
            lives = self.state is TargetState.LIVE
            await self._told_other(m.MoveSettled(lives, self.machine.reason))
        elif self.state is TargetState.PRIMED:
            self.give(ev.Noted(boottime.now(), ev.MoveNote.RELEASED))


def _at_home(tree: DumpedTree, source: Home, here: Home) -> DumpedTree:
    """What the session sees of its host's files it sees of this one's, at the paths it knows."""
    marks = tuple(
        mark.replace(source=here.run)
        if mark.kind is MountKind.KEPT and mark.path == source.run
        else mark
        for mark in tree.mounts
    )
    return tree.replace(mounts=marks)
