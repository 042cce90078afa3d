"""S1, S3: what one client sends, however wrong, is that client's matter alone."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

from faults.hosting import FaultHost, resident_bytes
from faults.raw_socket import RawSocket, frame, frame_of
from holdfast.model.limits import FRAME_MAX_BYTES, INPUT_MAX_BYTES
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from process.waiting import until

OPERATOR = "0123456789abcdef" * 2
MEMORY_MAX_BYTES = 64 << 20  # by which bad input may raise the daemon's memory, at the most


@pytest.fixture(scope="module")
def session(shared_host: FaultHost) -> str:
    with Host(path=shared_host.socket) as client:
        return client.run(["cat"], name="bystander").id


@pytest.fixture
def unharmed(shared_host: FaultHost, session: str) -> Iterator[FaultHost]:
    """Whatever the test does: the same daemon goes on, and serves others."""
    before = shared_host.daemon_pid()
    assert before is not None
    memory = resident_bytes(before)
    with Host(path=shared_host.socket) as other:
        yield shared_host
        assert shared_host.daemon_pid() == before
        other.send(session, "still here")
        until("it echoes", lambda: "still here" in other.screen(session).text or None)
        assert resident_bytes(before) - memory < MEMORY_MAX_BYTES


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


UNGREETED: dict[str, bytes] = {
    "garbage": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a huge frame length": struct.pack(">I", 0xFFFFFFFF) + b"x" * 1000,
    "a frame one byte over the limit": struct.pack(">I", FRAME_MAX_BYTES + 1),
    "a zero-length frame": struct.pack(">I", 0),
    "a message before hello": frame({"t": "list", "id": 1}),
    "a version nobody speaks": frame({"t": "hello", "versions": [99], "operator": OPERATOR}),
    "no version": frame({"t": "hello", "versions": [], "operator": OPERATOR}),
    "an operator id that is none": frame({"t": "hello", "versions": [1], "operator": "../../x"}),
    "an unknown tag": frame({"t": "sudo"}),
    "a tag that is no text": frame({"t": 7}),
    "a tag that is a list": frame({"t": ["hello"]}),
    "a list": frame([1, 2, 3]),
    "a number": frame(7),
    "nothing": frame(None),
    "keys that are numbers": frame({1: 2}),
    "deep nesting": frame_of(nested(200_000)),
    "a million-element list": frame([0] * 900_000),
    "a million-element list in a field": frame({"t": "hello", "versions": [1] * 900_000}),
    "invalid UTF-8 in a text": frame_of(b"\x82\xa1t\xa5hello\xa8operator\xa4\xff\xfe\xfd\xfc"),
    "an answer": frame({"t": "done", "id": 1}),
    "an extension type": frame_of(b"\xc7\x04\x05abcd"),
    "a map that claims 4 billion entries": frame_of(b"\xdf\xff\xff\xff\xff"),
    "a string that claims 4 gigabytes": frame_of(b"\xdb\xff\xff\xff\xff"),
}


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("data", UNGREETED.values(), ids=UNGREETED.keys())
def test_a_stranger_is_told_why_and_shown_the_door(unharmed: FaultHost, data: bytes) -> None:
    with RawSocket(unharmed.socket, greet=False) as client:
        client.throw(data)
        heard = client.hear_all()
    assert [message.tag for message in heard] == ["failed"]
    assert isinstance(heard[0], m.Failed)
    assert heard[0].code in ("protocol_violation", "version_mismatch"), heard


GREETED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown name": ({"t": "show", "session": "no-such"}, "no_such_session"),
    "an empty name": ({"t": "show", "session": ""}, "no_such_session"),
    "a name with a zero byte": ({"t": "show", "session": "a\0b"}, "no_such_session"),
    "a name of a megabyte": ({"t": "show", "session": "x" * 1_000_000}, "no_such_session"),
    "a path for a name": ({"t": "screen", "session": "../../etc/passwd"}, "no_such_session"),
    "a negative channel": (
        {"t": "attach", "session": "bystander", "channel": -1},
        "invalid_argument",
    ),
    "a since beyond the output": (
        {"t": "attach", "session": "bystander", "channel": 1, "since": 1 << 62},
        "invalid_argument",
    ),
    "a negative since": (
        {"t": "attach", "session": "bystander", "channel": 1, "since": -1},
        "invalid_argument",
    ),
    "a size of nothing": (
        {"t": "resize", "session": "bystander", "size": {"cols": 0, "rows": 0}},
        "invalid_argument",
    ),
    "a size of a football field": (
        {"t": "resize", "session": "bystander", "size": {"cols": 100_000, "rows": 100_000}},
        "invalid_argument",
    ),
    "a negative size at attach": (
        {"t": "attach", "session": "bystander", "channel": 1, "size": {"cols": -5, "rows": 5}},
        "invalid_argument",
    ),
    "an absurd size at run": (
        {"t": "run", "argv": ["cat"], "size": {"cols": 100_000, "rows": 1}},
        "invalid_argument",
    ),
    "an input over the limit": (
        {"t": "input", "session": "bystander", "seq": 1, "data": b"x" * (INPUT_MAX_BYTES + 1)},
        "invalid_argument",
    ),
    "an input numbered zero": (
        {"t": "input", "session": "bystander", "seq": 0, "data": b"x"},
        "invalid_argument",
    ),
    "an input numbered minus one": (
        {"t": "input", "session": "bystander", "seq": -1, "data": b"x"},
        "invalid_argument",
    ),
    "an input numbered beyond 64 bits": (
        {"t": "input", "session": "bystander", "seq": (1 << 64) - 1, "data": b""},
        "",
    ),
    "a key that does not exist": (
        {"t": "keys", "session": "bystander", "seq": 1, "keys": ["Hyper-Q"]},
        "invalid_argument",
    ),
    "a signal that does not exist": (
        {"t": "signal", "session": "bystander", "signal": 900},
        "invalid_argument",
    ),
    "a channel that is not open": ({"t": "detach", "channel": 5}, "invalid_argument"),
    "a ring of nothing": ({"t": "run", "argv": ["cat"], "ring_bytes": 1}, "invalid_argument"),
    "a ring beyond memory": (
        {"t": "run", "argv": ["cat"], "ring_bytes": 1 << 60},
        "invalid_argument",
    ),
    "a negative ring": ({"t": "run", "argv": ["cat"], "ring_bytes": -4096}, "invalid_argument"),
    "a name with a slash": ({"t": "run", "argv": ["cat"], "name": "../x"}, "invalid_argument"),
    "a name with a newline": ({"t": "run", "argv": ["cat"], "name": "a\n"}, "invalid_argument"),
    "a name already taken": ({"t": "run", "argv": ["cat"], "name": "bystander"}, "name_taken"),
    "a zero byte in a command": ({"t": "run", "argv": ["a\0b"]}, "invalid_argument"),
    "an empty command": ({"t": "run", "argv": [""]}, "invalid_argument"),
    "a command that does not exist": ({"t": "run", "argv": ["/no/such"]}, "command_not_found"),
    "a command that is a directory": ({"t": "run", "argv": ["/tmp"]}, "command_not_found"),
    "a directory that does not exist": ({"t": "run", "argv": ["cat"], "cwd": "/no/such"}, "?"),
    "an environment name with =": (
        {"t": "run", "argv": ["cat"], "env": {"A=B": "c"}},
        "invalid_argument",
    ),
    "a command too long": ({"t": "run", "argv": ["cat", "x" * 200_000]}, "limit_reached"),
    "a user that does not exist": (
        {"t": "run", "argv": ["cat"], "user": "nobody-such"},
        "invalid_argument",
    ),
    "an exec without a shell": (
        {"t": "exec", "session": "bystander", "seq": 1, "command": "ls"},
        "no_shell_integration",
    ),
    "a lone surrogate half in a name": ({"t": "show", "session": "caf\u00e9"}, "no_such_session"),
}


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("fields", "code"), GREETED.values(), ids=GREETED.keys())
def test_a_wrong_request_gets_its_typed_error_and_the_connection_goes_on(
    unharmed: FaultHost, fields: dict[str, Any], code: str
) -> None:
    with RawSocket(unharmed.socket) as client, Host(path=unharmed.socket) as other:
        before = {info.id for info in other.sessions()}
        client.throw(frame({**fields, "id": 41}))
        answer = client.hear()
        if code:
            assert isinstance(answer, m.Failed) and answer.id == 41, answer
            assert code in ("?", answer.code) and answer.code != "internal", answer
        client.throw(frame({"t": "list", "id": 42}))
        while not (isinstance(answer, m.Answer) and answer.id == 42):
            answer = client.hear()
        assert {info.id for info in other.sessions()} == before


WRONG_SHAPES: dict[str, dict[str, Any]] = {
    "no id": {"t": "list"},
    "an id that is text": {"t": "list", "id": "1"},
    "an id that is true": {"t": "list", "id": True},
    "a field of another type": {"t": "show", "id": 1, "session": 7},
    "a size that is text": {"t": "resize", "id": 1, "session": "bystander", "size": "80x24"},
    "input that is text": {"t": "input", "id": 1, "session": "x", "seq": 1, "data": "text"},
    "argv that is text": {"t": "run", "id": 1, "argv": "ls"},
    "a level that is none": {"t": "run", "id": 1, "argv": ["ls"], "level": "heavenly"},
    "a second hello": {"t": "hello", "versions": [1], "operator": OPERATOR},
    "a million arguments": {"t": "run", "id": 1, "argv": [7] * 500_000},
}


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("fields", WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
def test_a_message_of_the_wrong_shape_ends_the_connection_with_a_reason(
    unharmed: FaultHost, fields: dict[str, Any]
) -> None:
    with RawSocket(unharmed.socket) as client:
        client.throw(frame(fields))
        heard = client.hear_all()
    assert isinstance(heard[-1], m.Failed) and heard[-1].code == "protocol_violation"


@pytest.mark.requirement("S3")
def test_an_id_beyond_64_bits_or_negative_is_survived(unharmed: FaultHost) -> None:
    for number in (-1, -(1 << 63), (1 << 64) - 1, 0):
        with RawSocket(unharmed.socket) as client:
            client.throw(frame({"t": "list", "id": number}))
            answer = client.hear()
            assert isinstance(answer, m.Sessions) and answer.id == number


@pytest.mark.requirement("S3")
def test_clients_that_leave_in_the_middle_of_a_frame_are_forgotten(unharmed: FaultHost) -> None:
    whole = frame({"t": "submit", "id": 1, "session": "bystander", "seq": 1, "text": "half"})
    for cut in range(1, len(whole), 7):
        with RawSocket(unharmed.socket) as client:
            client.throw(whole[:cut])
    with Host(path=unharmed.socket) as other:
        until("they are gone", lambda: other.show("bystander").operators == 0 or None)
        assert "half" not in other.screen("bystander").text


@pytest.mark.requirement("S3")
@pytest.mark.timeout(60)
def test_a_hundred_thousand_frames_at_once_are_answered_and_hold_nobody_up(
    unharmed: FaultHost,
) -> None:
    count = 100_000
    data = b"".join(frame({"t": "detach", "id": n, "channel": 9}) for n in range(1, count + 1))
    with RawSocket(unharmed.socket) as client, Host(path=unharmed.socket) as other:
        client.sock.setblocking(False)
        sent = heard = 0
        while heard < count:
            must_read = sent == len(data)
            try:
                sent += client.sock.send(data[sent : sent + (64 << 10)])
            except BlockingIOError:
                must_read = True  # the host reads no more until its answers are read
            client.sock.setblocking(True)
            while heard < count and (client._heard or must_read):
                answer = client.hear()
                assert isinstance(answer, m.Failed) and answer.id == heard + 1
                heard += 1
                must_read = sent == len(data)
            client.sock.setblocking(False)
            assert other.show("bystander").id


Mutation = Callable[[random.Random, bytes], bytes]


def flip(chance: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        out[chance.randrange(4, len(out))] = chance.randrange(256)
    return bytes(out)


def cut(chance: random.Random, data: bytes) -> bytes:
    return frame_of(data[4 : chance.randrange(4, len(data))])


def swap_value(chance: random.Random, data: bytes) -> bytes:
    value = msgpack.unpackb(data[4:])
    odd: list[Any] = [None, -1, 1 << 63, 0.5, "", "\0", b"\xff", [], {}, True, [[]], {"a": 1}]
    value[chance.choice(list(value))] = chance.choice(odd)
    return frame(value)


def noise(chance: random.Random, data: bytes) -> bytes:
    return frame_of(chance.randbytes(chance.randrange(64)))


@pytest.mark.requirement("S3")
@pytest.mark.timeout(90)
@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_mutated_frames_do_not_move_the_daemon(unharmed: FaultHost, seed: int) -> None:
    chance = random.Random(seed)
    # Requests that change nothing for others when a mutation leaves them valid.
    valid = [
        frame({"t": "hello", "versions": [1], "operator": OPERATOR, "client": "fuzz"}),
        frame({"t": "list", "id": 1, "ended": True}),
        frame({"t": "show", "id": 2, "session": "bystander"}),
        frame({"t": "attach", "id": 3, "session": "bystander", "channel": 1, "observe": True}),
        frame({"t": "detach", "id": 4, "channel": 1}),
        frame({"t": "screen", "id": 5, "session": "bystander", "scrollback": True}),
        frame({"t": "watch", "id": 6, "session": "bystander"}),
        frame({"t": "graph", "id": 7, "session": "bystander"}),
        frame({"t": "keys", "id": 8, "session": "none", "seq": 1, "keys": ["Enter", "C-c"]}),
        frame({"t": "run", "id": 9, "argv": ["/no/such"], "env": {"A": "B"}, "level": "plain"}),
    ]
    mutations: list[Mutation] = [flip, cut, swap_value, noise]
    for _ in range(100):
        with RawSocket(unharmed.socket, greet=chance.random() < 0.8) as client:
            for _ in range(10):
                client.throw(chance.choice(mutations)(chance, chance.choice(valid)))
    assert "Traceback" not in unharmed.log()
