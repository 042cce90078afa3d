"""Channels of any shape: whatever is done to the records, nothing wrong comes out and nothing goes
unnoticed; and whatever bytes come in, only errors of ours come out."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.errors import (
    ChannelBroken,
    HandshakeFailed,
    HoldfastError,
    OutputGap,
    OutputRefused,
)
from holdfast.model.limits import CHANNEL_PATIENCE_S
from holdfast.wire import output_broadcast
from holdfast.wire.channel import Pace
from holdfast.wire.key_agreement import Aead
from holdfast.wire.output_broadcast import HEADER, OutputKey
from holdfast.wire.record_layer import OpenedRecord, RecordKind, Rekeying
from unit.malicious_relay import Host, Line, Operator, check_chain, flipped

payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=8)
# What is done to a sequence: which change, and where.
changes = st.tuples(
    st.sampled_from(["flip", "drop", "repeat", "swap", "cut", "lengthen"]),
    st.integers(0, 1 << 16),
    st.integers(0, 1 << 16),
)


def changed(records: list[bytes], change: tuple[str, int, int]) -> list[bytes]:
    kind, one, two = change
    at, made = one % len(records), list(records)
    if kind == "flip":
        made[at] = flipped(made[at], two)
    elif kind == "drop":
        del made[at]
    elif kind == "repeat":
        made.insert(two % (len(made) + 1), made[at])
    elif kind == "swap":
        other = two % len(made)
        made[at], made[other] = made[other], made[at]
    elif kind == "cut":
        made[at] = made[at][: two % len(made[at])]
    else:
        made[at] += b"\0"
    return made


def stage(records_per_key: int = 1 << 16) -> Line:
    host = Host()
    return Line(host, Operator(host), pace=Pace(rekeying=Rekeying(records_per_key, 1 << 26)))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(payloads, changes, st.sampled_from([1, 2, 5, 1000]))
def test_any_change_to_inputs_on_their_way_is_noticed_and_none_is_read_wrong(
    typed: list[bytes], change: tuple[str, int, int], records_per_key: int
) -> None:
    line = stage(records_per_key)
    line.type(*typed)
    sent, line.up = line.up, changed(line.up, change)
    arriving = list(line.up)
    noticed = False
    try:
        line.deliver()
    except ChannelBroken:
        noticed = True
    assert line.host.typed == typed[: len(line.host.typed)]
    if arriving == sent:
        assert not noticed
        assert line.host.typed == typed
    elif arriving == sent[: len(arriving)]:  # only the end is missing
        with pytest.raises(ChannelBroken):
            line.at_host.sealed.cut()
    else:
        assert noticed
    if arriving != sent:
        with pytest.raises(ChannelBroken):
            line.at_operator.sealed.poll(CHANNEL_PATIENCE_S)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(payloads, changes)
def test_any_change_to_what_the_host_says_is_noticed_and_none_is_read_wrong(
    said: list[bytes], change: tuple[str, int, int]
) -> None:
    line = stage(3)
    sent = [r for each in said for r in line.at_host.seal(RecordKind.MESSAGE, each, 0.0)]
    arriving = changed(sent, change)
    got: list[bytes] = []
    try:
        for record in arriving:
            opened = line.at_operator.receive(record, 0.0)
            if isinstance(opened, OpenedRecord):
                got.append(opened.body)
        noticed = False
    except ChannelBroken:
        noticed = True
    assert got == said[: len(got)]
    assert noticed or arriving == sent[: len(arriving)]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans()), min_size=1, max_size=8), changes)
def test_any_change_to_output_is_noticed_and_none_is_read_wrong(
    shown: list[tuple[bytes, bool]], change: tuple[str, int, int]
) -> None:
    """A frame that does not fit is skipped, as a reader does; one that is missing is not."""
    line = stage()
    line.watch()
    host = line.host.broadcaster
    sent = [host.frame(data, 0.0, sign=sign) for data, sign in shown]
    arriving = changed(sent, change)
    got: list[bytes] = []
    refused = 0
    for frame in arriving:
        try:
            got.append(line.read(frame).data)
        except (OutputRefused, OutputGap):
            refused += 1
    data = [each for each, _ in shown]
    assert got == data[: len(got)]
    if arriving != sent:
        assert refused or len(got) < len(data)
    with contextlib.suppress(HoldfastError):
        line.operator.listener.mark(host.mark(), 1.0)
        line.operator.listener.poll(1.0 + CHANNEL_PATIENCE_S)
    assert line.operator.listener.lost == (len(got) < len(data))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("type"), st.integers(1, 3)),
        st.tuples(st.just("up"), st.integers(1, 4)),
        st.tuples(st.just("down"), st.integers(1, 4)),
        st.tuples(st.just("confirm"), st.just(0)),
        st.tuples(st.just("reconnect"), st.just(0)),
        st.tuples(st.just("late"), st.integers(0, 5)),
    ),
    max_size=30,
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(steps)
def test_however_often_the_line_breaks_no_input_is_doubled_or_moved(
    script: list[tuple[str, int]],
) -> None:
    """Each channel has a stream of its own; of each the host takes a beginning, in order. `late`: a
    relay lets records of older channels through, whenever it likes."""
    host = Host()
    lines = [Line(host, Operator(host))]
    written: dict[str, list[bytes]] = {}
    for step, amount in [*script, ("up", 1000)]:
        line = lines[-1]
        if step == "type":
            for _ in range(amount):
                own = written.setdefault(line.operator.stream.stream, [])
                own.append(b"%d.%d" % (len(lines), len(own)))
                line.type(own[-1])
        elif step == "up":
            while line.up and amount:
                host.receive(line.at_host, line.up.pop(0))
                amount -= 1
        elif step == "down":
            while line.down and amount:
                line.at_operator.receive(line.down.pop(0), 0.0)
                amount -= 1
        elif step == "confirm":
            line.confirm()
        elif step == "reconnect":
            lines.append(Line(host, line.operator))
        else:
            for old in lines[:-1]:
                for record in old.up[:amount]:
                    with contextlib.suppress(ChannelBroken):
                        host.receive(old.at_host, record)
    for stream, payloads in written.items():
        taken = [entry for entry in host.taken if entry.stream == stream]
        assert [entry.payload for entry in taken] == payloads[: len(taken)]
        check_chain(taken)
    last = lines[-1].operator.stream.stream
    assert [e.payload for e in host.taken if e.stream == last] == written.get(last, [])


# -- a short fuzz of everything that reads bytes from outside ------------------------------------

_ROUNDS = 400


def garbage(source: random.Random, like: bytes) -> bytes:
    """Bytes of any kind: made up, or something real that was spoilt."""
    choice = source.randrange(5)
    if choice == 0:
        return source.randbytes(source.randrange(200))
    data = bytearray(like)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(data) + 1)
        if choice == 1:
            data[at : at + 1] = source.randbytes(1)
        elif choice == 2:
            del data[at : at + source.randrange(8)]
        elif choice == 3:
            data[at:at] = source.randbytes(source.randrange(8))
        else:
            data[at:] = bytes(len(data) - at)
    return bytes(data)


def test_handshakes_read_anything_and_fail_as_handshakes() -> None:
    source = random.Random(1)
    host = Host()
    operator = Operator(host)
    for _ in range(_ROUNDS):
        dialling = operator.dial()
        first = dialling.first()
        if (bad := garbage(source, first)) != first:
            with pytest.raises(HandshakeFailed):
                host.answer(bad)
        answer, _ = host.answer(first)
        if (bad := garbage(source, answer)) != answer:
            with pytest.raises(HandshakeFailed):
                dialling.finish(bad, 0.0)


def test_a_peer_that_has_the_keys_and_speaks_nonsense_gets_errors_of_ours() -> None:
    """Past the seal: an operator, or a host, that is itself the attacker."""
    source = random.Random(2)
    host = Host()
    operator = Operator(host)
    line = Line(host, operator)
    for _ in range(_ROUNDS):
        if source.randrange(8) == 0:
            operator = Operator(host)
            line = Line(host, operator)
        real = bytes([source.choice(list(RecordKind))]) + source.randbytes(source.randrange(100))
        plain = garbage(source, real)
        with contextlib.suppress(HoldfastError):
            line.at_host.receive(line.at_operator.sealed._out.cipher.seal(plain), 0.0)
        with contextlib.suppress(HoldfastError):
            line.at_operator.receive(line.at_host.sealed._out.cipher.seal(plain), 0.0)
    assert host.typed == []


def test_a_first_message_of_nonsense_inside_a_good_handshake_is_refused() -> None:
    source = random.Random(3)
    host = Host()
    for _ in range(_ROUNDS // 2):
        operator = Operator(host)
        dialling = operator.dial()
        noise = dialling._noise
        with contextlib.suppress(HoldfastError):
            host.answer(b"\x01" + noise.write(garbage(source, bytes([1]) + bytes(120))))


def test_output_readers_take_anything_and_show_only_what_fits() -> None:
    source = random.Random(4)
    host = Host()
    line = Line(host, Operator(host))
    line.watch()
    told = OutputKey.decode(host.broadcaster.join("insider"))
    aead = Aead(told.key)
    frame = host.broadcaster.frame(b"real", 0.0, sign=True)
    for _ in range(_ROUNDS):
        bad = garbage(source, frame)
        if source.randrange(2):  # one who has the key, and seals nonsense with it
            header = garbage(source, frame[: HEADER.size])[: HEADER.size].ljust(HEADER.size, b"\0")
            seq = HEADER.unpack(header)[3]
            bound = output_broadcast.bound(line.operator.session, header)
            bad = header + aead.seal(output_broadcast.nonce(seq), source.randbytes(70), bound)
        listener = line.operator.listener
        if bad != frame:
            with contextlib.suppress(HoldfastError):
                assert listener.open(bad, 0.0).provisional
        for read in (listener.take_key, listener.mark):
            with contextlib.suppress(HoldfastError):
                read(source.randbytes(source.randrange(100)), 0.0)
        if listener.lost or listener._seq != told.seq:
            line = Line(host, Operator(host))
            line.operator.listener._floor.highest = told.epoch
            line.operator.listener.take_key(told.encoded(), 0.0)
    assert line.read(frame).data == b"real"
