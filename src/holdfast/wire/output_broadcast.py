"""Output for many readers: sealed once by the host, under a sender key that every operator gets
over its own channel.

    frame    header: 1 byte form (1: signed), 8 bytes epoch, 4 bytes group epoch, 8 bytes number;
             then AES-256-GCM of [64 bytes signature], data; bound to session and header

Every reader has the key, so the key alone does not prove who sealed a frame. The chain does: each
frame changes its head, and the host signs the head. A signed frame vouches for all before it; until
one comes, unsigned frames are provisional (output_listener.py).

Frames are numbered through the whole incarnation. The key changes (group epochs) when a reader
leaves, hourly, and with each incarnation. A new reader can open frames since the last change.
"""

from __future__ import annotations

import hashlib
import struct

from holdfast.model.device import KEY_BYTES
from holdfast.model.errors import ChannelBroken, InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.limits import (
    OUTPUT_KEY_FRAMES,
    OUTPUT_KEY_S,
    OUTPUT_UNSIGNED_FRAMES,
    OUTPUT_UNSIGNED_S,
)
from holdfast.model.record import Record
from holdfast.wire.epochs import Incarnation
from holdfast.wire.key_agreement import Aead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.key_agreement import Sign

FRAME_DOMAIN = b"holdfast output v1\0"
CHAIN_DOMAIN = b"holdfast output chain v1\0"
SIGNATURE_DOMAIN = b"holdfast output signature v1\0"
UNSIGNED, SIGNED = 0, 1
HEADER = struct.Struct(">BQIQ")
_KEY = struct.Struct(">BQIQ32s32s")
_MARK = struct.Struct(">QQ32s")
GOES_ON, BEGINS = 0, 1
LIFE_FRAMES = 1 << 40  # frame numbers of one daemon: at 10,000 frames a second, three years
LIFE_KEYS = 1 << 16  # group epochs of one daemon: hourly, seven years


class OutputKey(Record):
    """A sender key as given to one operator, and the frame from which it applies."""

    begins: bool  # read on from here and drop everything before: a join, or after a gap
    epoch: int
    group: int  # group epoch
    seq: int  # number of the first frame under this key (or the next one, if it begins)
    key: bytes
    head: bytes  # of the chain before that frame

    def encoded(self) -> bytes:
        form = BEGINS if self.begins else GOES_ON
        return _KEY.pack(form, self.epoch, self.group, self.seq, self.key, self.head)

    @classmethod
    def decode(cls, body: bytes) -> OutputKey:
        if len(body) != _KEY.size or body[0] not in (GOES_ON, BEGINS):
            raise ChannelBroken("not a sender key")
        form, epoch, group, seq, key, head = _KEY.unpack(body)
        return cls(form == BEGINS, epoch, group, seq, key, head)


class OutputMark(Record):
    """How far the output has come: sent over each operator's channel with every beat."""

    epoch: int
    seq: int  # number of the next frame
    head: bytes

    def encoded(self) -> bytes:
        return _MARK.pack(self.epoch, self.seq, self.head)

    @classmethod
    def decode(cls, body: bytes) -> OutputMark:
        if len(body) != _MARK.size:
            raise ChannelBroken("not an output mark")
        return cls(*_MARK.unpack(body))


def genesis(session: SessionId, epoch: int, first: int) -> bytes:
    """The head of the chain before a daemon's first frame."""
    place = epoch.to_bytes(8) + first.to_bytes(8)
    return hashlib.sha256(CHAIN_DOMAIN + session.encode() + place).digest()


def link(head: bytes, header: bytes, data: bytes) -> bytes:
    """The head after one more frame."""
    return hashlib.sha256(CHAIN_DOMAIN + head + header + hashlib.sha256(data).digest()).digest()


def signed_text(session: SessionId, header: bytes, head: bytes) -> bytes:
    """What the host signs: the head after this frame."""
    return SIGNATURE_DOMAIN + session.encode() + header + head


def bound(session: SessionId, header: bytes) -> bytes:
    """The associated data that a frame is sealed with."""
    return FRAME_DOMAIN + session.encode() + header


def nonce(seq: int) -> bytes:
    return seq.to_bytes(12)  # a number is used once in an incarnation, so once under any key


class Broadcaster:
    """The host's end: the output of one incarnation, and the readers that have its keys.

    `life` counts the daemons that have served this incarnation. Each has its own range of numbers,
    above all that were used before, so that it need not know how far the last one came."""

    def __init__(
        self, incarnation: Incarnation, sign: Sign, key: bytes, now: float, *, life: int = 0
    ) -> None:
        self._incarnation, self._sign = incarnation, sign
        self._seq, self._group = life * LIFE_FRAMES, life * LIFE_KEYS
        self._head = genesis(incarnation.session, incarnation.epoch, self._seq)
        self._unsigned, self._unsigned_since = 0, 0.0
        self._members: set[str] = set()
        self._key = b""
        self.rotate(key, now)

    @property
    def next_number(self) -> int:
        """The number of the next frame."""
        return self._seq

    def join(self, member: str) -> bytes:
        """Add a reader, or restart one after a gap: the OUTPUT_KEY to send to it."""
        self._members.add(member)
        return self._told(begins=True)

    def leave(self, member: str, key: bytes, now: float) -> dict[str, bytes]:
        """Remove a reader: the new OUTPUT_KEY for each of the others, to send at once."""
        self._members.discard(member)
        return self.rotate(key, now)

    def rotate(self, key: bytes, now: float) -> dict[str, bytes]:
        """Use this key from the next frame on: the OUTPUT_KEY for each member, to send before that
        frame."""
        if len(key) != KEY_BYTES or key == self._key:
            raise InvalidArgument("a sender key is 32 fresh random bytes")
        self._key, self._aead = key, Aead(key)
        self._group += 1
        self._from, self._rotated = self._seq, now
        told = self._told(begins=False)
        return dict.fromkeys(sorted(self._members), told)

    def rotation_due(self, now: float) -> bool:
        used = self._seq - self._from
        return now >= self._rotated + OUTPUT_KEY_S or used >= OUTPUT_KEY_FRAMES

    def frame(self, data: bytes, now: float, *, sign: bool = False) -> bytes:
        """The next frame. It is signed if asked for, or if too many before it are unsigned."""
        self._incarnation.check()
        sign = sign or self._unsigned + 1 >= OUTPUT_UNSIGNED_FRAMES
        session, epoch = self._incarnation.session, self._incarnation.epoch
        header = HEADER.pack(SIGNED if sign else UNSIGNED, epoch, self._group, self._seq)
        self._head = link(self._head, header, data)
        plain = data
        if sign:
            plain = self._sign(signed_text(session, header, self._head)) + data
            self._unsigned = 0
        else:
            self._unsigned_since = now if not self._unsigned else self._unsigned_since
            self._unsigned += 1
        sealed = self._aead.seal(nonce(self._seq), plain, bound(session, header))
        self._seq += 1
        return header + sealed

    def settle(self, now: float) -> bytes | None:
        """A signed frame without data, if unsigned ones have waited long enough."""
        if not self._unsigned or now < self.settle_at():
            return None
        return self.frame(b"", now, sign=True)

    def settle_at(self) -> float:
        """When `settle` is due; never, if nothing is unsigned."""
        return self._unsigned_since + OUTPUT_UNSIGNED_S if self._unsigned else float("inf")

    def mark(self) -> bytes:
        """The OUTPUT_MARK to send to each member with every beat."""
        return OutputMark(self._incarnation.epoch, self._seq, self._head).encoded()

    def _told(self, *, begins: bool) -> bytes:
        epoch = self._incarnation.epoch
        return OutputKey(begins, epoch, self._group, self._seq, self._key, self._head).encoded()
