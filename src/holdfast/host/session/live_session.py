"""One live session: it makes the parts, gives each what it needs, and says which part carries out
which effect. It decides nothing: core.session judges, executor.py keeps the order. Construction
repairs nothing and starts nothing: recovery.py and `start` do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.adapters import pty
from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.launch.client import end as end_processes
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.adapters.shell.integration import state_path
from holdfast.adapters.shell.state_file import StateReader, read_state
from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.session import SessionMachine
from holdfast.core.session_state import carried_on
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.clock import now
from holdfast.host.gate.action_runs import ActionRuns
from holdfast.host.gate.approval_notices import ApprovalNotices
from holdfast.host.gate.exec_gate import ExecGate
from holdfast.host.gate.group_contributors import GroupContributors
from holdfast.host.gate.held_calls import HeldCalls
from holdfast.host.gate.judged_entry import judged_entry
from holdfast.host.gate.provenance import SessionProvenance
from holdfast.host.gate.session_gate import SessionGate
from holdfast.host.gate.session_look import SessionLook
from holdfast.host.levels import bell_path
from holdfast.host.lost_sessions import as_last_known, what_was_in_flight
from holdfast.host.session import describe, fencing_token, signals
from holdfast.host.session.closing import Closing
from holdfast.host.session.command_leaves import CommandLeaves
from holdfast.host.session.executor import Executor
from holdfast.host.session.halt_control import HaltControl
from holdfast.host.session.handoff import Handoffs
from holdfast.host.session.host_input import HostInput
from holdfast.host.session.input_custody import InputCustody
from holdfast.host.session.journal_repair import change_of
from holdfast.host.session.lease import SessionLease, fenced_error
from holdfast.host.session.line_attribution import LineAttribution
from holdfast.host.session.nested_shells import ReportingShells
from holdfast.host.session.output import OutputPump
from holdfast.host.session.parcel import SessionFds, StateBlob
from holdfast.host.session.presence import Presence
from holdfast.host.session.record import SessionRecord
from holdfast.host.session.screen_view import View
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.host.session.state_since import StateSince
from holdfast.host.session.state_watch import StateWatch
from holdfast.host.session.tick_timer import TickTimer
from holdfast.host.session.turn_notices import TurnNotices
from holdfast.host.session_store import Stored
from holdfast.journal import entries
from holdfast.keeper.boottime import boot_id
from holdfast.keeper.protocol import DROP_OUTPUT, KEEP_OUTPUT, LEAVE_OUTPUT
from holdfast.model.actor import Actor
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.checkpoint import Waking
from holdfast.model.envelope import ALL, Envelope, Scope
from holdfast.model.errors import StorageFailed
from holdfast.model.gate import Contributor, EffectKind, Outcome, ProposedEffect, Verdict
from holdfast.model.graph import Evidence, Graph
from holdfast.model.ids import HOST_ACTOR, HOST_OPERATOR, ActorId, OperatorId
from holdfast.model.info import SessionInfo
from holdfast.model.limits import END_GRACE_S
from holdfast.model.shell_state import ShellState
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.wire.epochs import Incarnation
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon
    from holdfast.host.keeper_link import KeeperLink
    from holdfast.host.reach.output_fanout import Fanout

    T = TypeVar("T")

log = logging.getLogger(__name__)

# Of the command records, so many and so much of each are in the state blob, which is small.
_COMMANDS_KEPT, _TEXT_KEPT_CHARS = 10, 500
_NONE: frozenset[str] = frozenset()


class LiveSession:
    """A running incarnation."""

    # Named: with more than thirty attributes, each would have a dict of its own, of 1.5 kB.
    __slots__ = (
        "_came_as", "_closed", "_daemon", "_ended_moving", "_keys_rebound", "_loop", "_tasks",
        "_ticks", "_used_at", "actions", "approving", "closing", "commands", "core", "custody",
        "exec_gate", "executor", "fanout", "fds", "gate", "halts", "handoffs", "host_input",
        "incarnation", "journal", "keeper", "leasing", "output", "presence", "provenance", "ring",
        "shells", "since", "spec", "turning", "view", "watching",
    )  # fmt: skip

    output: OutputPump
    commands: ShellCommands

    def __init__(
        self,
        daemon: Daemon,
        keeper: KeeperLink,
        parcel: StateBlob,
        fds: SessionFds,
        ring: Ring,
        ledger: InputLedger,
        writer: JournalWriter,
        leasing: SessionLease | None,
    ) -> None:
        self._daemon = daemon
        self.keeper = keeper
        self.spec = spec = parcel.spec
        self.leasing = leasing  # None: it is pinned
        self.fds = fds
        self.ring = ring
        self.fanout: Fanout | None = None  # for those who came through relays
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._ended_moving: Ending | None = None
        self._used_at = parcel.used_at
        self._came_as = parcel.came_as
        # Until it is known what an earlier daemon saw of the shell's keys.
        self._keys_rebound: Callable[[], bool] = lambda: True
        self.core = self._machine(parcel, ledger)
        self.incarnation = Incarnation(spec.id, spec.epoch)
        self.incarnation.fenced = self.is_fenced
        self._make_parts(parcel, ledger, writer)

    def _machine(self, parcel: StateBlob, ledger: InputLedger) -> SessionMachine:
        spec, actors = parcel.spec, self._daemon.actors
        if parcel.turn is None:
            policy = self._daemon.config.turn_policy
            held = TurnMachine(policy, names=actors.name, session=spec.name)
        else:
            held = TurnMachine.of(parcel.turn, names=actors.name, session=spec.name)
        return SessionMachine(
            spec.id,
            spec.labels,
            parcel.size,
            actors.authority,
            held,
            ledger.operators(),
            state=carried_on(
                halted=parcel.halt is not None,
                confirmed=parcel.halt is not None and parcel.halt.confirmed,
                fenced=self.leasing is not None and not self.leasing.valid_for(spec.epoch),
                checkpointing=bool(parcel.asleep_in),
                moving=self._daemon.moves.has_left(spec.id),
            ),
            halted_actors=cgroup.frozen_leaves(spec.place.cgroup) if spec.place.cgroup else _NONE,
            in_force=self._in_force(),
            gate=parcel.gate,
            now=now(),
            pinned=parcel.pinned,
            keys_rebound=lambda: self._keys_rebound(),
            resize_runs=lambda: bool(self.provenance.behind_resize()),
            asleep_in=parcel.asleep_in,
            waking=parcel.waking,
        )

    def _in_force(self) -> Callable[[], bool] | None:
        judge = self._daemon.gate_judge
        if judge is None:
            return None
        return partial(judge.policy.in_force, self.spec.id, self.spec.labels)

    def _make_parts(self, parcel: StateBlob, ledger: InputLedger, writer: JournalWriter) -> None:
        daemon, spec, core, ring = self._daemon, parcel.spec, self.core, self.ring
        master, report_fifo = self.fds.master, self.fds.bell
        name, directory = daemon.actors.name, daemon.store.directory(spec.id)
        bell = bell_path(daemon.home, spec.process_tag)
        # Each once: a session has enough of these to cost kilobytes.
        handle, save, spawn = self.handle, self.save_parcel, self.spawn
        activity, shell_state = self.state, self._shell_state
        cwd = partial(describe.cwd, spec)
        self.view = View(ring, parcel.size, daemon.make_screen)
        writer.growth = partial(daemon.usage.disk_growth, spec.uid)
        self.journal = SessionRecord(
            spec.id, lambda: self.spec.epoch, ring, writer, spawn, daemon.counts.signatures.written
        )
        self.since = StateSince(lambda: core.state, parcel.since)
        self.watching = StateWatch(
            activity, partial(daemon.operators.state_changed, self), besides=self.shaped_by
        )
        changed = self._something_changed
        last_host_seq = max(parcel.layer_seq, ledger.last_seq(HOST_OPERATOR))
        self.host_input = HostInput(last_host_seq, lambda: core.state, handle)
        self.output = OutputPump(
            spec.id,
            master,
            ring,
            self.view,
            core.attachments,
            last_at=parcel.last_output_at,
            blind=core.turn.blind,
            lease_allows=self.lease_allows,
            may_read=lambda: not self.is_closed and not self.is_fenced,
            answer=self.host_input.type,
            deliver=self._pump_readers,
            changed=changed,
        )
        leaves = CommandLeaves(spec.place, parcel.leaves, self._new_writer)
        self.shells = ReportingShells(spec, parcel.shells, leaves.shell_is)
        self.halts = HaltControl(
            spec.place,
            spec.process_tag,
            core,
            self.journal,
            parcel.halt,
            leaves,
            report=handle,
            save=save,
            spawn=spawn,
            is_closed=lambda: self.is_closed,
            fence_holds=self._fence_holds,
        )
        attribution = LineAttribution(
            master,
            report_fifo,
            ledger,
            core.turn,
            self.halts,
            activity,
            running=bool(parcel.commands and parcel.commands[-1].status is None),
        )
        self.provenance = self._make_provenance(parcel, directory)
        self._keys_rebound = lambda: self.provenance.keys_rebound
        self.exec_gate = ExecGate(
            spec,
            self.fds.gate,
            self.fds.gate_page,
            self.keeper,
            daemon.answerers,
            daemon.policies,
            GroupContributors(
                spec.place.cgroup,
                spec.created_by,
                self.provenance,
                self.halts.leaves.commands_in,
            ),
            check_rights=self.provenance.check,
            epoch=lambda: self.spec.epoch,
            turn_holder=lambda: core.turn.holder or HOST_ACTOR,
            record=self._record_judged,
            judge=daemon.gate_judge.judge,
            spawn=spawn,
            approvals=HeldCalls(self._ask_approval, spawn),
            own_files=(bell, state_path(bell)),
        )
        self.commands = ShellCommands(
            spec,
            master,
            report_fifo,
            ring,
            attribution,
            core.inputs,
            self.journal,
            parcel.commands,
            parcel.executions,
            self.provenance,
            self.shells,
            walked_history=parcel.gate is None or parcel.gate.walked_history,
            type_as_host=self.host_input.type,
            activity=activity,
            may_type=lambda actor: core.may_type(actor, now()),
            drain_output=self.output.drain,
            save=save,
            changed=changed,
            runs=lambda by: handle(ev.CommandRuns(HOST_ACTOR, now(), by)),
            name=name,
            spawn=self.spawn,
        )
        self.actions = ActionRuns(
            spec.id,
            directory,
            SessionLook(
                spec.place,
                spec.level,
                spec.workspace or spec.cwd,
                graph=self.graph,
                master=lambda: self.fds.master,
                shell_state=shell_state,
                cwd=cwd,
                skip=(daemon.home.state, daemon.home.run),
            ),
            self.commands,
            self.journal,
            daemon.scores,
            spawn=spawn,
            save=save,
            is_over=lambda: self._closed or self.ending is not None,
        )
        self.gate = SessionGate(
            core,
            self.commands,
            self.journal,
            daemon.actors.authority.actor,
            daemon.gate_judge,
            self.provenance,
            master,
            facts=self._effect,
            offset=lambda: ring.head,
            activity=activity,
            handle=handle,
            save=save,
            type_as_host=self.host_input.type,
            spawn=spawn,
        )
        self.custody = InputCustody(
            master,
            ring,
            ledger,
            core.inputs,
            core.turn,
            self.journal,
            self.commands,
            on_room=lambda: handle(ev.RoomMade(HOST_ACTOR, now())),
            gate=self.gate,
        )
        self.handoffs = Handoffs(
            directory,
            self.journal,
            self.commands,
            shell_state=shell_state,
            cwd=cwd,
            is_halted=lambda: core.state.is_halted,
            name=name,
        )
        self.presence = Presence(
            core.attachments,
            self.journal,
            standing=lambda: (spec.place.shell_pid or spec.place.pid, ring.head, ring.tail),
            handle=handle,
            looked=self.handoffs.looked,
            is_closed=lambda: self.is_closed,
            may_see=lambda actor: daemon.registry.may_see(actor, self),
            watchers=partial(daemon.operators.watchers, self),
            recognise=self._recognise,
        )
        self.closing = Closing(
            spec.id,
            self.journal,
            self.presence,
            daemon.store,
            last_state=self._last_state,
            release=partial(daemon.release_ended, self),
            close=partial(self.close, keep=False),
        )
        self.turning = TurnNotices(
            spec.id,
            core.turn,
            daemon.actors,
            self.journal,
            ring,
            last_input=lambda: attribution.last,
            recipients=self.presence.recipients,
            attached=self.presence.attached,
            handoff=self.handoffs.for_actor,
            spawn=spawn,
        )
        self.approving = ApprovalNotices(
            lambda: self.spec,
            core.approvals,
            self.journal,
            name=name,
            recipients=self.presence.recipients,
            shell_state=shell_state,
            cwd=cwd,
            offset=lambda: ring.head,
            handle=handle,
        )
        self._ticks = TickTimer(core.wakes_at, lambda: handle(ev.TimePassed(HOST_ACTOR, now())))
        self.executor = Executor(
            core,
            self.journal,
            self.custody,
            daemon.counts,
            lease_allows=self.lease_allows,
            carry_out=self._carry_out,
            changed=changed,
            refused=self.commands.input_refused,
        )

    def _make_provenance(self, parcel: StateBlob, directory: str) -> SessionProvenance:
        spec, held = parcel.spec, self.core.turn
        path = state_path(bell_path(self._daemon.home, spec.process_tag))
        return SessionProvenance(
            f"{directory}/provenance",
            self.journal,
            read_state=StateReader(path, spec.nonce, spec.uid).read,
            shell_pid=lambda: self.shells.pid,
            reports=bool(spec.shell),
            is_silent=lambda: self.commands.is_silent,
            writers=lambda: (spec.created_by, *held.holders),
            authority=self._daemon.actors.authority,
            session=spec.id,
            labels=spec.labels,
            joined=self._new_input,
            complete_to=parcel.provenance_to,
        )

    def start(self) -> None:
        """Of a session that begins, or that was carried on: reports, output and what is in custody
        begin to flow; then what time, a halt or the lease ask for."""
        self.commands.start()
        self.exec_gate.start()
        self.actions.carry_on()
        self.keeper.output(self._output_mode())
        if not self.is_fenced:
            self.output.read(True)
            if not self.core.inputs.paused:
                self.custody.flush_to_pty()
        self._ticks.start()
        self._loop.call_soon(self.halts.finish_interrupted)
        if self.leasing is not None:
            self.leasing.begin(self)
            self.halts.reconcile()
        self.gate.carry_on()  # behind the lease, which events ask: it says what it finds to us

    # -- events in, effects out ---------------------------------------------------------------

    def handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        """The only way in; see executor.py."""
        outcome = self.executor.handle(event)
        if event.actor != HOST_ACTOR:
            self._used_at = event.now
        if isinstance(event, ev.AuthorityChanged | ev.GatePolicyChanged):
            self.exec_gate.changed()
        return outcome

    def _carry_out(self, actor: str, effect: do.Effect) -> None:
        """Called by the executor, in the order that the session machine gave: who does what."""
        match effect:
            case do.RecordTurn(outcome=outcome, by=by):
                self.turning.record(outcome, by)
            case do.NoteTurnGivenUp(actor=before):
                self.handoffs.turn_given_up(before)
            case do.NotifyTurn(outcome=outcome, by=by):
                self.turning.notify(outcome, by)
            case do.RecordPolicy(policy=policy):
                self.journal.happened(actor, entries.PolicySet(policy))
            case do.SaveParcel():
                self.save_parcel()
            case do.ScheduleTick():
                self._ticks.schedule()
            case do.SetSize(size=size):
                resized = entries.Resized(size.cols, size.rows, self.ring.head)
                self.journal.record_best_effort(actor, resized)
                pty.set_size(self.fds.master, size)
                self.view.resize(size)
                self.save_parcel()
            case do.SetAnswerer(seat=seat):
                self._daemon.operators.tell_answerer(self, seat)
            case do.AnnounceOperators():
                self._daemon.near_ends.changed(self)
                self._daemon.operators.announce(self)
            case do.SendSignal(signal=number):
                self.journal.record(actor, entries.Signalled(number))
                signals.signal_foreground(self.fds.master, number)
            case do.SetBlindOutput(blind=blind):
                self.output.set_blind(blind)
                self.keeper.output(DROP_OUTPUT if blind else KEEP_OUTPUT)
            case do.RecordHalt(only=only, reason=reason):
                self.halts.record_asked(actor, only, reason)
            case do.Freeze(only=only):
                self.halts.freeze(actor, only)
            case do.Thaw():
                self.halts.thaw(actor)
            case do.HoldTyping():
                self.custody.pause()
            case do.ReleaseTyping():
                if not self.is_fenced:
                    self.custody.flush_to_pty()
            case do.Fence():
                self._fence()
            case do.RecordFence(cause=cause):
                self._record_fence(cause)
            case do.Unfence(epoch=epoch):
                self._unfence(epoch)
            case do.CheckFollowers():
                if self.commands.exec is not None:
                    self.commands.exec.wake()
            case do.DismissOperator(operator=who, channel=channel, detached=detached):
                why = {"code": "detached", "by": self._daemon.actors.name(actor)}
                if detached:
                    self.journal.record_best_effort(actor, entries.DetachedByEntry(who))
                self._daemon.operators.dismiss(self, who, channel, **(why if detached else {}))
            case do.RecordPin(pinned=pinned):
                self.journal.happened(actor, entries.PinnedEntry(pinned), forced=True)
            case do.ChangeName(name=name):
                self._rename(actor, name)
            case do.CutForward():
                self._daemon.forwarding.cut(self, effect)
            case do.EndTree():
                self.journal.happened(actor, entries.EndAskedEntry(), forced=True)
                self._end_tree()
            case do.CloseEnded(ending=ending):
                self._close_ended(ending)
            case do.JudgeCommit():
                self.gate.look()
            case do.RecordJudged(effect=judged, verdict=verdict):
                self.gate.record_judged(judged, verdict)
            case do.AskApproval(approval=approval, number=piece):
                self.approving.asked(approval, piece)
                if piece and self.core.inputs.gated is not None:
                    gated = self.core.inputs.gated.whole
                    self.commands.exec_held(gated.operator, gated.seq, approval.id)
            case do.CloseApproval(approval=approval, by=by, note=note, saw=saw):
                self.approving.closed(approval, by, note, saw)
                self.gate.decided(approval)
            case do.ClearLine(in_program=in_program):
                self.gate.clear_line(in_program=in_program)
            case _:
                raise AssertionError(f"no way to carry out {effect}")

    def _something_changed(self) -> None:
        self._daemon.near_ends.changed(self)
        self.since.look()
        self.watching.look_soon()
        self.gate.news()

    def _effect(
        self, kind: EffectKind, actor: ActorId, contributors: tuple[Contributor, ...]
    ) -> ProposedEffect:
        """As things are now; what it is about is added by whoever proposes it."""
        spec, core = self.spec, self.core
        return ProposedEffect(
            spec.id,
            spec.name,
            spec.labels,
            spec.level,
            spec.epoch,
            kind,
            actor,
            contributors,
            cwd=describe.cwd(spec),
            workspace=spec.workspace or spec.cwd,
            environment=self.provenance.environment,
            turn_holder=str.__str__(core.turn.holder or ""),
        )

    def held_info(self, approval: str) -> ApprovalInfo | None:
        """What waits by this id."""
        found = self.core.approvals.get(approval)
        return None if found is None else self.approving.info(found)

    def held_by(self, operator: OperatorId, seq: int) -> str:
        """The approval that the rest of this input waits for."""
        gated, held = self.core.inputs.gated, self.core.held
        if gated is None or held is None:
            return ""
        return held.id if (gated.whole.operator, gated.whole.seq) == (operator, seq) else ""

    def _pump_readers(self) -> None:
        if self.fanout is not None:
            self.fanout.pump()
        self.presence.pump()

    @property
    def state_file(self) -> str:
        """Where its shell reports its state; "" if it reports none."""
        if not self.spec.shell:
            return ""
        return state_path(bell_path(self._daemon.home, self.spec.process_tag))

    def _shell_state(self) -> ShellState | None:
        path = self.state_file
        return read_state(path, self.spec.nonce, self.spec.uid) if path else None

    def _rename(self, actor: str, name: str) -> None:
        before = self.spec
        self.journal.record(actor, entries.Renamed(before.name, name))
        self.spec = before.replace(name=name)
        self.core.turn.session = name
        self.commands.renamed(self.spec)
        self._daemon.registry.renamed(self, before.name)
        self.save_spec()
        state = self.state_event(self.watching.current_state())
        for operator in self.presence.recipients():
            operator.event(state)

    def save_spec(self) -> None:
        """What is known of it should it be lost; alive it is what the keeper holds."""
        try:
            self._daemon.store.save_spec(Stored(self.info(), self.spec.uid, boot_id()))
        except StorageFailed as error:
            log.error("what is known of %s: %s", self.spec.id, error)

    # -- its lease ----------------------------------------------------------------------------

    def lease_allows(self) -> bool:
        """Whether this incarnation may take, type or show anything at this very moment (F2)."""
        return self.leasing is None or self.leasing.is_held_now()

    def _fence(self) -> None:
        """First the tree, then everybody."""
        self.incarnation.fence()
        self.halts.fence()
        self.output.read(False)
        self.keeper.output(LEAVE_OUTPUT)
        self.custody.pause()
        self._daemon.operators.dismiss_all(self, fenced_error())

    def _record_fence(self, cause: str) -> None:
        self.journal.happened(HOST_ACTOR, entries.FencedEntry(cause), forced=True)
        self._daemon.reach.withdraw(self.spec.id)
        log.warning("session %s is fenced (%s), epoch %d", self.spec.id, cause, self.spec.epoch)

    def fence_again(self, cause: str) -> None:
        """A new daemon finds it fenced, which was not known before."""
        self._fence()
        self._record_fence(cause)
        self.save_parcel()

    def _fence_holds(self) -> None:
        if self.leasing is not None:
            self.leasing.freeze_confirmed()

    def _unfence(self, epoch: int) -> None:
        """Everything says the new epoch before anything of the tree runs; the token does so now."""
        assert self.leasing is not None
        before = self.spec.epoch
        self._has_epoch(epoch)
        self.journal.happened(*self.leasing.held_again(before), forced=True)
        self.save_parcel()
        self.save_spec()
        self.halts.reconcile()
        self.keeper.output(KEEP_OUTPUT)
        self.output.read(True)
        self.custody.flush_to_pty()
        self._daemon.reach.announce(self)
        log.warning("session %s runs on in epoch %d", self.spec.id, epoch)

    def _has_epoch(self, epoch: int) -> None:
        self.spec = self.spec.replace(epoch=epoch)
        self.incarnation, self.fanout = Incarnation(self.spec.id, epoch), None

    def _recognise(self, operator: OperatorConnection) -> None:
        """The person who moved it here was another actor at the host before: what that one's
        operator sent, and had no answer to, is not taken a second time from this one's."""
        before = self._came_as.get(operator.actor.id)
        if before is None:
            return
        inputs, known = self.core.inputs, self.core.inputs.last(operator.identity_as(before))
        if known > inputs.last(operator.identity):
            self.custody.taken_before(operator.identity, known)

    def runs_on_after_move(self) -> None:
        """It did not move: what waits is taken first, in its order; then the tree runs."""
        self.handle(ev.CheckpointOver(HOST_ACTOR, now()))
        self.executor.offer_held()
        self.spawn(self.halts.begin())
        if self._ended_moving is not None:
            self.main_ended(self._ended_moving)

    def adopt_epoch(self, epoch: int) -> None:
        """It was released to another host and taken back: it goes on here, in a later epoch, before
        anything of the tree runs. A remote view is of one epoch, and ends."""
        # First, for it may fail: then the session is of the epoch before, and this is repeated.
        fencing_token.write(self._daemon.home, self.spec.process_tag, epoch)
        self.incarnation.fence()
        self._daemon.operators.dismiss_remote(self, fenced_error())
        before = self.spec.epoch
        self._has_epoch(epoch)
        self.journal.happened(HOST_ACTOR, entries.Leased(0.0, before, ""), forced=True)
        self.save_parcel()
        self.save_spec()
        self._daemon.reach.announce(self)

    # -- rights -------------------------------------------------------------------------------

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        """What the subject may do has changed; None: it is revoked."""
        if envelope is None or envelope.scope in self.scopes():
            self.journal.happened(by.id, change_of(subject, envelope), forced=True)
        self.handle(ev.AuthorityChanged(by.id, now()))

    async def _ask_approval(self, effect: ProposedEffect, verdict: Verdict) -> tuple[ActorId, ...]:
        return (await self.gate.ask(effect, verdict)).approved_by

    def _new_writer(self) -> None:
        self.exec_gate.new_contributor()

    def _new_input(self) -> None:
        self.exec_gate.changed()

    def _record_judged(self, effect: ProposedEffect, verdict: Verdict) -> None:
        """Before it happens. Raises if what is allowed cannot be recorded."""
        entry = judged_entry(effect, verdict)
        if verdict.outcome is Outcome.ALLOW:
            self.journal.record(effect.actor, entry)
        else:
            self.journal.record_best_effort(effect.actor, entry)

    def record_policy(self, actor: str, body: entries.Body) -> None:
        """A policy of the gate applies here from now on, or no longer. Raises StorageFailed."""
        self.journal.record(actor, body)
        # In force in a moment, when it is in every journal and on disk.
        changed = ev.GatePolicyChanged(HOST_ACTOR, now())
        self._loop.call_soon(lambda: None if self.is_closed else self.handle(changed))

    @property
    def ungated(self) -> str:
        """Why policies judge only lines here; "" if they judge what programs do too."""
        return self.exec_gate.missing

    def scopes(self) -> set[Scope]:
        labels = (Scope.label(name) for name in self.spec.labels)
        return {ALL, Scope.session(self.spec.id), *labels}

    # -- signals and the end ------------------------------------------------------------------

    def _end_tree(self) -> None:
        """Hang up, as a terminal that is closed would; then kill what did not go."""
        self._loop.call_later(END_GRACE_S, self.kill)
        if self.core.state.is_stopped:
            self.kill()
        else:
            signals.hang_up(self.spec.place, self.fds.master)

    def kill(self) -> None:
        """End the tree now, whatever it does. The keeper reports the end."""
        if self.is_closed:
            return
        if self.core.state.is_stopped:  # what is stopped must not get to run on the way out
            self.spawn(asyncio.to_thread(freeze.kill, self.spec.place, self.spec.process_tag))
        else:
            end_processes(self.spec.place)

    def main_ended(self, ending: Ending) -> None:
        """The keeper reaped the session's first process."""
        if self._closed:
            return
        if self.core.state.is_moving:  # it is disposed of, or, if the move fails, it has ended
            self._ended_moving = ending
            return
        self.output.drain()
        self.handle(ev.MainEnded(HOST_ACTOR, now(), ending))

    def _close_ended(self, ending: Ending) -> None:
        self.output.read(False)
        self.custody.pause()
        self.executor.stop()
        self.gate.close()
        self._ticks.stop()
        self.commands.session_ended(ending)
        self.watching.stop()
        self._daemon.forwarding.over(self)
        self.journal.ended(ending)
        if self.leasing is not None:
            self.leasing.release()
        if ending.checkpoint:
            self._daemon.operators.park(self)
        self.closing.begin()

    def _last_state(self) -> tuple[Stored, bytes, str]:
        info = self.info().replace(operators=0, observers=0)
        if self.core.state.is_lost:
            store, name = self._daemon.store, self._daemon.actors.name
            info = self._last_known(info)
            cause = self.core.ending.cause if self.core.ending is not None else None
            self._daemon.counts.signatures.lost(cause.kind if cause is not None else "")
            in_flight = what_was_in_flight(store, self.spec.id, self.journal.seq, name)
            info = info.replace(in_flight=in_flight)
        waking = self.core.waking if self.core.asleep_in else Waking()
        stored = Stored(info, self.spec.uid, returns_for=waking.with_host_for, wakes=waking.on_use)
        return stored, self.ring.copy(self.ring.tail, self.ring.head), self.view.text()

    def _last_known(self, info: SessionInfo) -> SessionInfo:
        """Its output and all else is what this daemon holds; only how it was is from the disk."""
        store = self._daemon.store
        written = as_last_known(store, info, store.near_end(self.spec.id))
        return info.replace(cwd=written.cwd, last_known=written.last_known)

    def close(self, *, keep: bool) -> None:
        """Give back what this daemon holds, once: a descriptor closed twice may be another's by
        then. `keep`: the session lives on in custody."""
        if self._closed:
            return
        self._closed = True
        if keep:
            self.save_parcel()
            self._daemon.near_ends.write_now(self)  # before a shutdown of the machine, usually
        if self.leasing is not None:
            self.leasing.close() if keep else self.leasing.release()
        self.output.read(False)
        self.custody.pause()
        self.executor.stop()
        self.gate.close()
        self._ticks.stop()
        self.exec_gate.close(keep=keep)
        self.watching.stop()
        self.commands.close()
        self.halts.leaves.close()
        self.view.close(keep=keep)
        self._daemon.forwarding.over(self)
        self.journal.close()
        self.custody.ledger.close()
        self.ring.close()
        os.close(self.fds.master)
        os.close(self.fds.pidfd)
        for fd in {self.fds.gate, self.fds.gate_page} - {-1}:
            os.close(fd)
        self.keeper.close()  # last: from here on the keeper moves the output

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
    def is_closed(self) -> bool:
        """Ended, or no longer this daemon's."""
        return self.core.ending is not None or self._closed

    @property
    def is_fenced(self) -> bool:
        return self.core.state.is_fenced

    @property
    def size(self) -> Size:
        return self.core.size

    def check_may_observe(self, actor: ActorId) -> None:
        self.core.check_may_observe(actor, now())

    def check_not_halted(self, actor: str) -> None:
        self.core.check_not_halted(actor)

    def state(self) -> SessionState:
        """What it is doing, as the kernel shows it now."""
        return describe.state(self.core.state, self.evidence)

    @property
    def last_used_at(self) -> float:
        """When it began, printed, or an actor did something with it: the latest."""
        known = (self.spec.created_at, self.output.last_at, self._used_at)
        return max(each for each in known if each is not None)

    def evidence(self) -> Evidence:
        spec = self.spec
        return self._daemon.observation.evidence(
            spec.place,
            self.fds.master,
            shell_is_shell=spec.is_shell,
            shell_pid=self.shells.nested_pid,
        )

    def state_event(self, state: SessionState) -> m.StateEvent:
        return describe.state_event(self, state)

    def shaped_by(self) -> tuple[str, ...]:
        """The names of those who shaped what its shell holds."""
        return tuple(map(self._daemon.actors.name, self.provenance.shaped_by()))

    def graph(self, master: int) -> Graph:
        """By a descriptor of the caller's: it runs in a thread, and ours may be closed by then."""
        return self._daemon.observation.graph(
            self.spec.place,
            master,
            shell_is_shell=self.spec.is_shell,
            shell_pid=self.shells.nested_pid,
        )

    async def look(self) -> Graph:
        """The live graph, made in a thread: a large tree takes tens of milliseconds."""
        master = os.dup(self.fds.master)
        try:
            return await asyncio.to_thread(self.graph, master)
        finally:
            os.close(master)

    def info(self) -> SessionInfo:
        known = describe.info(self, self._daemon.actors.name)
        return known.replace(**self._daemon.moves.shown(self.spec.id))

    # -- custody ------------------------------------------------------------------------------

    def parcel_bytes(self) -> bytes:
        kept = StateBlob(
            self.spec,
            self.core.size,
            self.commands.recent(_COMMANDS_KEPT, text_chars=_TEXT_KEPT_CHARS),
            self.host_input.last_seq,
            self.output.last_at,
            self.core.turn.kept(),
            self.halts.kept(),
            self.leasing.runner.kept() if self.leasing is not None else None,
            self.commands.executions.kept(),
            self.halts.leaves.kept(),
            self.provenance.complete_to,
            self.gate.kept(),
            self.since.look(),
            self.core.pinned,
            self._used_at,
            self.core.asleep_in,
            self.core.waking,
            self._came_as,
            self.shells.kept(),
        )
        return kept.blob()

    def save_parcel(self) -> None:
        """Bring what the keeper holds up to date."""
        self.keeper.update(self.parcel_bytes())
        if not self._closed:
            self._daemon.near_ends.changed(self)

    def deposit(self) -> None:
        """Give it into custody: from here on it survives this daemon."""
        ring = self.fds.ring_place(self.ring.capacity)
        self.keeper.deposit(self.fds.named(), self.parcel_bytes(), ring, self._output_mode())

    def _output_mode(self) -> int:
        """What the keeper does with output while no daemon runs. What is printed in a blind turn is
        read, so that no program waits, and kept nowhere."""
        if self.is_fenced:
            return LEAVE_OUTPUT
        return DROP_OUTPUT if self.core.turn.blind else KEEP_OUTPUT

    def frozen_by_keeper(self) -> None:
        """It had no word of the lease in time. Ours may have been on its way."""
        log.warning(
            "session %s: its lease was not renewed in time; its keeper froze it", self.spec.id
        )
        if not self.is_closed and self.lease_allows():  # else it is fenced by now
            self.keeper.output(self._output_mode())
            self.halts.reconcile()

    def keeper_deadline(self, until: float | None) -> None:
        """When the keeper freezes the tree if it hears nothing; None: never."""
        self.keeper.lease(self.spec.place.cgroup, until)
