"""Frames: messages come back as they went, however the bytes were cut."""

from __future__ import annotations

import struct

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.errors import InvalidArgument, ProtocolViolation
from holdfast.wire.frames import Decoder, encode, output_head
from holdfast.wire.messages import BY_TAG
from holdfast.wire.messages import session as m

SOME = [
    m.Input(7, "build", 3, b"\x00\xff"),
    m.Done(1),
    m.Output(2, 1 << 40, b"x" * 1000),
    m.Failed(9, "no_such_session", "there is no session", "hold ls", True),
]


@given(st.lists(st.integers(1, 400)))
def test_any_cut_of_the_stream_gives_the_same_messages(cuts: list[int]) -> None:
    stream = b"".join(encode(message) for message in SOME)
    decoder, got, at = Decoder(), [], 0
    for cut in cuts:
        got += decoder.feed(stream[at : at + cut])
        at += cut
    got += decoder.feed(stream[at:])
    assert got == SOME


def test_output_sent_in_parts_is_an_ordinary_output_frame() -> None:
    data = bytes(range(256)) * 300
    parts = output_head(5, 123, len(data)) + data
    assert Decoder().feed(parts) == [m.Output(5, 123, data)]


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(ProtocolViolation, match="over the limit"):
        Decoder(limit=100).feed(struct.pack(">I", 101))


def test_what_no_frame_can_carry_is_its_callers_mistake() -> None:
    with pytest.raises(InvalidArgument, match="beyond 64 bits"):
        encode(m.Output(2, 1 << 64, b""))
    with pytest.raises(InvalidArgument, match="no character"):
        encode(m.Failed(2, "code", "half of a pair: \udc80"))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x93\x01\x02\x03", msgpack.packb({"t": "nonsense"}), msgpack.packb({"t": 5})],
)
def test_what_is_no_message_is_a_violation(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        Decoder().feed(struct.pack(">I", len(body)) + body)


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for_never_anything_else(garbage: bytes) -> None:
    try:
        for message in Decoder().feed(garbage):
            assert isinstance(message, m.Message)
    except ProtocolViolation:
        pass


def test_every_message_has_its_own_tag_and_its_sentence() -> None:
    kinds = list(BY_TAG.values())
    assert len({kind.tag for kind in kinds}) == len(kinds)
    assert all(kind.__doc__ or issubclass(kind, m.Answer) for kind in kinds)


def test_a_client_skips_what_a_newer_host_tells_it_and_nothing_else() -> None:
    told, answered = ({"t": "news", **more} for more in ({}, {"id": 3}))
    news, answer = (
        struct.pack(">I", len(body)) + body for body in map(msgpack.packb, (told, answered))
    )
    assert Decoder(skips_unknown=True).feed(news + encode(m.Done(1)) + news) == [m.Done(1)]
    with pytest.raises(ProtocolViolation):
        Decoder(skips_unknown=True).feed(answer)
    with pytest.raises(ProtocolViolation):
        Decoder().feed(news)
