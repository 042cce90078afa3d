"""The way of an input that was judged and allowed: recorded, into custody, into the PTY.

One way for all of them. What is typed key by key is gathered for the journal in shared memory
(adapters.burst); everything else is in the journal's file before it is in custody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from holdfast.adapters import pty
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.core import events as ev
from holdfast.host.clock import now
from holdfast.journal import entries
from holdfast.model.errors import Fenced, HoldfastError, SessionHalted, TurnHeld
from holdfast.model.ids import HOST_ACTOR, LAYER, OperatorId
from holdfast.model.limits import INPUT_MAX_BYTES

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

    _Pending = tuple[ev.Take, asyncio.Future[int]]


class InputCustody:
    """Types into one session, in order, each input once."""

    def __init__(self, live: LiveSession, layer_seq: int) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self.ledger = InputLedger(live.ring, live.fds.input)
        self._pending: deque[_Pending] = deque()
        self._waiting = False  # for the PTY to take more
        self.layer_seq = max(layer_seq, self.ledger.last_seq(LAYER))
        # Of the last input that an actor's hand gave: whose it was, when, and its last bytes.
        self.last_by, self.last_at, self.last_data = HOST_ACTOR, 0.0, b""

    def key(self, actor: str, operator: OperatorId, seq: int, data: bytes) -> bool:
        """A key press in the usual state of things; False: nothing was done, use `take`."""
        live = self._live
        if not self.is_idle or self.ledger.room() < len(data) or not live.may_act():
            return False
        at = now()
        secret = pty.reads_secretly(live.fds.master) or live.core.turn.blind
        burst = live.journal.burst
        size = burst.prepare(actor, operator, seq, data, secret)
        if seq != live.core.next_at_once(operator, at) or len(data) > INPUT_MAX_BYTES:
            return False
        if size < 0:
            try:
                live.journal.key(actor, operator, seq, data, secret, live.ring.head)
            except HoldfastError:  # it cannot be recorded: then it is not taken either
                return False
        live.core.took_at_once(operator, seq, at)
        self.ledger.take(operator, seq, data)
        if not self._typed_all():
            self._wait_for_room(True)
        if size < 0:
            live.journal.taken(seq)
        else:
            burst.commit(size, seq)
        self._typed(actor, data, at, blind=secret)
        return True

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be typed or taken."""
        return not (self._pending or self._waiting)

    def pressed(self, actor: str, data: bytes, untyped: int, at: float) -> None:
        """A key went past `key` (see host.key_way), and so much of it is not typed yet."""
        if not self.ledger.pressed(untyped):
            self._wait_for_room(not self._typed_all())
        self._typed(actor, data, at, blind=False)  # none that is secret goes that way

    def _typed(self, actor: str, data: bytes, at: float, *, blind: bool) -> None:
        self.last_by, self.last_at, self.last_data = actor, at, data
        commands = self._live.commands
        commands.typed.typed(actor, data, blind=blind)
        if b"\r" in data or b"\n" in data:
            commands.entered()

    def take(self, take: ev.Take) -> int | asyncio.Future[int]:
        """One input: at once if there is room and nobody waits, else in its turn."""
        if not self._pending and self.ledger.room() >= len(take.data):
            self._into_custody(take)
            if self._waiting or not self._typed_all():
                self._wait_for_room(True)
            return self._live.ring.head
        answer = self._loop.create_future()
        self._pending.append((take, answer))
        self.type()
        return answer

    def taken_before(self, operator: OperatorId, seq: int) -> int | asyncio.Future[int]:
        """A repeat is answered when the first one is: it may still be waiting for custody."""
        for take, answer in self._pending:
            if (take.operator, take.seq) == (operator, seq) and not answer.cancelled():
                return answer
        return -1

    def for_layer(self, data: bytes) -> None:
        """Input that no operator sent: an emulator's answer. One ingest for it as for all."""
        live = self._live
        if live.core.ending is None and not live.core.stands_still:
            self.layer_seq += 1
            live.handle(ev.InputOffered(HOST_ACTOR, now(), LAYER, self.layer_seq, data, "answer"))

    def _into_custody(self, take: ev.Take) -> None:
        live, actor, operator = self._live, take.actor, take.operator
        intake = live.core.intake
        try:
            secret = self._record(take)
        except HoldfastError:
            # It was not typed, so it was not taken: the operator may offer it again.
            intake.not_taken(operator, take.seq, self.ledger.last_seq(operator), len(take.data))
            raise
        if actor != HOST_ACTOR:
            self._typed(actor, take.data, now(), blind=secret)
        else:
            live.commands.typed.typed(HOST_ACTOR, take.data, blind=False)
        self.ledger.take(operator, take.seq, take.data)
        live.journal.taken(take.seq)
        intake.taken(len(take.data))

    def _record(self, take: ev.Take) -> bool:
        """In the journal before it is in custody: keys in the burst, everything else in the file.
        A secret is counted, whichever way it came; whether it is one."""
        live = self._live
        secret = pty.reads_secretly(live.fds.master) or live.core.turn.blind
        if take.form == "keys":
            offset = live.ring.head
            live.journal.key(take.actor, take.operator, take.seq, take.data, secret, offset)
        elif secret:
            body: entries.Body = entries.BlindInput(
                take.operator, take.seq, take.seq, len(take.data)
            )
            live.journal.record(take.actor, body)
        else:
            if take.intent:
                live.journal.record(take.actor, entries.Intended(take.intent))
            data, head = take.data, live.ring.head
            body = entries.InputEntry(take.operator, take.seq, take.seq, take.form, data, head)
            live.journal.record(take.actor, body)
        return secret

    def type(self) -> None:
        """From custody into the PTY, as far as it takes it; then the inputs that waited."""
        done = self._typed_all()
        while self._pending and self.ledger.room() >= len(self._pending[0][0].data):
            take, answer = self._pending.popleft()
            try:
                self._into_custody(take)
            except HoldfastError as error:
                _fail(answer, error)
                # What it sent behind that would otherwise overtake it.
                who = take.operator
                self._refuse(error, [one for one in self._pending if one[0].operator == who])
                continue
            if not answer.done():
                answer.set_result(self._live.ring.head)
            done = self._typed_all()
        self._wait_for_room(not done)
        self._live.watching.stirred()

    def judge_pending(self) -> None:
        """The turn moved, or the session is halted. What still waits for custody was allowed before
        and is not any more, and nobody was told that it was taken: it is refused."""
        core, names = self._live.core, self._live.daemon.actors.name
        if core.stands_still:
            halted: HoldfastError = SessionHalted("the session was halted before it took the input")
            if core.fenced:
                halted = Fenced("the session's lease was lost before it took the input")
            self._refuse(halted, [one for one in self._pending if one[0].actor != HOST_ACTOR])
            return
        holder = core.turn.holder
        lost = TurnHeld(
            f"{names(holder) or 'nobody'} holds the turn now; it moved before the input was taken",
            hint=f"`hold turn {self._live.spec.name} request` asks for it",
        )
        may = (HOST_ACTOR, holder)
        self._refuse(lost, [one for one in self._pending if one[0].actor not in may])

    def _refuse(self, error: HoldfastError, these: list[_Pending]) -> None:
        live = self._live
        for take, answer in these:
            self._pending.remove((take, answer))
            before = self.ledger.last_seq(take.operator)
            live.core.intake.not_taken(take.operator, take.seq, before, len(take.data))
            offered = ev.InputOffered(
                take.actor, now(), take.operator, take.seq, take.data, take.form
            )
            live.journal.refused(offered, error.code)
            _fail(answer, error)

    def _typed_all(self) -> bool:
        try:
            return self.ledger.type_into(self._live.fds.master)
        except OSError:  # hung up: nobody is left to read it
            return True

    def _wait_for_room(self, wanted: bool) -> None:
        if wanted and not self._waiting:
            self._loop.add_writer(self._live.fds.master, self.type)
        elif not wanted and self._waiting:
            self._loop.remove_writer(self._live.fds.master)
        self._waiting = wanted

    def pause(self) -> None:
        """Nothing more into the PTY, until `type`. What is in custody stays there."""
        self._wait_for_room(False)

    def stop(self) -> None:
        """The session has ended, or another daemon types from now on."""
        self._wait_for_room(False)
        for _, answer in self._pending:
            if not answer.done():
                answer.cancel()
        self._pending.clear()


def _fail(answer: asyncio.Future[int], error: HoldfastError) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # whoever asked may be gone: it is no mistake that nobody looks
