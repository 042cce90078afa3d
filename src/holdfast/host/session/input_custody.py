"""What happens to an input that was judged and allowed: recorded, into custody, into the PTY.

The same for all of them. What is typed key by key is gathered for the journal in shared memory
(burst_page.py); everything else is in the journal's file before it is in custody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from holdfast.adapters import pty
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core.events import InputOffered
from holdfast.core.input_machine import InputMachine
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.session.line_attribution import ShellSight
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import GATE_OPERATOR, HOST_ACTOR, OperatorId


class ShellSide(Protocol):
    """How the session's shell reads what is typed, and who typed it."""

    def look_at_shell(self, actor: str, data: bytes) -> ShellSight: ...

    def before_typing(self, actor: str, sight: ShellSight) -> None: ...

    def after_typing(self, actor: str, data: bytes, sight: ShellSight, blind: bool) -> None: ...


class GateSide(Protocol):
    """What is cut off an input because it commits something."""

    def keep(self) -> None:
        """What waits there is in the parcel."""

    def record_passing(self, piece: InputOffered, secret: bool) -> None:
        """That this commit was judged, before its effect. Raises when it cannot be recorded."""

    def look(self) -> None:
        """Something may wait to be judged."""


class Answers(Protocol):
    """Where it is told what became of an input."""

    def settled(self, settled: InputOffered, outcome: int | HoldfastError) -> None: ...

    def refuse(self, inputs: tuple[InputOffered, ...], error: HoldfastError) -> None: ...


class InputCustody:
    """Types into one session, in order, each input once."""

    def __init__(
        self,
        master: int,
        ring: Ring,
        ledger: InputLedger,
        inputs: InputMachine,
        turn: TurnMachine,
        record: SessionRecord,
        shell: ShellSide,
        on_room: Callable[[], object],
        gate: GateSide,
    ) -> None:
        """`on_room`: the PTY takes more."""
        self._master, self._ring, self.ledger = master, ring, ledger
        self._inputs, self._turn, self._journal, self._shell = inputs, turn, record, shell
        self._on_room, self._gate = on_room, gate
        self._loop = asyncio.get_running_loop()
        self._waiting = False  # for the PTY to take more

    @property
    def head(self) -> int:
        """The offset that the output has reached."""
        return self._ring.head

    def take_inputs(self, answers: Answers) -> None:
        """From custody into the PTY; then what waits, in order, as far as there is room."""
        inputs, ledger = self._inputs, self.ledger
        if ledger.untyped:
            self.flush_to_pty()  # first, for it makes room
        while (first := inputs.next(ledger.room())) is not None:
            gated = inputs.gated is not None and first.actor != HOST_ACTOR
            if gated:
                self._gate.keep()
            try:
                # May record what the shell reports, so before anything of this input is.
                sight = self._shell.look_at_shell(first.actor, first.data)
                secret = self._turn.blind or pty.reads_secretly(sight.modes)
                self._put_in_custody(first, sight, secret)
            except HoldfastError as error:
                # It was not typed, so it was not taken: the operator may offer it again.
                answers.refuse(inputs.not_recorded(first), error)
                continue
            whole = inputs.taken(first)
            self.flush_to_pty()
            self._shell.after_typing(first.actor, first.data, sight, secret)
            if whole is not None:
                answers.settled(whole, self._ring.head)
            if gated and whole is not None:
                self._gate.keep()  # nothing of it is left
        if inputs.gated is not None:
            self._gate.look()

    def _put_in_custody(self, first: InputOffered, sight: ShellSight, secret: bool) -> None:
        """In this order: a daemon that dies in between leaves nothing that the next one cannot
        settle (see ARCHITECTURE.md, a key press)."""
        self._stage(first, secret)
        self._shell.before_typing(first.actor, sight)
        self.ledger.take(first.operator, first.seq, first.data)
        self._journal.commit_key(first.seq)

    def _stage(self, first: InputOffered, secret: bool) -> None:
        """Recorded before it is in custody: keys in the burst page, everything else in the file.
        A secret is counted, whichever way it came."""
        journal, data, head = self._journal, first.data, self._ring.head
        if not data:
            return  # what commits comes next
        if first.operator == GATE_OPERATOR:
            self._gate.record_passing(first, secret)
        elif first.form == "keys":
            journal.stage_key(first.actor, first.operator, first.seq, data, secret, head)
            return
        body: entries.Body = entries.BlindInput(first.operator, first.seq, first.seq, len(data))
        if not secret:
            if first.operator != GATE_OPERATOR:  # else it was said with the text before it
                self._record_purpose(first)
            body = entries.InputEntry(first.operator, first.seq, first.seq, first.form, data, head)
        journal.record(first.actor, body)

    def _record_purpose(self, first: InputOffered) -> None:
        """What its actor says of it."""
        if first.intent:
            self._journal.record(first.actor, entries.Intended(first.intent))
        if (action := first.action) is not None:
            asked = first.operator, first.seq, action.declared, action.retried
            self._journal.record(first.actor, entries.ActionEntry(action.id, *asked))

    def taken_before(self, operator: OperatorId, seq: int) -> None:
        """Its inputs up to this one, which came under another name of it."""
        self.ledger.take(operator, seq, b"")
        self._inputs.taken_before(operator, seq)

    def flush_to_pty(self) -> None:
        """From custody into the PTY, as far as it takes it."""
        try:
            done = self.ledger.type_into(self._master)
        except OSError:  # hung up: nobody is left to read it
            done = True
        self._wait_for_room(not done)

    def _wait_for_room(self, wanted: bool) -> None:
        if wanted and not self._waiting:
            self._loop.add_writer(self._master, self._on_room)
        elif not wanted and self._waiting:
            self._loop.remove_writer(self._master)
        self._waiting = wanted

    def pause(self) -> None:
        """Nothing more into the PTY, until `flush_to_pty`. What is in custody stays there."""
        self._wait_for_room(False)
