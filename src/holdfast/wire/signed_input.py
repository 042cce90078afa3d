"""Inputs as evidence: each is signed by the actor's key over where and when it was meant for, and
over the input before it.

    session, epoch   it counts in this incarnation only
    channel          and came through this channel
    stream, seq      as this number of this client
    prev             after exactly those before it

The inputs of one stream form a chain. Neither host nor relay can change or add an entry, or move or
leave out one that others follow, without anybody noticing who has the entries. What an input means
is not known here.
"""

from __future__ import annotations

import hashlib
import struct

from holdfast.model.device import SIGNATURE_BYTES
from holdfast.model.errors import BadSignature, ChannelBroken
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.record import Record
from holdfast.wire.ed25519 import check

INPUT_DOMAIN = b"holdfast input v1\0"
STREAM_DOMAIN = b"holdfast input stream v1\0"
_TEXT = struct.Struct(">26sQ32s16sQ32s32s")
_SEQ = struct.Struct(">Q")
_HEAD_BYTES = _SEQ.size + SIGNATURE_BYTES


class Mark(Record):
    """How far a stream has come: the number of its last input, and the head of its chain."""

    seq: int
    head: bytes


class StreamPosition(Record):
    """What a host knows of a stream, as message 2 of the handshake says it."""

    known: bool  # False: it has no record of the stream
    mark: Mark


class SignedInput(Record):
    """One input with all that is needed to check it."""

    session: SessionId
    epoch: int
    channel: bytes  # hash of the channel it came through
    key: bytes  # the actor's Ed25519 key
    stream: OperatorId  # the client; an actor may have several at once
    seq: int  # 1, 2, 3 ... in the stream
    prev: bytes  # head of the chain before it
    payload: bytes
    signature: bytes = b""

    def text(self) -> bytes:
        """What is signed."""
        return INPUT_DOMAIN + _TEXT.pack(
            self.session.encode(),
            self.epoch,
            self.channel,
            bytes.fromhex(self.stream),
            self.seq,
            self.prev,
            hashlib.sha256(self.payload).digest(),
        )

    def head(self) -> bytes:
        """The head of the chain after it."""
        return hashlib.sha256(self.text() + self.signature).digest()

    def body(self) -> bytes:
        """What goes over the channel: the host knows the rest."""
        return _SEQ.pack(self.seq) + self.signature + self.payload

    def check(self) -> None:
        if not check(self.key, self.text(), self.signature):
            raise BadSignature(
                f"input {self.seq} is not signed with its actor's key for this place"
            )


def genesis(session: SessionId, key: bytes, stream: OperatorId) -> Mark:
    """The mark of a stream that has no input yet. No two streams have the same."""
    named = STREAM_DOMAIN + session.encode() + key + bytes.fromhex(stream)
    return Mark(0, hashlib.sha256(named).digest())


def read_body(body: bytes) -> tuple[int, bytes, bytes]:
    """Number, signature and payload of an input as it came over the channel."""
    if len(body) < _HEAD_BYTES:
        raise ChannelBroken("an input is cut off")
    return _SEQ.unpack_from(body)[0], body[_SEQ.size : _HEAD_BYTES], body[_HEAD_BYTES:]
