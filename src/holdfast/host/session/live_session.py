"""One live session: the holder of its parts. It decides nothing: core.session judges, executor.py
carries out. Construction repairs nothing and starts nothing: recovery.py and `start` do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.launch.client import end as end_processes
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core import events as ev
from holdfast.core.session import SessionMachine
from holdfast.core.session_state import carried_on
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.clock import now
from holdfast.host.session import describe, signals
from holdfast.host.session.executor import Executor
from holdfast.host.session.halt_control import HaltControl
from holdfast.host.session.handoff import Handoffs
from holdfast.host.session.input_custody import InputCustody
from holdfast.host.session.journal_repair import change_of
from holdfast.host.session.lease import SessionLease
from holdfast.host.session.output import OutputPump
from holdfast.host.session.parcel import SessionFds, StateBlob
from holdfast.host.session.record import SessionRecord
from holdfast.host.session.screen_view import View
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.host.session.state_watch import StateWatch
from holdfast.host.session.turn_notices import TurnNotices
from holdfast.journal import entries
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Scope
from holdfast.model.graph import Graph
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId
from holdfast.model.info import SessionInfo
from holdfast.model.limits import END_GRACE_S, INTAKE_OPERATORS
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.wire.epochs import Incarnation
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon
    from holdfast.host.reach.output_fanout import Fanout
    from holdfast.host.session_store import Stored

    T = TypeVar("T")

log = logging.getLogger(__name__)

# Of the command records, so many and so much of each are in the state blob, which is small.
_COMMANDS_KEPT, _TEXT_KEPT_CHARS = 10, 500
_NONE: frozenset[str] = frozenset()
# After these another moment may be the next at which time alone changes something.
_MAY_WAKE = (ev.ChannelOpened, ev.AuthorityChanged, ev.PolicyAsked, ev.ForwardAsked)


class LiveSession:
    """A running incarnation."""

    def __init__(
        self,
        daemon: Daemon,
        parcel: StateBlob,
        fds: SessionFds,
        ring: Ring,
        ledger: InputLedger,
        writer: JournalWriter,
        leasing: SessionLease | None,
    ) -> None:
        self.daemon = daemon
        self.spec = spec = parcel.spec
        self.leasing = leasing  # None: it is pinned
        self.fds = fds
        self.ring = ring
        self.audience: dict[OperatorConnection, int] = {}  # who has channels here, and how many
        self.fanout: Fanout | None = None  # for those who came through relays
        self._left_at: dict[OperatorId, float] = {}
        self._present: set[OperatorConnection] = set()  # who used it and is still connected
        self._loop = asyncio.get_running_loop()
        self.tombstone_written: asyncio.Future[Stored] = self._loop.create_future()
        self.ended_event = asyncio.Event()  # set before the tombstone is written
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        held = self._turn(parcel)
        self.core = SessionMachine(
            spec.id,
            spec.labels,
            parcel.size,
            daemon.actors.authority,
            held,
            ledger.operators(),
            state=carried_on(
                halted=parcel.halt is not None,
                confirmed=parcel.halt is not None and parcel.halt.confirmed,
                fenced=leasing is not None and not leasing.covers(spec.epoch),
            ),
            halted_actors=cgroup.frozen_leaves(spec.place.cgroup) if spec.place.cgroup else _NONE,
        )
        self.incarnation = Incarnation(spec.id, spec.epoch)
        self.incarnation.fenced = self.core.state.is_fenced
        self.executor = Executor(self)
        self.custody = InputCustody(self, ledger, parcel.layer_seq)
        self.view = View(ring, parcel.size, daemon.make_screen)
        self.journal = SessionRecord(self, writer)
        self.commands = ShellCommands(self, parcel.commands, parcel.executions)
        self.watching = StateWatch(self)
        self.turning = TurnNotices(self)
        self.handoffs = Handoffs(self)
        self.halts = HaltControl(self, parcel.halt)
        self.output = OutputPump(self, parcel.last_output_at, held.blind)

    def _turn(self, parcel: StateBlob) -> TurnMachine:
        names, session = self.daemon.actors.name, parcel.spec.name
        if parcel.turn is None:
            return TurnMachine(self.daemon.config.turn_policy, names=names, session=session)
        return TurnMachine.of(parcel.turn, names=names, session=session)

    def start(self) -> None:
        """Of a session that begins, or that was carried on: reports, output and what is in custody
        begin to flow; then what time, a halt or the lease ask for."""
        self.commands.start()
        if not self.core.state.is_fenced:
            self.output.read(True)
            self.custody.flush_to_pty()
        self.turning.start()
        self.turning.schedule()
        self._loop.call_soon(self.halts.finish_interrupted)
        if self.leasing is not None:
            self.leasing.begin(self)

    # -- events in, effects out ---------------------------------------------------------------

    def handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        """The only way in; see executor.py."""
        return self.executor.handle(event)

    def lease_allows(self) -> bool:
        """Whether this incarnation may take, type or show anything at this very moment (F2)."""
        return self.leasing is None or self.leasing.judge()

    # -- who is here --------------------------------------------------------------------------

    def note_connection(self, operator: OperatorConnection) -> None:
        """This connection has to do with the session: when its actor's last one goes, the turn
        is free."""
        self._present.add(operator)
        operator.sessions_used.add(self)

    def record_attach(self, operator: OperatorConnection, observe: bool, offset: int) -> None:
        """A channel is open: recorded with how long its operator had been away (M1). One that
        paints anew opens another channel; it had not been away at all."""
        assert operator.id is not None
        if self.core.attachments.seats_of(operator.id) > 1:
            return
        gap = max(0.0, now() - self._left_at.pop(operator.id, now()))
        body = entries.AttachedEntry(operator.id, operator.client, observe, offset, gap)
        self.journal.note(operator.actor.id, body)

    def record_detach(self, operator: OperatorConnection, channel: int) -> None:
        """A channel is closed."""
        assert operator.id is not None
        seats = self.core.attachments
        last = seats.has(operator.id, channel) and seats.seats_of(operator.id) == 1
        if last and not self.is_over:
            self.journal.note(operator.actor.id, entries.DetachedEntry(operator.id))
            self._left_at[operator.id] = now()
            if len(self._left_at) > INTAKE_OPERATORS:
                del self._left_at[next(iter(self._left_at))]
        self.handoffs.left(operator, channel)
        self.handle(ev.ChannelClosed(operator.actor.id, now(), operator.id, channel))

    def connection_closed(self, operator: OperatorConnection) -> None:
        self._present.discard(operator)
        actor = operator.actor.id
        if self.is_over or any(other.actor.id == actor for other in self._present):
            return
        self.handle(ev.ActorDisconnected(actor, now()))

    def recipients(self) -> set[OperatorConnection]:
        """Who is to be told what happens here."""
        may_see = self.daemon.registry.may_see
        acted = (operator for operator in self._present if may_see(operator.actor, self))
        return {*self.audience, *acted, *self.daemon.operators.watchers(self)}

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        """What the subject may do has changed; None: it is revoked."""
        if envelope is None or envelope.scope in self.scopes():
            self.journal.happened(by.id, change_of(subject, envelope), forced=True)
        self.handle(ev.AuthorityChanged(by.id, now()))

    def scopes(self) -> set[Scope]:
        labels = (Scope.label(name) for name in self.spec.labels)
        return {ALL, Scope.session(self.spec.id), *labels}

    # -- signals and the end ------------------------------------------------------------------

    def end_tree(self) -> None:
        """Hang up, as a terminal that is closed would; then kill what did not go."""
        self._loop.call_later(END_GRACE_S, self.kill)
        if self.core.state.is_stopped:
            self.kill()
        else:
            signals.hang_up(self)

    def kill(self) -> None:
        """End the tree now, whatever it does. The end is told by the keeper."""
        if self.is_over:
            return
        if self.core.state.is_stopped:  # what is stopped must not get to run on the way out
            self.spawn(asyncio.to_thread(freeze.kill, self.spec.place, self.spec.mark))
        else:
            end_processes(self.spec.place)

    def main_ended(self, ending: Ending) -> None:
        """The keeper reaped the session's first process."""
        if self._closed:
            return
        self.output.drain()
        self.handle(ev.MainEnded(HOST_ACTOR, now(), ending))

    def close_ended(self, ending: Ending) -> None:
        self.output.read(False)
        self.custody.pause()
        self.executor.stop()
        self.turning.stop()
        self.commands.session_ended(ending)
        self.watching.stop()
        self.daemon.forwarding.over(self)
        self.journal.ended(ending)
        if self.leasing is not None:
            self.leasing.over()
        self.daemon.bury(self)
        self.ended_event.set()

    def close_when_read(self) -> None:
        """It ended and nobody reads it: give back what it holds once its tombstone is written."""
        if self.tombstone_written.done():
            self.close(keep=False)

    def close(self, *, keep: bool) -> None:
        """Give back what this daemon holds, once: a descriptor closed twice may be another's by
        then. `keep`: the session lives on in custody."""
        if self._closed:
            return
        self._closed = True
        if keep:
            self.save_parcel()
        if self.leasing is not None:
            self.leasing.close() if keep else self.leasing.over()
        self.output.read(False)
        self.custody.pause()
        self.executor.stop()
        self.turning.stop()
        self.watching.stop()
        self.commands.close()
        self.view.close(keep=keep)
        self.daemon.forwarding.over(self)
        self.journal.close()
        self.custody.ledger.close()
        self.ring.close()
        os.close(self.fds.master)
        os.close(self.fds.pidfd)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Something that takes a moment; it is not forgotten, and its failure is logged."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("session %s", self.spec.id, exc_info=task.exception())

    # -- what it is ---------------------------------------------------------------------------

    @property
    def ending(self) -> Ending | None:
        return self.core.ending

    @property
    def is_over(self) -> bool:
        """Ended, or no longer this daemon's."""
        return self.core.ending is not None or self._closed

    @property
    def size(self) -> Size:
        return self.core.size

    @property
    def fenced(self) -> bool:
        return self.core.state.is_fenced

    def check_may_observe(self, actor: ActorId) -> None:
        self.core.check_may_observe(actor, now())

    def check_not_halted(self, actor: str) -> None:
        self.core.check_not_halted(actor)

    def state(self) -> SessionState:
        return describe.state(self)

    def graph(self, master: int) -> Graph:
        """By a descriptor of the caller's: it runs in a thread, and ours may be closed by then."""
        return self.daemon.observation.graph(
            self.spec.place, master, shell_is_shell=self.spec.is_shell
        )

    def info(self) -> SessionInfo:
        return describe.info(self)

    def state_event(self, state: SessionState) -> m.StateEvent:
        line = describe.waiting_line(self, state)
        return m.StateEvent(self.spec.id, self.spec.name, state, time.time(), line, self.ending)

    # -- custody ------------------------------------------------------------------------------

    def parcel_bytes(self) -> bytes:
        kept = StateBlob(
            self.spec,
            self.core.size,
            self.commands.recent(_COMMANDS_KEPT, text_chars=_TEXT_KEPT_CHARS),
            self.custody.host_input_seq,
            self.output.last_at,
            self.core.turn.kept(),
            self.halts.kept(),
            self.leasing.tenure.kept() if self.leasing is not None else None,
            self.commands.executions.kept(),
        )
        return kept.blob()

    def save_parcel(self) -> None:
        """What the keeper holds is brought up to date."""
        self.daemon.keeper.update(self.spec.id, self.parcel_bytes())
