"""The one ingest of a live session: an event is judged by the session machine, and its effects are
carried out in the order given. Nothing that an actor asks for reaches the PTY, the conduit, the
ledger or the journal another way.

`handle` never nests. An event that arrives while effects are carried out (an emulator's answer, a
lease that ran out, a channel that closes) is handled when they are done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.session import SessionMachine
from holdfast.host.metrics import Counts
from holdfast.host.session.input_custody import InputCustody
from holdfast.host.session.record import SessionRecord
from holdfast.model.errors import HoldfastError, LimitReached
from holdfast.model.ids import OperatorId
from holdfast.model.limits import MOVE_HELD_BYTES, MOVE_HELD_INPUTS

log = logging.getLogger(__name__)

REPEATED = -1  # in place of an offset: the input was taken before


class Executor:
    """Of one session."""

    def __init__(
        self,
        core: SessionMachine,
        record: SessionRecord,
        custody: InputCustody,
        counts: Counts,
        *,
        lease_allows: Callable[[], bool],
        carry_out: Callable[[str, do.Effect], None],
        changed: Callable[[], None],
        refused: Callable[[OperatorId, int, HoldfastError], None],
    ) -> None:
        """`carry_out`: an effect of what this actor did, unless it is about inputs; `changed`: the
        state of the session may be another; `refused`: an input that waited."""
        self._refused = refused
        self._core, self._journal, self._custody = core, record, custody
        self._counts = counts
        self._lease_allows, self._carry_out, self._changed = lease_allows, carry_out, changed
        self._running = False
        self._later: list[ev.SessionEvent] = []
        self._held: dict[tuple[OperatorId, int], ev.InputOffered] = {}  # while it moves; in order
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
        if self._core.state.is_moving and isinstance(event, ev.InputOffered):
            return self._hold(event)
        self._lease_allows()  # if it does not, LeaseLost is handled first
        try:
            return self._handle(event)
        finally:
            while self._later:
                self._handle_late(self._later.pop(0))

    def _hold(self, event: ev.InputOffered) -> asyncio.Future[int]:
        """It is not known at which of two hosts it will be judged: neither taken nor refused."""
        number = event.operator, event.seq
        if number not in self._held:
            size = sum(len(each.data) for each in self._held.values()) + len(event.data)
            if size > MOVE_HELD_BYTES or len(self._held) >= MOVE_HELD_INPUTS:
                raise LimitReached(
                    "the session is moving to another host, and what waits fills the limit",
                    hint="try again in a moment",
                )
            self._held[number] = event
        return self._waiting.setdefault(number, asyncio.get_running_loop().create_future())

    def offer_held(self) -> None:
        """The session runs on here: what came meanwhile, in its order, before anything newer."""
        held, self._held = self._held, {}
        for number, event in held.items():
            try:
                taken = self.handle(event)
            except HoldfastError as refusal:
                self._settle(event, refusal)
                continue
            if isinstance(taken, int) and (answer := self._waiting.pop(number, None)) is not None:
                answer.set_result(taken)

    def _handle_late(self, event: ev.SessionEvent) -> None:
        try:
            self._handle(event)
        except HoldfastError as refusal:
            kind = type(event).__name__
            log.info("session %s: %s refused: %s", self._core.id, kind, refusal)

    def _handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None:
        try:
            self._journal.check_writable(event)
            effects = self._core.handle(event)
        except HoldfastError as refusal:
            self._counts.refusals += 1
            self._journal.refused(event, refusal.code)
            raise
        offered = (event.operator, event.seq) if type(event) is ev.InputOffered else None
        self._offered, self._outcome, self._running = offered, None, True
        try:
            for effect in effects:
                self._execute(event.actor, effect)
        finally:
            self._running = False
        self._changed()
        return self._answer(offered) if offered is not None else None

    def _execute(self, actor: str, effect: do.Effect) -> None:
        match effect:
            case do.TakeInputs():
                self._custody.take_inputs(self)
            case do.Repeat(operator=operator, seq=seq):
                if (operator, seq) not in self._waiting:
                    self._outcome = REPEATED
            case do.RefuseInputs(inputs=inputs, error=error):
                self.refuse(inputs, error)
            case do.AnswerHeld(held=held):
                self._settle(held, self._custody.head)
            case _:
                self._carry_out(actor, effect)

    # -- answers --------------------------------------------------------------------------------

    def _answer(self, offered: tuple[OperatorId, int]) -> int | asyncio.Future[int]:
        outcome = self._outcome
        if isinstance(outcome, HoldfastError):
            raise outcome
        if outcome is not None:
            return outcome
        return self._waiting.setdefault(offered, asyncio.get_running_loop().create_future())

    def settled(self, settled: ev.InputOffered, outcome: int | HoldfastError) -> None:
        """An input is in custody, at this offset of the output, or was refused."""
        if isinstance(outcome, HoldfastError):
            self._counts.refusals += 1
        else:
            self._counts.inputs += 1
        self._settle(settled, outcome)

    def _settle(self, settled: ev.InputOffered, outcome: int | HoldfastError) -> None:
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

    def refuse(self, inputs: tuple[ev.InputOffered, ...], error: HoldfastError) -> None:
        for each in inputs:
            self._journal.refused(each, error.code)
            self.settled(each, error)
            self._refused(each.operator, each.seq, error)

    def refer(self, elsewhere: HoldfastError) -> None:
        """The session goes on at another host. What has no answer yet is sent again there, under
        its number: it may have been delivered."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(elsewhere)
                answer.exception()
        self._waiting.clear()

    def stop(self) -> None:
        """Another daemon answers from now on."""
        for answer in self._waiting.values():
            answer.cancel()
        self._waiting.clear()
