"""A key typed by compiled code: what it leaves in memory is what ledger and burst leave, it takes
just the input it was told to take, and gives back everything else."""

from __future__ import annotations

import errno
import os
import pty
import random
import socket
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from holdfast.adapters import compiled
from holdfast.adapters.session_memory.burst_page import BurstPage
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.key_press import Hand, KeyPress, Pressed
from holdfast.adapters.session_memory.output_ring import (
    BURST_AT,
    LEDGER_AT,
    PAGE,
    Ring,
    make_conduit,
)
from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import OperatorId
from holdfast.model.limits import ECHO_DUE_S, RING_MIN_BYTES
from holdfast.model.patience import KEYS_MAX_BYTES
from holdfast.wire.frames import Decoder, encode, quiet_input
from holdfast.wire.messages import session as m

SESSION, ACTOR = "s" * 26, "a" * 26
OPERATOR = OperatorId("0123456789abcdef0011223344556677")
AT = 1_800_000_000.25
_BUILT = compiled.build(compiled.KEY_PRESS)


class Typed:
    """A session's memory, its terminal, and an operator's socket."""

    def __init__(self) -> None:
        self.ring = Ring.create(RING_MIN_BYTES)
        self.ledger = InputLedger(self.ring, make_conduit())
        self.burst = BurstPage(self.ring)
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        os.set_blocking(self.slave, False)
        self.sock, self.client = socket.socketpair()
        self.key_press = KeyPress(self.ring)
        self.ledger.take(OPERATOR, 1, b"1")  # it has a row
        assert self.ledger.type_into(self.master)
        assert os.read(self.slave, 9) == b"1"

    def press(self, frame: bytes, seq: int = 2, look_s: float = 0.0) -> Pressed:
        if frame:
            self.client.sendall(frame)
        return self.receive(seq, look_s)

    def receive(self, seq: int = 2, look_s: float = 0.0) -> Pressed:
        row_at = self.ledger.row_at(OPERATOR)
        hand = Hand(self.sock.fileno(), self.ledger.conduit, SESSION, ACTOR, OPERATOR, row_at)
        assert self.key_press.may_press(hand)
        gathered = self.burst.gathered(ACTOR, OPERATOR)
        self.key_press.aim(hand, self.master, -1, b"", look_s)
        done = self.key_press.press(seq, gathered, AT)
        if done.request >= 0:
            self.burst.pressed(ACTOR, OPERATOR, (gathered or 0) + len(done.data))
            self.ledger.pressed(done.untyped)
        return done

    def the_ordinary_way(self, seq: int, data: bytes) -> None:
        if self.burst.gathered(ACTOR, OPERATOR) is None:
            self.burst.begin(ACTOR, OPERATOR, False, seq, self.ring.head, AT)
        size = self.burst.prepare(ACTOR, OPERATOR, seq, data, False)
        self.ledger.take(OPERATOR, seq, data)
        self.ledger.type_into(self.master)
        self.burst.commit(size, seq)

    def memory(self) -> tuple[bytes, bytes]:
        view = self.ring.view
        return bytes(view[LEDGER_AT:PAGE]), bytes(view[BURST_AT : BURST_AT + PAGE])

    def typed(self) -> bytes:
        try:
            return os.read(self.slave, 4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.ledger.close()
        self.burst.close()
        self.ring.close()
        self.sock.close()
        self.client.close()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def session() -> Iterator[Typed]:
    if not isinstance(_BUILT, Path):
        pytest.skip(f"the key press cannot be built: {_BUILT}")
    made = Typed()
    yield made
    made.close()


def key(data: bytes = b"x", seq: int = 2, request: int = 7, session: str = SESSION) -> bytes:
    return quiet_input(request, session, seq, data)


def packed(fields: object) -> bytes:
    body: bytes = msgpack.packb(fields)
    return len(body).to_bytes(4, "big") + body


def test_a_key_is_typed_and_answered_for(session: Typed) -> None:
    done = session.press(key(b"\x1b[A", request=70_000))
    assert (done.request, done.data, done.untyped) == (70_000, b"\x1b[A", 0)
    assert session.typed() == b"\x1b[A"
    assert session.ledger.last_seq(OPERATOR) == 2


def test_both_ways_leave_the_same_memory(session: Typed) -> None:
    chance, other = random.Random(7), Typed()
    for seq in range(2, 600):
        data = chance.randbytes(chance.randint(1, KEYS_MAX_BYTES))
        assert session.press(key(data, seq), seq).data == data
        other.the_ordinary_way(seq, data)
        assert session.memory() == other.memory(), seq
        assert session.typed() == other.typed() == data
        if chance.random() < 0.2:
            assert session.burst.keys() == other.burst.keys()
            session.burst.clear()
            other.burst.clear()
    other.close()


def test_a_burst_that_is_full_takes_no_more(session: Typed) -> None:
    seq, taken = 1, True
    while taken:
        seq += 1
        taken = session.press(key(b"x" * KEYS_MAX_BYTES, seq), seq).request >= 0
        session.typed()
    keys = session.burst.keys()
    assert keys is not None and PAGE - 128 - KEYS_MAX_BYTES < keys.size <= PAGE - 128


WHOLE = {"t": "input", "id": 7, "session": SESSION, "seq": 2, "data": b"x", "quiet": True}
OTHERS = {
    "another number": key(seq=3),
    "a repeat": key(seq=1),
    "another session": key(session="t" * 26),
    "a longer session": key(session=SESSION + "s"),
    "not quiet": encode(m.Input(7, SESSION, 2, b"x")),
    "quiet is no": packed(WHOLE | {"quiet": False}),
    "quiet is one": packed(WHOLE | {"quiet": 1}),
    "another message": packed(WHOLE | {"t": "submit"}),
    "longer than a key": key(b"x" * (KEYS_MAX_BYTES + 1)),
    "nothing": key(b""),
    "text": packed(WHOLE | {"data": "x"}),
    "a number as text": packed(WHOLE | {"seq": "2"}),
    "a negative number": packed(WHOLE | {"id": -7}),
    "a number with a point": packed(WHOLE | {"seq": 2.0}),
    "one field more": packed(WHOLE | {"more": 1}),
    "one field less": packed({name: WHOLE[name] for name in WHOLE if name != "quiet"}),
    "one field twice": b"\0\0\0\x4b\x86" + packed(WHOLE)[5:-7] + packed({"seq": 2, "a": 1})[5:10],
    "a list": packed([1, 2]),
    "two keys": key() + key(seq=3),
    "half a key": key()[:-3],
    "a length too long": b"\0\0\0\xff" + key()[4:],
    "garbage": b"\xff" * 60,
    "three bytes": b"\0\0\0",
}


@pytest.mark.parametrize("what", OTHERS)
def test_everything_else_is_given_back_untouched(session: Typed, what: str) -> None:
    before, frame = session.memory(), OTHERS[what]
    done = session.press(frame)
    assert (done.request, done.received) == (-1, len(frame))
    assert session.key_press.received(done.received) == frame
    assert session.memory() == before and session.typed() == b""


def test_any_form_of_a_key_is_a_key(session: Typed) -> None:
    """Fields in any order, numbers longer than need be."""
    fields = [msgpack.packb(name) + msgpack.packb(value) for name, value in WHOLE.items()]
    fields[3] = msgpack.packb("seq") + b"\xcf" + (2).to_bytes(8, "big")
    fields[4] = msgpack.packb("data") + b"\xc6\0\0\0\x01x"
    body = b"\x86" + b"".join(reversed(fields))
    assert session.press(len(body).to_bytes(4, "big") + body).request == 7


def test_what_it_takes_is_what_the_ordinary_decoder_reads(session: Typed) -> None:
    """Frames broken at random: one that is taken says the same to both."""
    chance, seq, taken = random.Random(11), 2, 0
    for _ in range(20_000):
        frame = bytearray(key(b"ab", seq))
        for _ in range(chance.randint(1, 2)):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        done = session.press(bytes(frame), seq)
        assert done.received == len(frame)
        if done.request < 0:
            continue
        try:
            (message,) = Decoder().feed(bytes(frame))
        except ProtocolViolation as error:
            pytest.fail(f"taken, but {error}: {frame!r}")
        assert message == m.Input(done.request, SESSION, seq, done.data, True)
        session.typed()
        session.burst.clear()
        seq, taken = seq + 1, taken + 1
    assert taken > 100


def test_a_secret_is_left_to_the_ordinary_way(session: Typed) -> None:
    modes = termios.tcgetattr(session.slave)
    modes[3] = (modes[3] | termios.ICANON) & ~termios.ECHO
    termios.tcsetattr(session.slave, termios.TCSANOW, modes)
    before = session.memory()
    assert session.press(key(b"p")).request == -1
    assert session.memory() == before


def test_a_terminal_that_takes_no_more_leaves_the_key_in_custody(session: Typed) -> None:
    seq, sent, untyped = 1, b"", 0
    while not untyped:
        seq += 1
        data = b"%016d" % seq
        untyped = session.press(key(data, seq), seq).untyped
        sent += data
        session.burst.clear()
    assert len(sent) < 1 << 20
    assert session.ledger.row_at(OPERATOR) == -1, "the next one must wait behind it"
    read = b""
    while read != sent:
        read += session.typed()
        session.ledger.type_into(session.master)


def test_nothing_came_and_the_end_came(session: Typed) -> None:
    session.sock.setblocking(False)
    assert session.receive().received == -errno.EAGAIN
    session.client.shutdown(socket.SHUT_WR)
    assert session.receive().received == 0


def test_its_echo_is_in_the_ring(session: Typed) -> None:
    modes = termios.tcgetattr(session.slave)
    modes[3] |= termios.ECHO
    termios.tcsetattr(session.slave, termios.TCSANOW, modes)
    moved = 0
    for seq in range(2, 12):
        moved += session.press(key(b"e", seq), seq, ECHO_DUE_S).moved
        while session.ring.head < seq - 1:
            moved += session.ring.pump(session.master, PAGE)
    assert moved == 10 and session.ring.copy(0, 10) == b"e" * 10
