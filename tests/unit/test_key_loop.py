"""The key loop in C agrees with wire/frames.py, and hands over whatever it does not know."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters import compiled
from holdfast.cli.attach.native_loop import CHOSEN_BY, KeyLoop, find
from holdfast.cli.attach.prefix_keys import PREFIX
from holdfast.model.errors import ProtocolViolation
from holdfast.model.native_builds import KEY_LOOP
from holdfast.model.state import Ending
from holdfast.sdk.client_core.unacked_inputs import UnackedInputs
from holdfast.sdk.connection import Connection
from holdfast.wire.frames import Decoder, encode, output_head, quiet_input
from holdfast.wire.messages import session as m

_BUILT = compiled.build(KEY_LOOP.name)
pytestmark = pytest.mark.skipif(
    not isinstance(_BUILT, Path), reason=f"the key loop cannot be built: {_BUILT}"
)

SESSION, CHANNEL, OFFSET, WINDOW = "s" * 26, 3, 1000, 64 << 10
PATIENCE_S = 20.0


class Client:
    """A client's descriptors and state around the loop; nobody else is there."""

    def __init__(self) -> None:
        self.host, self.sock = socket.socketpair()
        self.host.settimeout(PATIENCE_S)
        self.woken, self.wake = socket.socketpair()
        keys, self.keyboard = os.pipe()
        self.screen, shown = os.pipe()
        os.set_blocking(self.screen, False)
        self.loop = KeyLoop(PREFIX, WINDOW, keys_fd=keys, screen_fd=shown)
        self.loop.load()
        self.untaken = UnackedInputs()
        self.last_id = 0
        self._fds = [keys, self.keyboard, self.screen, shown]

    def fileno(self) -> int:
        return self.sock.fileno()

    def serve(self, offset: int = OFFSET, session: str = SESSION) -> bool:
        connection = cast("Connection", self)
        woken = self.woken.fileno()
        return self.loop.serve(connection, woken, self.untaken, session, CHANNEL, offset)

    def served(self, stream: bytes) -> tuple[bytes, bytes]:
        """What it shows of this and what it hands over; then the host is gone."""
        self.host.sendall(stream)
        self.host.shutdown(socket.SHUT_WR)
        self.serve()
        return self.shown(), self.loop.rest

    def shown(self) -> bytes:
        try:
            return os.read(self.screen, 1 << 16)
        except BlockingIOError:
            return b""

    def until_shown(self, data: bytes) -> None:
        assert select.select([self.screen], [], [], PATIENCE_S)[0] and self.shown() == data

    @contextlib.contextmanager
    def serving(self, session: str = SESSION, *, wake: bool = True) -> Iterator[None]:
        """The loop runs meanwhile, and is called back at the end unless it comes by itself."""
        self.handed_over: bool | None = None

        def run() -> None:
            self.handed_over = self.serve(session=session)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
            if wake:
                self.wake.send(b"!")
        finally:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "the loop does not come back"
            if wake:
                self.woken.recv(1)

    def close_fd(self, fd: int) -> None:
        os.close(fd)
        self._fds.remove(fd)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        for each in (self.host, self.sock, self.woken, self.wake):
            each.close()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()


# -- frames ------------------------------------------------------------------------------------

_numbers = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
_near = st.sampled_from(
    [0, CHANNEL - 1, CHANNEL, CHANNEL, CHANNEL + 1, OFFSET - 1, OFFSET, OFFSET + 1]
)
_other = st.one_of(
    st.builds(m.Output, _near, _near, st.binary(max_size=5)).map(encode),
    st.builds(m.Accepted, _near, _near, _near).map(encode),
    st.builds(m.Accepted, _numbers, _numbers, _numbers, st.booleans()).map(encode),
    st.builds(m.Output, _numbers, _numbers, st.binary(max_size=20)).map(encode),
    st.builds(m.Failed, _numbers, st.text(max_size=5), st.text(max_size=5)).map(encode),
    st.builds(m.Answering, _numbers, st.booleans()).map(encode),
    st.builds(m.Done, _numbers).map(encode),
    st.binary(max_size=30),
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames as a host sends them, mostly the usual ones; then some bytes are not what they were,
    or the end is missing."""
    frames, offset = [], OFFSET
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.integers(0, 3)):
            data = draw(st.binary(max_size=300))
            frames.append(output_head(CHANNEL, offset, len(data)) + data)
            offset += len(data)
        else:
            frames.append(draw(_other))
    stream = bytearray(b"".join(frames))
    for at, byte in draw(
        st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2)
    ):
        if at < len(stream):
            stream[at] = byte
    return bytes(stream[: draw(st.integers(0, 4000))])


def usual(message: m.Message, offset: int) -> bool:
    if isinstance(message, m.Output):
        return message.channel == CHANNEL and message.offset == offset
    return isinstance(message, m.Accepted)


def read_by_python(stream: bytes) -> tuple[list[m.Message], bytes]:
    """The usual messages at the beginning, and the bytes from the first that is not."""
    taken: list[m.Message] = []
    offset = OFFSET
    while len(stream) >= 4:
        size = 4 + int.from_bytes(stream[:4], "big")
        try:
            messages = Decoder().feed(stream[:size])
        except ProtocolViolation:
            break
        if not messages or not usual(messages[0], offset):
            break
        if isinstance(messages[0], m.Output):
            offset += len(messages[0].data)
        taken += messages
        stream = stream[size:]
    return taken, stream


@settings(max_examples=500, deadline=None)
@given(streams())
def test_c_and_python_read_the_same_from_any_bytes(stream: bytes) -> None:
    with contextlib.closing(Client()) as client:
        for number in range(20):
            client.untaken.add(b"%d" % number)
        shown, rest = client.served(stream)
        taken, left = read_by_python(stream)
        # C knows one layout of a message, Python every one: it may stop earlier, never later.
        assert len(rest) >= len(left) and stream.endswith(rest)
        messages = Decoder().feed(stream[: len(stream) - len(rest)])
        assert messages == taken[: len(messages)]
        assert b"".join(each.data for each in messages if isinstance(each, m.Output)) == shown
        assert client.loop.offset == OFFSET + len(shown)
        accepted = max((each.seq for each in messages if isinstance(each, m.Accepted)), default=0)
        assert [seq for seq, _ in client.untaken.all()] == list(range(accepted + 1, 21))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=70_000), max_size=3), st.booleans())
def test_c_takes_all_that_is_usual(pieces: list[bytes], plain: bool) -> None:
    """The property above would hold for a loop that takes nothing."""
    stream, offset = b"", OFFSET
    for piece in (each[:20_000] for each in pieces):
        whole = encode(m.Output(CHANNEL, offset, piece))
        stream += whole if plain else output_head(CHANNEL, offset, len(piece)) + piece
        stream += encode(m.Accepted(1, 2, offset))
        offset += len(piece)
    with contextlib.closing(Client()) as client:
        shown, rest = client.served(stream)
        assert (shown, rest) == (b"".join(each[:20_000] for each in pieces), b"")


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=30).filter(lambda text: len(text.encode()) <= 128),
    st.one_of(st.integers(0, 70_000), st.integers(0, 1 << 40)),
    st.one_of(st.integers(0, 70_000), st.integers(0, 1 << 40)),
    st.binary(min_size=1, max_size=4096).filter(lambda data: PREFIX not in data),
)
def test_a_key_is_sent_in_the_very_frame_that_python_makes(
    session: str, request: int, seq: int, data: bytes
) -> None:
    with contextlib.closing(Client()) as client:
        client.last_id = request
        client.untaken.numbered_to(seq)
        with client.serving(session):
            os.write(client.keyboard, data)
            assert client.host.recv(1 << 16) == quiet_input(request + 1, session, seq + 1, data)
        assert client.untaken.all() == [(seq + 1, data)]
        assert client.last_id == request + 1


@pytest.mark.parametrize("size", [1, 255, 256, 4095, 4096])
def test_keys_of_every_length_are_framed_alike(client: Client, size: int) -> None:
    with client.serving():
        os.write(client.keyboard, b"k" * size)
        assert client.host.recv(1 << 16) == quiet_input(1, SESSION, 1, b"k" * size)


_HEAD = output_head(CHANNEL, OFFSET, 3)
_BODY = b"\x84\xa1t\xa6output\xa7channel\x03\xa6offset\xcd\x03\xe8\xa4data"


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "stream",
    [
        output_head(CHANNEL + 1, OFFSET, 3) + b"abc",
        output_head(CHANNEL, OFFSET - 1, 3) + b"abc",
        output_head(CHANNEL, OFFSET + 1, 3) + b"abc",
        _HEAD + b"ab",
        _HEAD[:3],
        framed(_BODY + b"\xc4\x03ab"),
        framed(_BODY + b"\xc4\x02abc"),
        framed(_BODY + b"\xa3abc"),
        framed(_BODY + b"\xc7" + (3).to_bytes(8, "big") + b"abc"),
        framed(
            _BODY.replace(b"\xcd\x03\xe8", b"\xd0" + OFFSET.to_bytes(16, "big")) + b"\xc4\x03abc"
        ),
        framed(_BODY.replace(b"channel\x03", b"channel\xd0\x03") + b"\xc4\x03abc"),
        framed(_BODY.replace(b"\x84", b"\x85") + b"\xc4\x03abc"),
        framed(b""),
        b"\xff\xff\xff\xff" + _BODY + b"\xc4\x03abc",
        encode(m.Closed(CHANNEL, Ending(code=0))),
    ],
)
def test_what_is_not_just_more_output_is_handed_over_untouched(
    client: Client, stream: bytes
) -> None:
    assert client.served(stream) == (b"", stream)
    assert client.loop.offset == OFFSET


# -- what it leaves behind ---------------------------------------------------------------------


def test_keys_not_yet_taken_are_known_to_python_and_those_taken_are_not(client: Client) -> None:
    with client.serving():
        for key in (b"a", b"b"):
            os.write(client.keyboard, key)
            client.host.recv(100)
        client.host.send(encode(m.Accepted(2, 2, OFFSET)))  # both: nothing is left to remember
        os.write(client.keyboard, b"c")
        client.host.recv(100)
    assert client.untaken.all() == [(3, b"c")]
    assert client.untaken.bytes == 1
    client.untaken.refused(3)  # its request is known too
    assert client.untaken.all() == []


def test_a_key_taken_in_part_of_several_leaves_the_others(client: Client) -> None:
    with client.serving():
        for key in (b"a", b"b", b"c"):
            os.write(client.keyboard, key)
            client.host.recv(100)
        client.host.send(encode(m.Accepted(2, 2, OFFSET)))
        client.host.send(output_head(CHANNEL, OFFSET, 1) + b"!")
        client.until_shown(b"!")
    assert client.untaken.all() == [(3, b"c")]


def test_an_older_acknowledgement_takes_nothing_back(client: Client) -> None:
    with client.serving():
        for key in (b"a", b"b", b"c"):
            os.write(client.keyboard, key)
            client.host.recv(100)
        client.host.send(encode(m.Accepted(2, 2, OFFSET)) + encode(m.Accepted(1, 1, OFFSET)))
        client.host.send(output_head(CHANNEL, OFFSET, 1) + b"!")
        client.until_shown(b"!")
    assert client.untaken.all() == [(3, b"c")]


def test_a_key_that_could_not_be_sent_is_known_all_the_same(client: Client) -> None:
    client.sock.shutdown(socket.SHUT_WR)  # sending fails; nothing else tells of it
    os.write(client.keyboard, b"x")
    assert client.serve() is False
    assert client.untaken.all() == [(1, b"x")]


def test_keys_with_the_prefix_among_them_are_handed_over_unsent(client: Client) -> None:
    os.write(client.keyboard, b"ab\x1cd")
    assert client.serve() is True
    assert client.loop.keys == b"ab\x1cd"
    assert client.untaken.all() == [] and client.untaken.last == 0


def test_it_reads_no_more_keys_than_its_notes_hold(client: Client) -> None:
    expected = []
    for _ in range(3):
        with client.serving(wake=False):
            for number in range(64):
                os.write(client.keyboard, b"%02d" % number)
                client.host.recv(100)
                expected.append(b"%02d" % number)
        assert client.handed_over is True
    assert client.untaken.all() == list(enumerate(expected, 1))


def test_it_stops_reading_keys_at_the_window(client: Client) -> None:
    client.untaken.add(b"x" * (WINDOW - 1))
    with client.serving(wake=False):
        os.write(client.keyboard, b"y")
        client.host.recv(100)
    assert client.handed_over is True and client.untaken.bytes == WINDOW
    os.write(client.keyboard, b"z")
    assert client.serve() is True
    assert client.untaken.last == 2


def test_a_signal_brings_it_back(client: Client) -> None:
    client.wake.send(b"!")
    assert client.serve() is False


@pytest.mark.parametrize("gone", ["host", "keyboard"])
def test_the_end_of_a_descriptor_is_for_python_to_see(client: Client, gone: str) -> None:
    if gone == "host":
        client.host.shutdown(socket.SHUT_RDWR)
    else:
        client.close_fd(client.keyboard)
    assert client.serve() is False


def test_output_that_a_gone_terminal_did_not_take_is_handed_over(client: Client) -> None:
    frame = output_head(CHANNEL, OFFSET, 3) + b"abc"
    client.close_fd(client.screen)
    client.host.send(frame)
    client.serve()
    assert (client.loop.rest, client.loop.offset) == (frame, OFFSET)


def test_it_is_not_loaded_where_python_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOSEN_BY, "python")
    assert find() is None
    loop = KeyLoop(PREFIX, WINDOW)
    loop.load()
    assert not loop.loaded
