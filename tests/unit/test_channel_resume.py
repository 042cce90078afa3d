"""What becomes of inputs when a channel breaks: each is taken once and in order, or is named."""

from __future__ import annotations

import pytest

from holdfast.model.errors import (
    ChannelBroken,
    Fenced,
    InputUnknown,
    InvalidArgument,
)
from holdfast.wire.signed_input import check_chain
from unit.malicious_relay import (
    EPOCH,
    Host,
    Keys,
    Line,
    Operator,
    stage,
)


def test_after_a_reconnect_every_input_is_taken_once_and_in_order() -> None:
    line = stage()
    line.type(b"1", b"2", b"3", b"4")
    held, line.up = line.up[2:], line.up[:2]
    line.deliver()  # the relay dies with the last two; nothing was confirmed
    again = Line(line.host, line.operator)
    assert again.resumed.again == (b"3", b"4")
    with pytest.raises(InvalidArgument):  # they go first, under their own numbers
        again.operator.stream.signed(b"5", again.at_operator.sealed.hash)
    for record in held:  # and what the old relay kept comes too late
        with pytest.raises(ChannelBroken):
            line.host.receive(line.at_host, record)
    again.type(b"5")
    again.deliver()
    assert again.host.typed == [b"1", b"2", b"3", b"4", b"5"]
    check_chain(again.host.taken)
    again.confirm()
    again.deliver()
    assert again.operator.stream.unconfirmed == ()


def test_inputs_that_slip_in_by_the_old_channel_while_a_new_one_begins_are_not_doubled() -> None:
    line = stage()
    line.type(b"1")
    dialling = line.operator.dial()
    answer, at_host = line.host.answer(dialling.first())  # says: none taken
    line.deliver()  # and now the relay lets it through
    channel, resumed = dialling.finish(answer, 0.0)
    assert resumed.again == (b"1",)
    records = channel.sealed.poll(0.0) + channel.again(0.0)
    with pytest.raises(ChannelBroken):  # at once, not only when an input comes
        line.host.receive(at_host, records[0])
    third = Line(line.host, line.operator)
    assert third.resumed.again == ()
    assert line.host.typed == [b"1"]


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


def test_a_host_that_forgot_a_client_does_not_make_it_send_again() -> None:
    line = stage()
    line.type(b"1")
    line.deliver()  # taken, but the operator was not told
    line.host.book.marks.clear()
    with pytest.raises(InputUnknown):
        Line(line.host, line.operator)
    assert line.operator.stream.unconfirmed == (b"1",)


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


def test_in_a_new_incarnation_unconfirmed_inputs_are_named_and_never_sent_by_themselves() -> None:
    line = stage()
    line.type(b"1", b"2")
    line.up = line.up[:1]
    line.deliver()
    line.confirm()
    line.deliver()
    moved = Line(Host(line.host.keys, epoch=EPOCH + 1), line.operator)
    moved.host.writers |= line.host.writers
    assert (moved.resumed.again, moved.resumed.unknown) == ((), (b"2",))
    moved.type(b"3")
    moved.deliver()
    assert moved.host.typed == [b"3"]
    check_chain(moved.host.taken)


def test_marks_carried_to_the_next_incarnation_tell_which_inputs_were_taken() -> None:
    line = stage()
    line.type(b"1", b"2", b"3")
    line.up = line.up[:2]
    line.deliver()
    successor = Host(line.host.keys, epoch=EPOCH + 1)
    successor.writers |= line.host.writers
    successor.book.marks.update(line.host.book.marks)
    moved = Line(successor, line.operator)
    assert moved.resumed.unknown == (b"3",)
    moved.type(b"4")
    moved.deliver()
    check_chain([*line.host.taken, *successor.taken])


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
