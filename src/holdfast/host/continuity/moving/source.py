"""The end of a move that the session leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup
from holdfast.core import events as session_events
from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import SourceMove
from holdfast.core.continuity.move_table import SourceState, Superposition
from holdfast.host.clock import now
from holdfast.host.connection.operators import moved_to
from holdfast.host.continuity.checkpoint import Making
from holdfast.host.continuity.moving import messages as m
from holdfast.host.continuity.moving.handover_lease import HandoverLease, answer_for
from holdfast.host.continuity.moving.move_book import KeptSource, MoveBook
from holdfast.host.continuity.moving.runner import REDIAL_S, MoveRunner, Told
from holdfast.host.continuity.moving.session_files import Known, send_files
from holdfast.host.continuity.progress import WorkProgress
from holdfast.host.session_store import Stored
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.checkpoint import CheckpointId
from holdfast.model.errors import CheckpointFailed, HoldfastError, HostLost, from_code
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.info import MigrationInfo, SessionInfo
from holdfast.model.state import Ending, SessionState
from holdfast.wire.coordination import lease_key
from holdfast.wire.messages.base import Message

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession
    from holdfast.ports.host_link import HostLink

log = logging.getLogger(__name__)

_PROGRESS_S = 5.0  # so often the target hears that more is on its way
_ANSWER_S = 15.0  # for the target to say whether it takes the session
_KEEPER_ENDS_S = 2.0  # for a keeper to end once nothing is in its custody
_SETTLED_S = 20.0  # for the target to say that the session runs there, before we say so without it
_REDIAL_AT_MOST_S = 30.0
_CONFIRM_TRIES = 3  # by a daemon that does not know whether the one before has confirmed
_BEFORE_RELEASE = (
    *(SourceState.SNAPSHOT, SourceState.TRANSFER, SourceState.RESTORE, SourceState.REPLAY),
)


class SourceRunner(MoveRunner):
    """Of one session."""

    machine: SourceMove

    def __init__(
        self,
        daemon: Daemon,
        book: MoveBook,
        live: LiveSession | None,
        kept: KeptSource,
        name: str,
        told: Told,
    ) -> None:
        """`live`: None after a restart of the machine, when nothing of it runs."""
        super().__init__(name, told)
        self._daemon, self._book, self.live = daemon, book, live
        self._kept, self.session = kept, kept.session
        self._on_disk: KeptSource | None = None
        self.machine = SourceMove.of(kept.machine)
        self._point = daemon.leases.point
        owner = daemon.store.host_key.public.hex()
        self._lease = HandoverLease(self.session, owner, self._point, self._store, kept.lease)
        self._making: Making | None = None
        self._progress: WorkProgress
        self._known: Known = {}
        self._bytes = 0
        self._recorded = kept.machine.state is SourceState.ROLLED_BACK  # by a daemon before
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._target_settled, self._machine_over = asyncio.Event(), asyncio.Event()
        self._frozen_at = self._ran_at = 0.0

    @property
    def stood_still_s(self) -> float:
        """As far as it can be seen from here."""
        return max(0.0, self._ran_at - self._frozen_at)

    @property
    def move(self) -> str:
        return self.machine.successor

    @property
    def to(self) -> str:
        return self._kept.to

    @property
    def bytes(self) -> int:
        return self._bytes

    def _store(self) -> None:
        kept = self._kept.replace(machine=self.machine.kept(), lease=self._lease.kept())
        if kept != self._on_disk:  # most progress changes only a deadline
            self._book.keep(kept)
            self._kept = self._on_disk = kept

    def _back_to_kept(self) -> None:
        self.machine = SourceMove.of(self._kept.machine)

    def _has_tree(self) -> bool:
        return self.live is not None and not self.live.is_closed

    # -- how it begins ----------------------------------------------------------------------------

    async def propose(self, proposal: m.Propose) -> None:
        """Until the target has agreed. Raises what stands in the way; then nothing has begun."""
        kept, live = self._kept, self.live
        assert live is not None
        actor = ActorId(kept.actor)
        continuity = self._daemon.continuity
        making, self._progress = continuity.image_for_move(live, actor, kept.to)
        link = await self._daemon.links.dial(kept.ticket, self.session, actor, "move")
        try:
            self._kept = kept.replace(to=kept.to or link.peer_name)
            await link.send(m.encode(proposal))
            async with asyncio.timeout(_ANSWER_S):
                await _agreed(link)
            await self._lease.hold(live.spec.epoch)
            await making.ask()
        except TimeoutError:
            await link.close()
            raise HostLost(f"{kept.to} does not answer") from None
        except BaseException:
            await link.close()
            raise
        self._making = making
        self._frozen_at = time.time()
        self.begin()
        self._spawn(self._keep_linked(link))

    def carry_on(self) -> None:
        """A new daemon does."""
        self.give(ev.Recovered(boottime.now(), self._has_tree()))
        if not self.closed:
            self._spawn(self._keep_linked(None))

    async def _keep_linked(self, link: HostLink | None) -> None:
        """Until the target has settled its part: it may need the record that is here."""
        pause, tries = REDIAL_S, 0
        while not self.closed and not self._target_settled.is_set():
            if link is not None:
                pause = REDIAL_S
                await self.listen(link)
                link = None
                if self.state in _BEFORE_RELEASE:
                    self.give(ev.MoveFailed(boottime.now(), f"the connection to {self.to} ended"))
                continue
            try:
                link = await self._resumed()
            except HostLost:
                tries += 1
                if self._kept.settled and self.machine.is_over and tries >= _CONFIRM_TRIES:
                    break  # it needs nothing from here, and its ticket is no good any longer
                await asyncio.sleep(pause)
                pause = min(2 * pause, _REDIAL_AT_MOST_S if self.machine.is_over else 1.0)
            except HoldfastError as error:
                self._forgotten_there(error.message)
                await asyncio.sleep(pause)
        await self._machine_over.wait()
        if self._kept.checkpoint:  # it was for this move: here nothing is restored from it
            with contextlib.suppress(HoldfastError):
                await self._daemon.images.delete(CheckpointId(self._kept.checkpoint))
        self._finish()

    async def _resumed(self) -> HostLink:
        """Raises HostLost when the target cannot be reached, and else when it knows nothing of the
        move."""
        actor = ActorId(self._kept.actor)
        link = await self._daemon.links.dial(self._kept.ticket, self.session, actor, "move")
        try:
            await link.send(m.encode(m.ResumeMove(self.move)))
            async with asyncio.timeout(_ANSWER_S):
                await _agreed(link)
            if self.state is SourceState.ROLLED_BACK:
                reason = self.machine.reason
                await link.send(m.encode(m.Note(ev.MoveNote.CALLED_OFF, reason)))
            elif self.machine.released:
                await link.send(m.encode(m.Note(ev.MoveNote.RELEASED)))
        except TimeoutError:
            await link.close()
            raise HostLost(f"{self.to} does not answer") from None
        except BaseException:
            await link.close()
            raise
        return link

    def _forgotten_there(self, why: str) -> None:
        if self.machine.is_over:
            self._target_settled.set()
        else:
            note = ev.MoveNote.FAILED
            self.give(ev.Noted(boottime.now(), note, f"{self.to} has nothing of it: {why}"))

    # -- effects ----------------------------------------------------------------------------------

    def _carry_out(self, effect: ev.MoveEffect) -> None:
        match effect:
            case ev.TakeImage():
                self._begin(self._take_image())
            case ev.SendImage():
                self._begin(self._send_image(), self._failed_to_send)
            case ev.StopTree():
                self._stop_tree()
            case ev.SendRest(held=held):
                self._begin(self._send_rest(held), self._failed_to_send)
            case ev.ReleaseLease(successor=successor):
                self._begin(self._release(successor), self._again)
            case ev.ReclaimLease(heir_of=epoch):
                self._begin(self._reclaim(epoch), self._again)
            case ev.LookAtRecord():
                self._begin(self._look(), lambda _: ev.RecordUnknown(boottime.now()))
            case ev.RunOnHere(epoch=epoch, reason=reason):
                self._run_on(epoch, reason)
            case ev.DisposeOfTree():
                self._begin(self._dispose(), lambda why: self._dispose_again(why))
            case ev.CloseAsLost():
                self._close_as_lost()
            case ev.Tell():
                self._tell(effect)
            case ev.DeliverHeld() | ev.AnswerInput():
                pass  # all that waits is in the session's own queue, in order
            case _:
                raise AssertionError(f"no way to carry out {effect}")

    async def _take_image(self) -> ev.MoveEvent:
        making = self._making
        assert making is not None
        with self._progress.told():
            made = await making.take()
        self._kept = self._kept.replace(checkpoint=made.id)
        self._bytes = made.raw_bytes
        return ev.ImageTaken(boottime.now())

    async def _send_image(self) -> ev.MoveEvent:
        link, image = self.link, CheckpointId(self._kept.checkpoint)
        if link is None:
            raise HostLost("the connection ended")
        said = boottime.now()

        def progress(done: int, of: int) -> None:
            nonlocal said
            self._progress.bytes(done, of)
            at = boottime.now()
            self.give(ev.Progress(at))
            if at - said > _PROGRESS_S:
                said = at
                self._spawn(self._told_other(m.Note("progress")))

        self._progress.phase("transfer", self._bytes)
        with self._progress.told():
            await link.send_checkpoint(image, progress)
            await self._send_files()
        await self.send(m.Image(image))
        return ev.Progress(boottime.now())

    async def _send_files(self) -> None:
        live = self.live
        assert live is not None
        live.journal.flush()
        await send_files(self._daemon.store.directory(self.session), self._known, self.send)

    def _failed_to_send(self, why: str) -> ev.MoveEvent:
        return ev.MoveFailed(boottime.now(), f"it could not be sent to {self.to}: {why}")

    def _stop_tree(self) -> None:
        """It stands still since its image was taken: by its group, which outlives all of us."""
        live = self.live
        if live is not None and not live.is_closed:
            with contextlib.suppress(OSError):
                cgroup.ask_to_freeze(live.spec.place.cgroup)

    async def _send_rest(self, held: tuple[ev.HeldInput, ...]) -> ev.MoveEvent:
        live = self.live
        if live is None or live.is_closed:
            raise CheckpointFailed("it has ended meanwhile")
        live.handle(session_events.MoveSealed(HOST_ACTOR, now()))
        if why := await live.journal.seal_for_move():
            raise CheckpointFailed(why)
        await self._send_files()
        await self.send(m.Rest(held, live.parcel_bytes()))
        return ev.Progress(boottime.now())

    async def _release(self, successor: str) -> ev.MoveEvent:
        await self._lease.release(successor)
        return ev.LeaseReleased(boottime.now())

    async def _reclaim(self, heir_of: int) -> ev.MoveEvent:
        epoch = await self._lease.inherit(heir_of)
        if not epoch:
            return ev.ReclaimOusted(boottime.now())
        return ev.Reclaimed(boottime.now(), epoch)

    async def _look(self) -> ev.MoveEvent:
        record = await self._lease.look()
        if record is None:
            return ev.RecordUnknown(boottime.now())
        to = record.successor if record.released else ""
        ours = record.owner == self._daemon.store.host_key.public.hex()
        return ev.RecordIs(boottime.now(), record.epoch, record.incarnation, to, ours)

    def _run_on(self, epoch: int, reason: str) -> None:
        """As before. What waits is taken first, in its order; then the tree runs."""
        live = self.live
        if self._making is not None:
            self._making.give_up()
        if live is None or live.is_closed:
            return
        live.journal.unseal()
        if epoch > live.spec.epoch:
            live.adopt_epoch(epoch)
        if not self._recorded:
            entry = entries.MoveFailedEntry(self.to, reason)
            live.journal.happened(self._kept.actor, entry)
            self._recorded = True
        live.runs_on_after_move()

    async def _dispose(self) -> ev.MoveEvent:
        """Nothing of it is left here but its record, up to where it left."""
        daemon, live = self._daemon, self.live
        if live is not None and not live.is_closed:
            stored = Stored(_left(live.info(), self.to), live.spec.uid)
            output, screen = live.ring.copy(live.ring.tail, live.ring.head), live.view.text()
            group = live.spec.place.cgroup
            if not await asyncio.to_thread(cgroup.kill, group):
                raise CheckpointFailed("its tree does not end")
            daemon.store.bury(stored, output, screen)
            daemon.operators.moved_away(live, self.to)
            live.executor.refer(moved_to(self.to))
            keeper = live.keeper.pid
            daemon.moved_away(live, stored)
            self.live = None
            await asyncio.to_thread(_await_end, keeper)
            daemon.keepers.forget(live.spec.process_tag)
        else:
            await asyncio.to_thread(self._bury_without_tree)
        with contextlib.suppress(OSError):
            os.unlink(f"{daemon.store.directory(self.session)}/session.key")
        return ev.Disposed(boottime.now())

    def _bury_without_tree(self) -> None:
        """Its machine restarted, or another daemon had begun to dispose of it."""
        store = self._daemon.store
        for stored in store.unburied():
            if stored.info.id == self.session:
                buried = stored.replace(info=_left(stored.info, self.to))
                store.bury(buried, b"", "")
                self._daemon.registry.remember(buried)

    def _dispose_again(self, why: str) -> ev.MoveEvent | None:
        log.error("what is left of %s here: %s", self.what, why)
        self._spawn(self._later_disposed())
        return None

    async def _later_disposed(self) -> None:
        await asyncio.sleep(1.0)
        self._begin(self._dispose(), self._dispose_again)

    def _close_as_lost(self) -> None:
        self._daemon.bury_lost(self.session)

    # -- what the target says ---------------------------------------------------------------------

    async def _heard(self, message: Message) -> None:
        at = boottime.now()
        match message:
            case m.Note(note=note, reason=reason):
                if note == ev.MoveNote.RESTORED:
                    self._count_waiting()
                with contextlib.suppress(ValueError):
                    self.give(ev.Noted(at, ev.MoveNote(note), reason))
            case m.AskRecord() | m.WriteRecord():
                key = lease_key(self.session)
                self._spawn(self._answered(message, key))
            case m.MoveSettled(lives=lives, reason=reason):
                if not self.machine.is_over and not lives:
                    self.give(ev.Noted(at, ev.MoveNote.FAILED, reason))
                if self.machine.is_over or lives:
                    self._ran_at = self._ran_at or time.time()
                    self._keep_settled()
                    await self._told_other(message)
                    self._target_settled.set()
                    if self.machine.is_over:
                        self._settled()

    def _keep_settled(self) -> None:
        """Before the target hears that it may forget the move."""
        self._kept = self._kept.replace(settled=True)
        try:
            self._store()
        except (OSError, HoldfastError) as error:
            log.error("the move of %s is settled, and this cannot be kept: %s", self.what, error)

    async def _answered(self, question: m.AskRecord | m.WriteRecord, key: str) -> None:
        await self._told_other(await answer_for(question, key, self._point))

    def _count_waiting(self) -> None:
        """What waits in the session's queue, as far as it can go with the session. What comes too
        late is not answered here: its client sends it again."""
        if self.live is None:
            return
        for each in self.live.core.inputs.waiting():
            if each.action is not None:
                return
            before = len(self.machine.held)
            held = ev.HeldInput(
                each.actor, each.operator, each.seq, each.data, each.form, each.intent
            )
            self.give(ev.InputCame(boottime.now(), held))
            if len(self.machine.held) == before:
                return

    # -- its end ----------------------------------------------------------------------------------

    def _settled(self) -> None:
        self._machine_over.set()
        if not self.answer.done():
            if self.state is SourceState.MOVED and not self._target_settled.is_set():
                asyncio.get_running_loop().call_later(_SETTLED_S, self._answer_now)
            else:
                self._answer_now()

    def _answer_now(self) -> None:
        self._ran_at = self._ran_at or time.time()
        if not self.answer.done():
            self.answer.set_result(None)

    def _finish(self) -> None:
        if self.closed or not self.machine.is_over:
            return
        self._answer_now()
        self._book.forget(KeptSource, self.move)
        self.close()


def _left(info: SessionInfo, to: str) -> SessionInfo:
    return info.replace(
        state=SessionState.ENDED,
        pid=0,
        keeper_pid=0,
        operators=0,
        observers=0,
        present=(),
        ended_at=time.time(),
        ending=Ending(moved_to=to),
        superposition=str(Superposition.SETTLED),
        migration=MigrationInfo("", str(SourceState.MOVED), True, to),
    )


def _await_end(keeper: int) -> None:
    """Its tree is gone and its custody was given up. One that did not hear that is ended: the
    session may come back, to another keeper."""
    with contextlib.suppress(OSError):
        process = os.pidfd_open(keeper)
        try:
            if not select.select([process], [], [], _KEEPER_ENDS_S)[0]:
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [], _KEEPER_ENDS_S)
        finally:
            os.close(process)


async def _agreed(link: HostLink) -> None:
    """Raises what the target says instead."""
    data = await link.receive()
    if data is None:
        raise HostLost("the connection ended")
    answer = m.decode(data)
    if isinstance(answer, m.Declined):
        raise from_code(answer.code, answer.message, answer.hint)
    if not isinstance(answer, m.Agreed):
        raise CheckpointFailed("the other host does not answer as one that takes sessions")
