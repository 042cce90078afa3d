"""The echo of a key: moved as Ring.pump moves it, sent as an ordinary frame, by C and by Python."""

from __future__ import annotations

import os
import pty
import socket
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters import compiled
from holdfast.adapters.session_memory import key_press as module
from holdfast.adapters.session_memory.key_press import KeyPress
from holdfast.adapters.session_memory.output_ring import PAGE, Hangup, Ring
from holdfast.model.limits import ECHO_DUE_S, RING_MIN_BYTES
from holdfast.wire.frames import Decoder, output_head
from holdfast.wire.messages import session as m

CHANNEL = 7
_BUILT = compiled.build(compiled.KEY_PRESS)


class Session:
    """A terminal, its ring, and a reader's socket."""

    def __init__(self) -> None:
        self.ring = Ring.create(RING_MIN_BYTES)
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.sock, self.reader = socket.socketpair()
        for each in (self.sock, self.reader):
            each.setblocking(False)
        self.echo = KeyPress(self.ring)

    def look(self, *, send: bool = True) -> tuple[int, int]:
        head = output_head(CHANNEL, self.ring.head, 0) if send else b""
        reader = self.sock.fileno() if send else -1
        return self.echo.look(self.master, reader, head, ECHO_DUE_S)

    def received(self) -> list[m.Message]:
        try:
            return list(Decoder().feed(self.reader.recv(1 << 16)))
        except BlockingIOError:
            return []

    def close_slave(self) -> None:
        os.close(self.slave)
        self.slave = -1

    def close(self) -> None:
        self.ring.close()
        self.sock.close()
        self.reader.close()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)


@pytest.fixture(params=["native", "python"])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    if request.param == "python":
        monkeypatch.setattr(module, "_library", lambda: None)
    elif not isinstance(_BUILT, Path):
        pytest.skip(f"the echo cannot be built: {_BUILT}")
    made = Session()
    made.look()  # loaded from here on
    assert (made.echo._run is not None) == (request.param == "native")
    yield made
    made.close()


@pytest.fixture
def swift() -> Iterator[Session]:
    if not isinstance(_BUILT, Path):
        pytest.skip(f"the echo cannot be built: {_BUILT}")
    made = Session()
    yield made
    made.close()


def test_what_comes_is_in_the_ring_and_a_new_daemon_finds_it_there(session: Session) -> None:
    for printed in (b"a", b"bc", b"d" * 1000):
        os.write(session.slave, printed)
        assert session.look(send=False) == (len(printed), 0)
    assert session.ring.copy(0, session.ring.head) == b"abc" + b"d" * 1000
    again = Ring(os.dup(session.ring.memfd), os.dup(session.ring.conduit))
    assert (again.head, again._words[2]) == (session.ring.head, session.ring.head)
    again.close()


def test_nothing_comes_and_nothing_happens(session: Session) -> None:
    assert session.look() == (0, 0)
    assert session.ring.head == 0 and session.received() == []


def test_what_comes_a_moment_later_is_seen_too(session: Session) -> None:
    later = threading.Timer(0.00005, os.write, (session.slave, b"x"))
    later.start()
    while session.look(send=False) == (0, 0):
        pass
    later.join()
    assert session.ring.copy(0, 1) == b"x"


def test_a_hangup_is_told_as_the_ring_tells_it(session: Session) -> None:
    session.close_slave()
    with pytest.raises(Hangup):
        session.ring.pump(session.master, PAGE)
    with pytest.raises(Hangup):
        session.look()


def test_it_goes_on_over_the_end_of_the_ring(session: Session) -> None:
    printed = b""
    for number in range(3 * RING_MIN_BYTES // 1000):
        line = (b"%d" % number) * 300
        os.write(session.slave, line[:1000])
        while (moved := session.look(send=False)[0]) == 0:
            pass
        printed += line[:moved]
    assert session.ring.head == len(printed)
    assert session.ring.copy(session.ring.tail, session.ring.head) == printed[-RING_MIN_BYTES:]
    os.write(session.slave, b"!")
    while not session.ring.pump(session.master, PAGE):
        pass
    assert session.ring.copy(session.ring.head - 1, session.ring.head) == b"!"


def test_the_reader_gets_one_ordinary_frame(swift: Session) -> None:
    for printed in (b"a", b"\x1b[31mred", b"z" * 2000):
        start = swift.ring.head
        os.write(swift.slave, printed)
        moved, sent = swift.look()
        assert sent == len(output_head(CHANNEL, start, 0)) + moved
        assert swift.received() == [m.Output(CHANNEL, start, printed)]


def test_output_in_two_pieces_is_left_to_the_caller(swift: Session) -> None:
    os.write(swift.ring.conduit, bytes(RING_MIN_BYTES - 3))
    swift.ring._drain_conduit()
    os.write(swift.slave, b"abcdef")
    assert swift.look() == (6, 0)
    assert swift.received() == []
    assert swift.ring.copy(swift.ring.head - 6, swift.ring.head) == b"abcdef"


def test_a_reader_without_room_costs_nothing_but_the_sending(swift: Session) -> None:
    with pytest.raises(BlockingIOError):
        while True:
            swift.sock.send(bytes(4096))
    os.write(swift.slave, b"kept")
    moved, sent = swift.look()
    assert (moved, sent) == (4, 0)
    assert swift.ring.copy(0, 4) == b"kept"


def test_a_reader_that_is_gone_does_no_harm(swift: Session) -> None:
    swift.reader.close()
    os.write(swift.slave, b"x")
    assert swift.look() == (1, 0)


def test_the_ring_can_be_unmapped_after_looking(swift: Session) -> None:
    swift.look()
    spare = Ring.create(RING_MIN_BYTES)
    KeyPress(spare).look(swift.master, -1, b"", ECHO_DUE_S)
    spare.close()
