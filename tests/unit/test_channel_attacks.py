"""What a relay, alone or with an operator's help, can do to a channel: nothing that goes unseen.

The first fourteen are the attacks that the design was tried against; each is refused with an error
of its kind, and nothing of what was attacked takes effect.
"""

from __future__ import annotations

import pytest

from holdfast.model.errors import (
    BadSignature,
    ChannelBroken,
    Fenced,
    HandshakeFailed,
    InputUnknown,
    InvalidArgument,
    JournalDamaged,
    NotPermitted,
    OutputGap,
    OutputRefused,
)
from holdfast.model.ids import OperatorId
from holdfast.model.limits import CHANNEL_PATIENCE_S
from holdfast.wire import output_broadcast
from holdfast.wire.channel import HostHandshake
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.output_broadcast import HEADER
from holdfast.wire.record_layer import BODY_MAX_BYTES, RecordKind
from holdfast.wire.signed_input import Mark, genesis
from unit.malicious_relay import (
    EPOCH,
    OTHER_SESSION,
    SESSION,
    Host,
    Keys,
    Line,
    Operator,
    check_chain,
    flipped,
    forged,
    fresh,
    stage,
)


def test_a_repeated_record_is_refused() -> None:
    line = stage()
    line.type(b"a")
    line.deliver()
    with pytest.raises(ChannelBroken):
        line.host.receive(line.at_host, line.carried[-1])
    assert line.host.typed == [b"a"]


@pytest.mark.parametrize("order", [(1,), (1, 0), (0, 2), (2, 1, 0)])
def test_a_dropped_or_moved_record_is_refused_at_the_next(order: tuple[int, ...]) -> None:
    line = stage()
    line.type(b"0", b"1", b"2")
    line.up = [line.up[index] for index in order]
    with pytest.raises(ChannelBroken):
        line.deliver()
    assert line.host.typed in ([], [b"0"])


def test_a_flipped_bit_is_refused() -> None:
    line = stage()
    line.type(b"a")
    line.up = [flipped(line.up[0], 43)]
    with pytest.raises(ChannelBroken):
        line.deliver()
    assert line.host.typed == []


def test_an_input_of_one_who_may_only_watch_is_refused_when_it_comes() -> None:
    line = stage(writes=False)
    line.type(b"a")
    with pytest.raises(NotPermitted):
        line.deliver()
    line.host.writers.add(line.operator.keys.device.key.hex())
    line.type(b"b")  # it is a refusal, not the end: what was granted meanwhile counts
    line.deliver()
    assert line.host.typed == [b"b"]
    line.host.writers.clear()
    line.type(b"c")
    with pytest.raises(NotPermitted):
        line.deliver()


def test_a_relay_in_the_place_of_the_host_is_refused() -> None:
    host = Host()
    operator, evil = Operator(host), Host()
    dialling = operator.dial()
    with pytest.raises(HandshakeFailed):  # it cannot read what is for the host
        evil.answer(dialling.first())
    another = Operator(evil)
    answer, _ = evil.answer(another.dial().first())
    with pytest.raises(HandshakeFailed):  # nor answer as the host
        dialling.finish(answer, 0.0)


def test_a_repeated_first_message_has_no_effect_and_leads_nowhere() -> None:
    line = stage()
    line.type(b"a")
    line.deliver()
    before = dict(line.host.book.marks)
    _, ghost = line.host.answer(line.first)
    assert not ghost.confirmed
    assert dict(line.host.book.marks) == before
    for record in (*line.carried, fresh() * 3):
        with pytest.raises(ChannelBroken):
            line.host.receive(ghost, record)
    line.type(b"b")  # and the real channel is not disturbed
    line.deliver()
    assert line.host.typed == [b"a", b"b"]


def test_a_handshake_for_one_session_is_refused_by_another_of_the_same_host() -> None:
    host = Host()
    first = Operator(host).dial().first()
    with pytest.raises(HandshakeFailed):
        Host(host.keys, OTHER_SESSION).answer(first)


def test_an_input_of_one_actor_is_refused_as_anothers() -> None:
    line = stage()
    thief = Line(line.host, Operator(line.host))
    line.type(b"rm -rf build")
    line.deliver()
    stolen = line.host.taken[-1]
    thief.up = thief.at_operator.sealed.seal(RecordKind.INPUT, stolen.body(), 0.0)
    with pytest.raises(BadSignature):
        thief.deliver()
    assert len(line.host.taken) == 1


def test_a_record_of_inputs_that_was_edited_is_refused_by_anybody() -> None:
    line = stage()
    line.type(b"ls", b"make", b"make install")
    line.deliver()
    one, two, three = line.host.taken
    assert check_chain([one, two, three]) == line.host.book.marks[two.key, two.stream]
    edits: list[dict[str, object]] = [
        {"payload": b"rm"}, {"seq": 9}, {"epoch": EPOCH + 1}, {"session": OTHER_SESSION},
        {"channel": fresh()}, {"key": Keys().device.key}, {"signature": one.signature},
        {"prev": fresh()}, {"stream": OperatorId("0" * 32)},
    ]  # fmt: skip
    for edit in edits:
        with pytest.raises(BadSignature):  # none of what is signed can be changed,
            two.replace(**edit).check()
        for entries in ([one, two.replace(**edit), three], [one, two.replace(**edit)]):
            with pytest.raises((BadSignature, JournalDamaged)):  # in the middle or at the end
                check_chain(entries)
    for spoilt in ([one, three], [two, one, three], [one, one, two], [two, three]):
        with pytest.raises(JournalDamaged):
            check_chain(spoilt)


def test_a_record_of_inputs_does_not_go_back_to_an_earlier_epoch() -> None:
    line = stage()
    line.type(b"ls")
    line.deliver()
    (one,) = line.host.taken
    back = one.replace(epoch=EPOCH - 1, seq=2, prev=one.head(), signature=b"")
    back = back.replace(signature=line.operator.keys.sign(back.text()))
    back.check()
    with pytest.raises(JournalDamaged):
        check_chain([one, back])


def test_two_clients_of_one_actor_count_separately() -> None:
    line = stage()
    other = Line(line.host, Operator(line.host, line.operator.keys))
    line.type(b"a1", b"a2")
    other.type(b"b1")
    other.deliver()
    line.deliver()
    other.type(b"b2")
    other.deliver()
    assert line.host.typed == [b"b1", b"a1", b"a2", b"b2"]


def test_an_actor_with_many_clients_makes_only_its_own_oldest_forgotten() -> None:
    line = stage()
    line.type(b"1")
    line.deliver()
    many = Keys()
    for _ in range(70):
        Line(line.host, Operator(line.host, many))
    assert sum(key == many.device.key for key, _ in line.host.book.marks) == 64
    line.type(b"2")
    line.deliver()
    assert line.host.typed == [b"1", b"2"]


def test_a_host_that_knows_inputs_of_a_new_stream_is_refused() -> None:
    line = stage()
    dialling = line.operator.dial()
    key, stream = line.operator.keys.device.key, line.operator.stream.stream
    line.host.book.marks[key, stream] = Mark(1, fresh())
    answer, _ = line.host.answer(dialling.first())
    with pytest.raises(InputUnknown):
        dialling.finish(answer, 0.0)


def test_a_stream_that_another_channel_went_on_with_is_not_taken_up() -> None:
    line = stage()
    stream = line.operator.stream
    dialling = line.operator.dial(stream)
    answer, at_host = line.host.answer(dialling.first())  # says: none taken
    channel = dialling.finish(answer, 0.0)
    line.type(b"1")
    line.deliver()
    with pytest.raises(ChannelBroken):
        line.host.receive(at_host, channel.sealed.poll(0.0)[0])
    assert line.host.typed == [b"1"]


def test_inputs_of_a_stream_come_through_its_latest_channel_only() -> None:
    line = stage()
    again = line.operator.dial(line.operator.stream)
    answer, at_host = line.host.answer(again.first())
    line.host.receive(at_host, again.finish(answer, 0.0).sealed.poll(0.0)[0])
    line.type(b"late")
    with pytest.raises(ChannelBroken):
        line.deliver()
    assert line.host.typed == []


def test_an_operator_goes_to_no_incarnation_older_than_one_it_knows_and_says_so() -> None:
    line = stage()
    Line(Host(line.host.keys, epoch=EPOCH + 1), line.operator)
    with pytest.raises(Fenced):  # the host learns it from the first message
        line.host.answer(line.operator.dial().first())
    operator = Operator(line.host)
    dialling = operator.dial()
    answer, _ = line.host.answer(dialling.first())
    operator.floor.rise(EPOCH + 1)  # learnt elsewhere, while the answer was on its way
    with pytest.raises(Fenced):
        dialling.finish(answer, 0.0)


def test_no_two_streams_begin_alike() -> None:
    key, stream = fresh(), OperatorId(fresh()[16:].hex())
    places = [
        (SESSION, key, stream), (OTHER_SESSION, key, stream), (SESSION, fresh(), stream),
        (SESSION, key, OperatorId(fresh()[16:].hex())),
    ]  # fmt: skip
    assert len({genesis(*place) for place in places}) == len(places)


def test_an_actor_that_leaves_out_a_number_is_refused() -> None:
    line = stage()
    entry = line.operator.stream.signed(b"a", line.at_operator.sealed.hash)
    skipped = entry.replace(seq=2)
    skipped = skipped.replace(signature=line.operator.keys.sign(skipped.text()))
    line.up = line.at_operator.sealed.seal(RecordKind.INPUT, skipped.body(), 0.0)
    with pytest.raises(ChannelBroken):
        line.deliver()


def test_an_input_that_is_said_to_be_something_else_is_none() -> None:
    line = stage()
    entry = line.operator.stream.signed(b"a", line.at_operator.sealed.hash)
    with pytest.raises(ChannelBroken):
        line.at_host.receive(
            sealed_by_operator(line, bytes([RecordKind.OUTPUT_MARK]) + entry.body()), 0.0
        )


def test_a_fenced_incarnation_takes_no_input_and_no_channel() -> None:
    line = stage()
    line.host.incarnation.fence()
    line.type(b"a")
    with pytest.raises(Fenced):
        line.deliver()
    first = line.operator.dial().first()
    with pytest.raises(Fenced):  # it does not even read who is there,
        HostHandshake(line.host.incarnation, line.host.keys.static, KeyPair(fresh()), first)
    other = Host()
    operator = Operator(other)
    asked = HostHandshake(
        other.incarnation, other.keys.static, KeyPair(fresh()), operator.dial().first()
    )
    other.incarnation.fence()
    with pytest.raises(Fenced):  # nor answers if the lease went meanwhile
        asked.answer(other.book, other.judge, 0.0)
    assert line.host.typed == []


def test_a_fenced_incarnation_makes_no_output_and_an_old_ones_is_refused() -> None:
    line = stage()
    line.watch()
    old = line.host.broadcaster.frame(b"stale", 0.0, sign=True)
    line.host.incarnation.fence()
    with pytest.raises(Fenced):
        line.host.broadcaster.frame(b"x", 0.0)
    successor = Line(Host(line.host.keys, epoch=EPOCH + 1), line.operator)
    with pytest.raises(Fenced):
        line.read(old)
    key = line.host.broadcaster.join("x")
    with pytest.raises(Fenced):
        line.operator.listener.take_key(key, 0.0)
    with pytest.raises(Fenced):
        line.operator.listener.mark(line.host.broadcaster.mark(), 0.0)
    successor.watch()
    assert line.read(successor.host.broadcaster.frame(b"new", 0.0, sign=True)).data == b"new"


def test_a_repeated_frame_of_output_is_refused() -> None:
    line = stage(writes=False)
    line.watch()
    one, two = (line.host.broadcaster.frame(data, 0.0, sign=True) for data in (b"1", b"2"))
    assert line.read(one).data == b"1"
    with pytest.raises(OutputRefused):
        line.read(one)
    assert line.read(two).data == b"2"


def test_output_made_up_by_another_reader_is_refused_or_provisional_until_it_is_found_out() -> None:
    line = stage()
    line.watch()
    with pytest.raises(BadSignature):
        line.read(forged(line, b"evil", sign=True))
    line = stage()
    line.watch()
    shown = line.read(forged(line, b"evil"))
    assert (shown.provisional, shown.settled) == (True, 0)
    real = line.host.broadcaster.frame(b"real", 0.0)
    with pytest.raises(OutputRefused):
        line.read(real)
    with pytest.raises(BadSignature):
        line.read(line.host.broadcaster.frame(b"signed", 0.0, sign=True))
    assert line.operator.listener.lost
    line.watch()  # the host says where to go on
    assert not line.read(line.host.broadcaster.frame(b"on", 0.0, sign=True)).provisional


def test_one_who_left_cannot_open_what_comes_after() -> None:
    line = stage()
    stays = Line(line.host, Operator(line.host, writes=False))
    line.watch()
    stays.watch()
    told = line.host.broadcaster.leave(line.operator.name, fresh(), 0.0)
    assert set(told) == {stays.operator.name}
    frame = line.host.broadcaster.frame(b"secret", 0.0, sign=True)
    stays.tell(told)
    line.tell(told)
    with pytest.raises(OutputRefused):
        line.read(frame)
    aead = line.operator.listener._keys[1][1]  # the key itself, past all rules of the reader
    seq = HEADER.unpack_from(frame)[3]
    bound = output_broadcast.bound(line.operator.session, frame[: HEADER.size])
    assert aead.open(output_broadcast.nonce(seq), frame[HEADER.size :], bound) is None
    assert stays.read(frame).data == b"secret"


# -- what is held back --------------------------------------------------------------------------


def test_inputs_held_back_at_the_end_are_noticed_by_the_operator_within_its_patience() -> None:
    line = stage()
    line.type(b"last words", now=1.0)
    line.up.clear()  # held back; everything from the host arrives
    now = 1.0
    with pytest.raises(ChannelBroken, match="not confirmed"):
        for _ in range(20):
            now = line.at_operator.sealed.wake_at()
            line.down += line.at_host.sealed.poll(min(now, 14.0))
            line.at_operator.sealed.poll(now)
            line.deliver(now)
    assert now == 1.0 + CHANNEL_PATIENCE_S or now == CHANNEL_PATIENCE_S
    with pytest.raises(ChannelBroken):
        line.type(b"more")  # and it is not sent later by itself: whoever typed it was told
    assert line.host.typed == []


def test_a_host_that_hears_nothing_any_more_notices() -> None:
    line = stage()
    line.at_host.sealed.poll(CHANNEL_PATIENCE_S - 0.01)
    with pytest.raises(ChannelBroken, match="nothing was heard"):
        line.at_host.sealed.poll(CHANNEL_PATIENCE_S)


def test_what_is_held_back_before_a_later_record_is_noticed_at_that_record() -> None:
    line = stage()
    line.type(b"held")
    line.up.clear()
    line.beat(5.0)
    with pytest.raises(ChannelBroken):
        line.deliver(5.0)


def test_a_channel_that_only_beats_lives_on() -> None:
    line = stage()
    for tick in range(1, 400):
        line.beat(tick * 0.5)
        line.deliver(tick * 0.5)
    assert len(line.carried) < 100  # and says little


def test_the_end_is_said_and_an_end_that_is_not_is_noticed() -> None:
    line = stage()
    line.up += line.at_operator.sealed.finish(1.0)
    line.deliver(1.0)
    line.at_host.sealed.cut()
    with pytest.raises(ChannelBroken):
        line.at_operator.sealed.cut()
    line = stage()
    line.type(b"a")
    line.up.clear()
    with pytest.raises(ChannelBroken, match="cut off"):
        line.at_host.sealed.cut()


def test_nothing_comes_after_the_end() -> None:
    line = stage()
    line.up += line.at_operator.sealed.finish(1.0)
    line.deliver(1.0)
    with pytest.raises(ChannelBroken):
        line.type(b"a")
    beat = bytes([RecordKind.ALIVE]) + bytes(8)
    with pytest.raises(ChannelBroken, match="after the peer had announced its end"):
        line.at_host.receive(sealed_by_operator(line, beat), 1.0)


def sealed_by_operator(line: Line, plain: bytes) -> bytes:
    """A record that opens, by an operator that does not keep to the rules."""
    return line.at_operator.sealed._out.cipher.seal(plain)


@pytest.mark.parametrize(
    "plains",
    [
        [b""],
        [bytes([RecordKind.ALIVE])],
        [bytes([RecordKind.ALIVE]) + (2).to_bytes(8)],  # it has more than was sent
        [bytes([RecordKind.ALIVE | 0x80]) + bytes(8)],
        [bytes([RecordKind.REKEY, 0])],
        [bytes([RecordKind.REKEY | 0x80])],
        [bytes([RecordKind.FIN, 0])],
        [bytes([RecordKind.FIN | 0x80])],
        [bytes([99])],
        [bytes([RecordKind.ACCEPTED]) + bytes(8)],  # only a host says so
        [bytes([RecordKind.INPUT]) + bytes(71)],
        [bytes([RecordKind.MESSAGE | 0x80]) + bytes(100)],  # goes on, but is not full
        [
            bytes([RecordKind.INPUT | 0x80]) + bytes(BODY_MAX_BYTES),
            bytes([RecordKind.MESSAGE]) + bytes(80),
        ],
        [bytes([RecordKind.MESSAGE | 0x80]) + bytes(BODY_MAX_BYTES), bytes([RecordKind.FIN])],
    ],
    ids=lambda plains: plains[-1][:2].hex() + f"-{len(plains[-1])}",
)
def test_a_peer_that_breaks_the_rules_of_records_ends_its_channel(plains: list[bytes]) -> None:
    line = stage()
    *before, last = plains
    for plain in before:
        assert line.at_host.receive(sealed_by_operator(line, plain), 0.0) is None
    with pytest.raises(ChannelBroken):
        line.at_host.receive(sealed_by_operator(line, last), 0.0)
    with pytest.raises(ChannelBroken):
        line.at_host.sealed.poll(0.0)


@pytest.mark.parametrize("body", [b"", bytes(7), (2).to_bytes(8)])
def test_a_host_cannot_accept_what_was_not_sent(body: bytes) -> None:
    line = stage()
    line.type(b"a")
    line.down = line.at_host.seal(RecordKind.ACCEPTED, body, 0.0)
    with pytest.raises(ChannelBroken):
        line.at_operator.receive(line.down[0], 0.0)


def test_a_host_that_cannot_be_sure_of_the_operator_yet_says_nothing() -> None:
    line = stage()
    _, unconfirmed = line.host.answer(line.operator.dial().first())
    with pytest.raises(InvalidArgument):
        unconfirmed.seal(RecordKind.MESSAGE, b"secret", 0.0)


def test_output_held_back_at_the_end_is_noticed_by_the_mark() -> None:
    line = stage()
    line.watch()
    line.read(line.host.broadcaster.frame(b"1", 0.0, sign=True))
    line.host.broadcaster.frame(b"2", 0.0, sign=True)  # never carried
    line.down += line.at_host.seal(RecordKind.OUTPUT_MARK, line.host.broadcaster.mark(), 5.0)
    line.deliver(5.0)
    listener = line.operator.listener
    listener.poll(5.0 + CHANNEL_PATIENCE_S - 0.01)
    with pytest.raises(OutputGap):
        listener.poll(5.0 + CHANNEL_PATIENCE_S)


def test_a_missing_frame_of_output_is_noticed_and_the_host_says_where_to_go_on() -> None:
    line = stage()
    line.watch()
    line.host.broadcaster.frame(b"dropped", 0.0, sign=True)
    with pytest.raises(OutputGap):
        line.read(line.host.broadcaster.frame(b"2", 0.0, sign=True))
    with pytest.raises(OutputGap):
        line.read(line.host.broadcaster.frame(b"3", 0.0, sign=True))
    line.watch()
    assert line.read(line.host.broadcaster.frame(b"4", 0.0, sign=True)).data == b"4"
