"""Whatever bytes reach the decoders and handshakes of what comes through a relay: they give what
they should, or say in one of our own errors that it is none. From one seed, for a short while."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.wire import relay_messages as r
from holdfast.wire.channel import HostHandshake, OperatorHandshake
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.output_broadcast import Broadcaster
from holdfast.wire.output_listener import Listener
from holdfast.wire.request_classes import body_of, fields_of
from holdfast.wire.stream_opening import Opening, read_opening
from unit.malicious_relay import EPOCH, SESSION, Host, Line, Operator, fresh

SEED = 20_270_402
ROUNDS = 1500
ONE_S = 1.0  # of CPU for one of them; a hundred times what any takes
LONGEST_BYTES = 128 << 10


class Fuzz:
    """Spoils what is right, and makes up the rest."""

    def __init__(self, seed: int = SEED) -> None:
        self.chance = random.Random(seed)

    def of(self, right: bytes) -> bytes:
        chance, spoiled = self.chance, bytearray(right)
        roll = chance.random()
        if roll < 0.1:
            return chance.randbytes(chance.choice([0, 1, 7, 60, 300, LONGEST_BYTES]))
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            at = chance.randrange(len(spoiled) + 1)
            how = chance.randrange(5)
            if how == 0 and spoiled:
                spoiled[at % len(spoiled)] ^= 1 << chance.randrange(8)
            elif how == 1 and spoiled:
                spoiled[at % len(spoiled)] = chance.choice([0, 0x7F, 0x80, 0xC1, 0xDD, 0xDF, 0xFF])
            elif how == 2:
                del spoiled[at:]
            elif how == 3:
                spoiled[at:at] = chance.randbytes(chance.choice([1, 4, 40]))
            else:
                spoiled[at:at] = spoiled[: chance.randrange(len(spoiled) + 1)]
        return bytes(spoiled[:LONGEST_BYTES])

    def nested(self) -> bytes:
        """What costs a careless reader its stack or its memory."""
        return self.chance.choice([b"\x91", b"\x81\xa1t", b"\xdd\xff\xff\xff\xff"]) * (
            self.chance.choice([1, 1000, 20_000])
        )


def survives(decode: Callable[[bytes], object], pieces: list[bytes]) -> int:
    """How many were taken; the rest was refused by name, each in time."""
    taken = 0
    for piece in pieces:
        began = time.thread_time()  # others may have the CPU for as long as they like
        try:
            decode(piece)
            taken += 1
        except HoldfastError:
            pass
        assert time.thread_time() - began < ONE_S, piece[:100].hex()
    return taken


@pytest.mark.requirement("R4")
def test_openings() -> None:
    fuzz = Fuzz()
    right = [each.encoded() + b"message" for each in (Opening(), Opening(SESSION))]
    right.append(Opening(invite=bytes(8)).encoded())
    pieces = [fuzz.of(fuzz.chance.choice(right)) for _ in range(ROUNDS)]
    assert survives(read_opening, [*right, *pieces]) >= len(right)


@pytest.mark.requirement("R4")
def test_requests() -> None:
    fuzz = Fuzz()
    right = [
        body_of({"t": "input", "id": 1, "session": SESSION, "seq": 1, "data": b"x" * 40}),
        body_of({"t": "list", "id": 1, "ended": True}),
        body_of({"t": "hello", "versions": [1], "operator": "ab" * 16, "client": "c"}),
    ]
    pieces = [fuzz.of(fuzz.chance.choice(right)) for _ in range(ROUNDS)]
    pieces += [fuzz.nested() for _ in range(20)]
    assert survives(fields_of, [*right, *pieces]) >= len(right)


@pytest.mark.requirement("R4")
def test_messages_of_a_relay() -> None:
    fuzz = Fuzz()
    right = [
        r.encode(message)
        for message in (
            r.Challenge((1,), bytes(32)),
            r.Greeted(1, 1 << 17, 1 << 18, 1 << 18),
            r.Announce(1, (r.Announced(bytes(32), 1, bytes(64)),)),
            r.Registered(1, (r.AnnounceRefusal(SESSION, "fenced", 2),)),
            r.Open(1, b"", SESSION),
            r.StreamOpened(1, 2, bytes(32), 1, bytes(32), bytes(64), bytes(32), bytes(64)),
            r.StreamData(1, bytes(60)),
            r.Broadcast(SESSION, 1, bytes(60)),
            r.BroadcastGap(SESSION, 1, 2),
            r.StreamClosed(1, r.Why.MOVED),
            r.RelayFailed(1, "no_such_session", "text", "hint", 1.0),
        )
    ]
    pieces = [fuzz.of(fuzz.chance.choice(right)) for _ in range(ROUNDS * 2)]
    pieces += [fuzz.nested() for _ in range(20)]
    assert survives(r.decode, [*right, *pieces]) >= len(right)


@pytest.mark.requirement("R4")
def test_both_ends_of_a_handshake() -> None:
    fuzz, host = Fuzz(), Host()
    operator = Operator(host)
    psk = fresh()

    def answer(message: bytes) -> object:
        incarnation = Incarnation(SESSION, EPOCH)
        invited = fuzz.chance.random() < 0.3
        return HostHandshake(
            incarnation, host.keys.static, KeyPair(fresh()), message, psk=psk if invited else b""
        )

    first = operator.dial().first()
    assert survives(answer, [first]) == 1
    pieces = [fuzz.of(first) for _ in range(ROUNDS // 3)]
    assert survives(answer, pieces) <= sum(piece == first for piece in pieces)

    dialling: list[OperatorHandshake] = []

    def finish(message: bytes) -> object:
        return dialling.pop().finish(message, 0.0)

    for _ in range(ROUNDS // 3):
        dialling.append(Operator(host).dial())
        said, _ = host.answer(dialling[-1].first())
        spoiled = fuzz.of(said)
        assert survives(finish, [spoiled]) == (spoiled == said)


@pytest.mark.requirement("R4")
def test_records_of_a_channel_that_stands() -> None:
    fuzz, host = Fuzz(), Host()
    for _ in range(ROUNDS // 5):
        line = Line(host, Operator(host))
        right = line.at_operator.write(b"typed", 0.0)[0]  # after the first beat, which is not sent
        assert survives(_now(line.at_host.receive), [fuzz.of(right)]) == 0
    assert host.taken == []


@pytest.mark.requirement("R4")
def test_output_for_all() -> None:
    fuzz, host = Fuzz(), Host()
    for _ in range(ROUNDS // 30):
        broadcaster = Broadcaster(Incarnation(SESSION, EPOCH), host.keys.sign, fresh(), 0.0)
        listener = Listener(SESSION, host.keys.device.key, EpochFloor())
        key = broadcaster.join("reader")
        listener.take_key(key, 0.0)
        frames = [broadcaster.frame(b"output", 0.0, sign=n % 3 == 0) for n in range(6)]
        bodies = [broadcaster.mark(), broadcaster.rotate(fresh(), 0.0)["reader"], key]
        survives(_now(listener.open), [fuzz.of(frame) for frame in frames])
        for take in (listener.take_key, listener.mark):
            survives(_now(take), [fuzz.of(body) for body in bodies])
            survives(listener.is_early, [fuzz.of(frame) for frame in frames])
        survives(_now(listener.open), frames)


def _now(take: Callable[[bytes, float], object]) -> Callable[[bytes], object]:
    return lambda piece: take(piece, 0.0)
