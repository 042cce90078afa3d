"""The one ingest of a live session: an event is judged by the session machine, and its effects are
carried out in the order given. Nothing that an actor asks for reaches the PTY, the conduit, the
ledger or the journal another way.

`handle` never nests. An event that arrives while effects are carried out (an emulator's answer, a
lease that ran out, a channel that closes) is handled when they are done.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from typing import TYPE_CHECKING

from holdfast.adapters import pty
from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.input_machine import QueuedInput
from holdfast.host.clock import now
from holdfast.host.session import signals
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import OperatorId

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)

REPEATED = -1  # in place of an offset: the input was taken before


class Executor:
    """Of one session."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._running = False
        self._later: deque[ev.SessionEvent] = deque()
        # Answers to inputs that wait for custody, and of the one that is being handled.
        self._waiting: dict[tuple[OperatorId, int], asyncio.Future[int]] = {}
        self._offered: tuple[OperatorId, int] | None = None
        self._outcome: int | HoldfastError | None = None

    def handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        """For an input: the output offset at which it was taken, or a future of it; REPEATED says
        that it had been taken before. What is refused raises, and is recorded as refused."""
        if self._running:
            self._later.append(event)
            return None
        self._live.lease_allows()  # if it does not, LeaseLost is handled first
        try:
            return self._handle(event)
        finally:
            while self._later:
                self._handle_late(self._later.popleft())

    def _handle_late(self, event: ev.SessionEvent) -> None:
        try:
            self._handle(event)
        except HoldfastError as refusal:
            log.info(
                "session %s: %s refused: %s", self._live.spec.id, type(event).__name__, refusal
            )

    def _handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        live = self._live
        try:
            live.journal.check_writable(event)
            effects = live.core.handle(event)
        except HoldfastError as refusal:
            live.journal.refused(event, refusal.code)
            raise
        offered = (event.operator, event.seq) if isinstance(event, ev.InputOffered) else None
        self._offered, self._outcome, self._running = offered, None, True
        try:
            for effect in effects:
                self._carry_out(event, effect)
        finally:
            self._running = False
        if live.watching.watched:
            live.watching.look_soon()
        return self._answer(offered) if offered is not None else None

    # -- answers --------------------------------------------------------------------------------

    def _answer(self, offered: tuple[OperatorId, int]) -> int | asyncio.Future[int]:
        outcome = self._outcome
        if isinstance(outcome, HoldfastError):
            raise outcome
        if outcome is not None:
            return outcome
        return self._waiting.setdefault(offered, asyncio.get_running_loop().create_future())

    def settled(self, settled: QueuedInput, outcome: int | HoldfastError) -> None:
        """An input is in custody, at this offset of the output, or was refused."""
        number = settled.operator, settled.seq
        if number == self._offered:
            self._outcome = outcome
        answer = self._waiting.pop(number, None)
        if answer is None or answer.done():
            return
        if isinstance(outcome, HoldfastError):
            answer.set_exception(outcome)
            answer.exception()  # whoever asked may be gone: it is no mistake that nobody looks
        else:
            answer.set_result(outcome)

    def refuse(self, inputs: tuple[QueuedInput, ...], error: HoldfastError) -> None:
        for each in inputs:
            event = ev.InputOffered(
                each.actor, now(), each.operator, each.seq, each.data, each.form
            )
            self._live.journal.refused(event, error.code)
            self.settled(each, error)

    def stop(self) -> None:
        """Another daemon answers from now on."""
        for answer in self._waiting.values():
            answer.cancel()
        self._waiting.clear()

    # -- effects --------------------------------------------------------------------------------

    def _carry_out(self, event: ev.SessionEvent, effect: do.Effect) -> None:
        live, actor = self._live, event.actor
        match effect:
            case do.TakeInputs():
                live.custody.take_inputs()
            case do.Repeat(operator=operator, seq=seq):
                if (operator, seq) not in self._waiting:
                    self._outcome = REPEATED
            case do.RefuseInputs(inputs=inputs, error=error):
                self.refuse(inputs, error)
            case do.RecordTurn(outcome=outcome, by=by):
                live.turning.record(outcome, by)
            case do.NoteTurnGivenUp(actor=before):
                live.handoffs.turn_given_up(before)
            case do.NotifyTurn(outcome=outcome, by=by):
                live.turning.notify(outcome, by)
            case do.RecordPolicy(policy=policy):
                live.journal.happened(actor, entries.PolicySet(policy))
            case do.SaveParcel():
                live.save_parcel()
            case do.ScheduleTick():
                live.turning.schedule()
            case do.SetSize(size=size):
                size_entry = entries.Resized(size.cols, size.rows, live.ring.head)
                live.journal.note(actor, size_entry)
                pty.set_size(live.fds.master, size)
                live.view.resize(size)
                live.save_parcel()
            case do.SetAnswerer(seat=seat):
                live.daemon.operators.tell_answerer(live, seat)
            case do.AnnounceOperators():
                live.daemon.operators.announce(live)
            case do.SendSignal(signal=number):
                live.journal.record(actor, entries.Signalled(number))
                signals.signal_foreground(live, number)
            case do.Repaint():
                signals.signal_foreground(live, signal.SIGWINCH)
            case do.SetBlindOutput(blind=blind):
                live.output.set_blind(blind)
            case do.RecordHalt(only=only, reason=reason):
                live.halts.record_asked(actor, only, reason)
            case do.Freeze(only=only):
                live.halts.freeze(actor, only)
            case do.Thaw():
                live.halts.thaw(actor)
            case do.Fence() if live.leasing is not None:
                live.leasing.fence()
            case do.RecordFence(cause=cause) if live.leasing is not None:
                live.leasing.record_fence(cause)
            case do.Unfence(epoch=epoch) if live.leasing is not None:
                live.leasing.unfence(epoch)
            case do.CheckFollowers():
                if live.commands.exec is not None:
                    live.commands.exec.wake()
            case do.DismissOperator(operator=who, channel=channel):
                live.daemon.operators.dismiss(live, who, channel)
            case do.CutForward():
                live.daemon.forwarding.cut(live, effect)
            case do.EndTree():
                live.journal.happened(actor, entries.EndAskedEntry(), forced=True)
                live.end_tree()
            case do.CloseEnded(ending=ending):
                live.close_ended(ending)
            case _:
                raise AssertionError(f"no way to carry out {effect}")
