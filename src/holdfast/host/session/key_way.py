"""The way of a key press at its shortest: what must hold before it, and what follows from it.

For the one who types all goes on as it did with the last key: same operator, same turn, nothing
waiting. That is judged here before anything is received; the key itself is then received, recorded,
taken, typed and echoed by adapters.key_press. Whatever is unusual goes the ordinary way, through
Operator, core.session and Typist, which would come to the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from holdfast.adapters.session_memory.key_press import RECEIVE_BYTES, Hand, KeyPress, Pressed
from holdfast.core.input_machine import Swift
from holdfast.host.clock import now
from holdfast.model.limits import ECHO_DUE_S

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.live_session import LiveSession
    from holdfast.host.session.output import Reader


class _Armed(NamedTuple):
    """All is judged and prepared for the next key, unless something happens before it comes."""

    operator: OperatorConnection
    swift: Swift
    seq: int
    reader: Reader
    look_s: float
    head: int  # of the output


class KeyWay:
    """Of one session."""

    def __init__(self, live: LiveSession, key_press: KeyPress) -> None:
        self._live = live
        self._key_press = key_press
        self._hand: Hand | None = None
        self._whose: OperatorConnection | None = None
        self._armed: _Armed | None = None

    def receive(self, operator: OperatorConnection) -> bytes | None:
        """What this operator sent, b"" at its end; None when it was a key, and is typed. Raises
        OSError as a socket does."""
        live, at = self._live, now()
        assert operator.id is not None
        armed = self._armed
        if not live.may_act():
            return operator.sock.recv(RECEIVE_BYTES)
        if armed is None or not self._still(armed, operator, at):
            armed = self._arm(operator, at)
        gathered = live.journal.burst.gathered(operator.actor.id, operator.id)
        if armed is None or gathered == -1 or (gathered is None and not live.journal.has_room()):
            return operator.sock.recv(RECEIVE_BYTES)
        done = self._key_press.press(armed.seq, gathered, at)
        if done.request < 0:
            if done.received < 0:
                raise OSError(-done.received, os.strerror(-done.received))
            return self._key_press.received(done.received)
        self._pressed(armed, gathered, done, at)
        self._arm(operator, at)  # while nobody waits for it
        return None

    def _still(self, armed: _Armed, operator: OperatorConnection, at: float) -> bool:
        live, channel = self._live, armed.reader.channel
        if armed.operator is not operator or not live.core.still(armed.swift, at):
            return False
        if live.ring.head != armed.head or not live.output.is_read:
            return False
        if channel is None:
            return True
        reader = armed.reader.operator
        return (
            reader is not None and reader.free_channel() is channel and channel.cursor == armed.head
        )

    def _arm(self, operator: OperatorConnection, at: float) -> _Armed | None:
        live, output = self._live, self._live.output
        self._armed = None
        assert operator.id is not None
        swift, seq = live.core.swift, live.core.next_at_once(operator.id, at)
        hand = self._hand_of(operator)
        if swift is None or seq == 0 or hand is None:
            return None
        if live.core.turn.blind or not live.typist.is_idle:
            return None
        look_s = ECHO_DUE_S if output.echo_due(1) else 0.0
        reader = output.sole_reader()
        self._key_press.aim(hand, live.fds.master, reader.sock, reader.frame_head, look_s)
        self._armed = _Armed(operator, swift, seq, reader, look_s, live.ring.head)
        return self._armed

    def _pressed(self, armed: _Armed, gathered: int | None, done: Pressed, at: float) -> None:
        """What the ordinary way does for a key besides typing it."""
        live, operator = self._live, armed.operator
        assert operator.id is not None
        live.core.took_at_once(operator.id, armed.seq, at)
        live.journal.pressed(operator.actor.id, operator.id, gathered, len(done.data))
        live.typist.pressed(operator.actor.id, done.data, done.untyped, at)
        operator.took_quietly(done.request, armed.seq, armed.head)
        if armed.look_s:
            live.output.answered(done.moved > 0)
        live.output.looked(armed.reader, done.moved, done.sent)

    def _hand_of(self, operator: OperatorConnection) -> Hand | None:
        """None when its keys cannot go this way."""
        assert operator.id is not None
        live = self._live
        row_at = live.typist.ledger.row_at(operator.id)
        if row_at < 0:
            return None
        if self._whose is not operator or self._hand is None or self._hand.row_at != row_at:
            session, conduit = live.spec.id, live.typist.ledger.conduit
            actor, sock = operator.actor.id, operator.sock.fileno()
            hand = Hand(sock, conduit, session, actor, operator.id, row_at)
            self._whose, self._hand = operator, hand if self._key_press.may_press(hand) else None
        return self._hand
