"""One live session: the shell around core.session. It holds the descriptors and its parts together
and carries out the effects; it decides nothing.

    output.py      PTY -> ring -> readers
    typist.py      an input that was allowed -> journal -> custody -> PTY
    key_way.py     the same for a key press and its echo, at once
    journaling.py  what is recorded, and when it is on disk
    turning.py     what becomes of the turn: recorded, kept, told
    halts.py       stopping the tree
    leasing.py     a re-homeable session's lease
    handoffs.py    what a new holder must know
    commands.py    what the shell reports
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.adapters import pty
from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.launch.client import end as end_tree
from holdfast.adapters.session_memory.key_press import KeyPress
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core import events as ev
from holdfast.core.session import SessionMachine
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.clock import now
from holdfast.host.session import describe, signals
from holdfast.host.session.halt_control import HaltControl
from holdfast.host.session.handoff import Handoffs
from holdfast.host.session.input_custody import InputCustody
from holdfast.host.session.journal_repair import change_of
from holdfast.host.session.key_way import KeyWay
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
from holdfast.model.errors import HoldfastError
from holdfast.model.graph import Graph
from holdfast.model.ids import HOST_ACTOR, OperatorId
from holdfast.model.info import SessionInfo
from holdfast.model.limits import END_GRACE_S, INTAKE_OPERATORS
from holdfast.model.state import Ending, SessionState
from holdfast.wire.epochs import Incarnation

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
        kept: StateBlob,
        fds: SessionFds,
        journal: JournalWriter | None = None,
        leasing: SessionLease | None = None,
    ) -> None:
        """`journal`, `leasing`: of a session that begins; else they are carried on."""
        self.daemon = daemon
        self.spec = spec = kept.spec
        if kept.lease is not None:
            leasing = daemon.leases.carry_on(spec.id, spec.place.cgroup, kept.lease)
        self.leasing = leasing  # None: it is pinned
        self.fds = fds
        self.audience: dict[OperatorConnection, int] = {}  # who has channels here, and how many
        self.fanout: Fanout | None = None  # for those who came through relays
        self._left_at: dict[OperatorId, float] = {}
        self._present: set[OperatorConnection] = (
            set()
        )  # who had to do with it and is still connected
        self.buried: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()  # it ended; not buried yet where there is no room for that
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self.ring = Ring(fds.ring, fds.output)
        self.typist = InputCustody(self, kept.layer_seq)
        held = self._turn(kept)
        self.core: SessionMachine = SessionMachine(
            spec.id,
            spec.labels,
            kept.size,
            daemon.actors.authority,
            held,
            self.typist.ledger.operators(),
            halted=kept.halt is not None,
            halted_actors=cgroup.frozen_leaves(spec.place.cgroup) if spec.place.cgroup else _NONE,
            fenced=leasing is not None and not leasing.covers(spec.epoch),
        )
        self.incarnation: Incarnation = Incarnation(spec.id, spec.epoch)
        self.incarnation.fenced = self.core.fenced
        self.view = View(self.ring, kept.size, daemon.make_screen)
        self.journal = SessionRecord(self, journal)
        self.commands = ShellCommands(self, kept.commands, kept.executions)
        self.watching = StateWatch(self)
        self.turning = TurnNotices(self)
        self.handoffs = Handoffs(self)
        self.halts = HaltControl(self, kept.halt)
        key_press = KeyPress(self.ring)
        self.output = OutputPump(self, key_press, kept.last_output_at, held.blind)
        self.key_way = KeyWay(self, key_press)
        if not self.core.fenced:
            self.output.read(True)
            self.typist.type()
        self.turning.arm()
        if leasing is not None:
            leasing.begin(self)

    def _turn(self, kept: StateBlob) -> TurnMachine:
        names, session = self.daemon.actors.name, kept.spec.name
        if kept.turn is None:
            return TurnMachine(self.daemon.config.turn_policy, names=names, session=session)
        return TurnMachine.of(kept.turn, names=names, session=session)

    # -- events in, effects out ---------------------------------------------------------------

    def handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        """The one ingest. For an input: the output offset at which it was taken, or a future of it;
        -1 says that it had been taken before. What is refused is recorded as refused."""
        self.may_act()  # core.session learns of it first, if it may not any more
        try:
            self.journal.check_writable(event)
            effects = self.core.handle(event)
        except HoldfastError as refusal:
            self.journal.refused(event, refusal.code)
            raise
        return self._carry_out(event, effects)

    def may_act(self) -> bool:
        """Whether this incarnation may take, type or show anything at this very moment (F2)."""
        return self.leasing is None or self.leasing.judge()

    def tick(self) -> None:
        """Time has passed."""
        at = now()
        self._carry_out(ev.AuthorityChanged(HOST_ACTOR, at), self.core.tick(at))

    def _carry_out(
        self, event: ev.SessionEvent, effects: list[ev.Effect]
    ) -> int | asyncio.Future[int] | None:
        answer: int | asyncio.Future[int] | None = None
        turned = [effect.outcome for effect in effects if isinstance(effect, ev.TurnNotice)]
        if isinstance(event, ev.PolicyAsked):
            self.journal.fact(event.actor, entries.PolicySet(event.policy))
        for outcome in turned:
            self.turning.record(outcome, event.actor)
        if turned or isinstance(event, ev.PolicyAsked):
            self.keep()
        for effect in effects:
            match effect:
                case ev.Take():
                    answer = self.typist.take(effect)
                case ev.Repeat(operator=operator, seq=seq):
                    answer = self.typist.taken_before(operator, seq)
                case ev.TurnNotice(outcome=outcome):
                    self.turning.tell(outcome, event.actor)
                case _:
                    self._do(event, effect)
        if turned or isinstance(event, _MAY_WAKE):
            self.turning.arm()
        if isinstance(event, ev.AuthorityChanged) and self.commands.exec is not None:
            self.commands.exec.wake()  # who follows it may not be allowed to any more
        if self.watching.watched:
            self.watching.stirred()
        return answer

    def _do(self, event: ev.SessionEvent, effect: ev.Effect) -> None:
        actor = event.actor
        match effect:
            case ev.SetSize(size=size):
                self.journal.note(actor, entries.Resized(size.cols, size.rows, self.ring.head))
                pty.set_size(self.fds.master, size)
                self.view.resize(size)
                self.keep()
            case ev.SendSignal(signal=number):
                self.journal.record(actor, entries.Signalled(number))
                signals.signal_foreground(self, number)
            case ev.Repaint():
                signals.signal_foreground(self, signal.SIGWINCH)
            case ev.SetBlindOutput(blind=blind):
                self.output.set_blind(blind)
                self.keep()
            case ev.Freeze(only=only, reason=reason):
                self.halts.begin(actor, only, reason)
            case ev.Thaw():
                self.halts.end(actor)
            case ev.Fence(cause=cause) if self.leasing is not None:
                self.leasing.fence(cause)
            case ev.Unfence(epoch=epoch) if self.leasing is not None:
                self.leasing.unfence(epoch)
            case ev.EndTree():
                self.journal.fact(actor, entries.EndAskedEntry(), forced=True)
                self._take_down()
            case ev.SetAnswerer(seat=seat):
                self.daemon.tell_answerer(self, seat)
            case ev.AnnounceOperators():
                self.daemon.announce(self)
            case ev.DismissOperator(operator=who, channel=channel):
                self.daemon.dismiss(self, who, channel)
            case ev.CutForward():
                self.daemon.forwarding.cut(self, effect)
            case ev.CloseEnded(ending=ending):
                self._bury(ending)

    # -- who is here --------------------------------------------------------------------------

    def here(self, operator: OperatorConnection) -> None:
        """This connection has to do with the session: when its actor's last one goes, the turn
        is free."""
        self._present.add(operator)
        operator.touched.add(self)

    def came(self, operator: OperatorConnection, observe: bool, offset: int) -> None:
        """A channel is open: recorded with how long its operator had been away (M1). One that
        paints anew opens another channel; it had not been away at all."""
        assert operator.id is not None
        if self.core.attachments.seats_of(operator.id) > 1:
            return
        gap = max(0.0, now() - self._left_at.pop(operator.id, now()))
        body = entries.AttachedEntry(operator.id, operator.client, observe, offset, gap)
        self.journal.note(operator.actor.id, body)

    def left(self, operator: OperatorConnection, channel: int) -> None:
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

    def gone(self, operator: OperatorConnection) -> None:
        self._present.discard(operator)
        actor = operator.actor.id
        if self.is_over or any(other.actor.id == actor for other in self._present):
            return
        self.handle(ev.ActorDisconnected(actor, now()))

    def everybody(self) -> set[OperatorConnection]:
        """Who is to be told what happens here."""
        may_see = self.daemon.registry.may_see
        acted = (operator for operator in self._present if may_see(operator.actor, self))
        return {*self.audience, *acted, *self.daemon.watchers(self)}

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        """What the subject may do has changed; None: it is revoked."""
        if envelope is None or envelope.scope in self.scopes():
            self.journal.fact(by.id, change_of(subject, envelope), forced=True)
        self.handle(ev.AuthorityChanged(by.id, now()))

    def scopes(self) -> set[Scope]:
        labels = (Scope.label(name) for name in self.spec.labels)
        return {ALL, Scope.session(self.spec.id), *labels}

    # -- signals and the end ------------------------------------------------------------------

    def _take_down(self) -> None:
        """Hang up, as a terminal that is closed would; then kill what did not go."""
        self._loop.call_later(END_GRACE_S, self.kill)
        if self.core.stands_still:
            self.kill()
        else:
            signals.hang_up(self)

    def kill(self) -> None:
        """End the tree now, whatever it does. The end is told by the keeper."""
        if self.is_over:
            return
        if self.core.stands_still:  # what is stopped must not get to run on the way out
            self.background(asyncio.to_thread(freeze.kill, self.spec.place, self.spec.mark))
        else:
            end_tree(self.spec.place)

    def main_ended(self, ending: Ending) -> None:
        """The keeper reaped the session's first process."""
        if self._closed:
            return
        self.output.drain()
        self.handle(ev.MainEnded(HOST_ACTOR, now(), ending))

    def _bury(self, ending: Ending) -> None:
        self.output.read(False)
        self.typist.stop()
        self.turning.stop()
        self.commands.session_ended(ending)
        self.watching.stop()
        self.daemon.forwarding.over(self)
        self.journal.ended(ending)
        if self.leasing is not None:
            self.leasing.over()
        self.daemon.bury(self)
        self.over.set()

    def close(self, *, keep: bool) -> None:
        """Give back what this daemon holds, once: a descriptor closed twice may be another's by
        then. `keep`: the session lives on in custody."""
        if self._closed:
            return
        self._closed = True
        if keep:
            self.keep()
        if self.leasing is not None:
            self.leasing.close() if keep else self.leasing.over()
        self.output.read(False)
        self.typist.stop()
        self.turning.stop()
        self.watching.stop()
        self.commands.close()
        self.view.close(keep=keep)
        self.daemon.forwarding.over(self)
        self.journal.close()
        self.typist.ledger.close()
        self.ring.close()
        os.close(self.fds.master)
        os.close(self.fds.pidfd)

    def background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
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

    def state(self) -> SessionState:
        return describe.state(self)

    def graph(self, master: int) -> Graph:
        """By a descriptor of the caller's: it runs in a thread, and ours may be closed by then."""
        return self.daemon.observation.graph(
            self.spec.place, master, shell_is_shell=self.spec.is_shell
        )

    def info(self) -> SessionInfo:
        return describe.info(self)

    # -- custody ------------------------------------------------------------------------------

    def blob(self) -> bytes:
        kept = StateBlob(
            self.spec,
            self.core.size,
            self.commands.recent(_COMMANDS_KEPT, text_chars=_TEXT_KEPT_CHARS),
            self.typist.layer_seq,
            self.output.last_at,
            self.core.turn.kept(),
            self.halts.kept(),
            self.leasing.tenure.kept() if self.leasing is not None else None,
            self.commands.executions.kept(),
        )
        return kept.blob()

    def keep(self) -> None:
        """What the keeper holds is brought up to date."""
        self.daemon.keeper.update(self.spec.id, self.blob())
