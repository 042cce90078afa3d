"""The way of an input that was judged and allowed: recorded, into custody, into the PTY.

One way for all of them. What is typed key by key is gathered for the journal in shared memory
(burst_page.py); everything else is in the journal's file before it is in custody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.adapters import pty
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.core import events as ev
from holdfast.core.input_machine import QueuedInput
from holdfast.host.clock import now
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import HOST_ACTOR, HOST_OPERATOR

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession


class InputCustody:
    """Types into one session, in order, each input once."""

    def __init__(self, live: LiveSession, ledger: InputLedger, host_input_seq: int) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self.ledger = ledger
        self._waiting = False  # for the PTY to take more
        self.host_input_seq = max(host_input_seq, ledger.last_seq(HOST_OPERATOR))
        # Of the last input that an actor gave: who, when, and its last bytes.
        self.last_actor, self.last_input_at, self.last_bytes = HOST_ACTOR, 0.0, b""

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be typed or taken."""
        return not self._waiting and self._live.core.inputs.is_empty

    def type_as_host(self, data: bytes) -> None:
        """Input that no operator sent: an emulator's answer. One ingest for it as for all."""
        core = self._live.core
        if core.ending is None and not core.state.is_stopped:
            self.host_input_seq += 1
            at, seq = now(), self.host_input_seq
            self._live.handle(ev.InputOffered(HOST_ACTOR, at, HOST_OPERATOR, seq, data, "answer"))

    def take_inputs(self) -> None:
        """From custody into the PTY; then what waits, in order, as far as there is room."""
        inputs, ledger = self._live.core.inputs, self.ledger
        if ledger.untyped:
            self.flush_to_pty()  # first, for it makes room
        while (first := inputs.next(ledger.room())) is not None:
            try:
                self._put_in_custody(first)
            except HoldfastError as error:
                # It was not typed, so it was not taken: the operator may offer it again.
                self._live.executor.refuse(inputs.not_recorded(first), error)
                continue
            inputs.taken(first)
            self.flush_to_pty()
            self._live.executor.settled(first, self._live.ring.head)

    def _put_in_custody(self, first: QueuedInput) -> None:
        """In this order: a daemon that dies in between leaves nothing that the next one cannot
        settle (see ARCHITECTURE.md, a key press)."""
        live, actor, data = self._live, first.actor, first.data
        shell = live.commands.typed.look_at_shell(actor, data)  # may record what the shell reports
        secret = self._stage(first)
        live.commands.typed.attribute(actor, data, shell, blind=secret)
        if actor != HOST_ACTOR:
            self.last_actor, self.last_input_at, self.last_bytes = actor, now(), data
        self.ledger.take(first.operator, first.seq, data)
        live.journal.commit_key(first.seq)
        if actor != HOST_ACTOR and (b"\r" in data or b"\n" in data):
            live.commands.enter_typed()

    def _stage(self, first: QueuedInput) -> bool:
        """Recorded before it is in custody: keys in the burst page, everything else in the file.
        A secret is counted, whichever way it came; whether it is one."""
        live, data = self._live, first.data
        secret = live.core.turn.blind or pty.reads_secretly(live.fds.master)
        if first.form == "keys":
            live.journal.stage_key(
                first.actor, first.operator, first.seq, data, secret, live.ring.head
            )
            return secret
        body: entries.Body = entries.BlindInput(first.operator, first.seq, first.seq, len(data))
        if not secret:
            if first.intent:
                live.journal.record(first.actor, entries.Intended(first.intent))
            body = entries.InputEntry(
                first.operator, first.seq, first.seq, first.form, data, live.ring.head
            )
        live.journal.record(first.actor, body)
        return secret

    def flush_to_pty(self) -> None:
        """From custody into the PTY, as far as it takes it."""
        try:
            done = self.ledger.type_into(self._live.fds.master)
        except OSError:  # hung up: nobody is left to read it
            done = True
        self._wait_for_room(not done)

    def _on_room(self) -> None:
        self._live.handle(ev.RoomMade(HOST_ACTOR, now()))

    def _wait_for_room(self, wanted: bool) -> None:
        if wanted and not self._waiting:
            self._loop.add_writer(self._live.fds.master, self._on_room)
        elif not wanted and self._waiting:
            self._loop.remove_writer(self._live.fds.master)
        self._waiting = wanted

    def pause(self) -> None:
        """Nothing more into the PTY, until `flush_to_pty`. What is in custody stays there."""
        self._wait_for_room(False)
