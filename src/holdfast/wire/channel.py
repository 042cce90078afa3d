"""The channel between an operator and a host, through a relay that neither has to trust: both
ends, put together from handshake, records and signed inputs.

    operator                                    host
    OperatorHandshake.first  ---- message 1 ---->   HostHandshake(message 1): who it is, its grant
    OperatorHandshake.finish <--- message 2 -----   HostHandshake.answer: epoch, stream position
    OperatorChannel          <=== records ======>   HostChannel

A relay can repeat message 1, so the host only answers it. The channel counts as established when
the first record arrives over it (`confirmed`): only the operator that read the answer can have made
that record. The caller decides whom to admit and what an input may do. Nothing is kept of an
operator that is not admitted.
"""

from __future__ import annotations

import struct

from holdfast.model.device import KEY_BYTES, SIGNATURE_BYTES, Device
from holdfast.model.errors import (
    ChannelBroken,
    Fenced,
    HandshakeFailed,
    HoldfastError,
    InvalidArgument,
    VersionMismatch,
)
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.limits import (
    CHANNEL_BEAT_S,
    CHANNEL_GRANT_MAX_BYTES,
    CHANNEL_PATIENCE_S,
    FRAME_MAX_BYTES,
    SNAPSHOT_MAX_BYTES,
)
from holdfast.model.record import Record
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.input_chain import InputBook, InputStream
from holdfast.wire.key_agreement import KeyPair, check_device
from holdfast.wire.noise import IK, IK_PSK1, Handshake
from holdfast.wire.record_layer import OpenedRecord, RecordKind, RecordLayer, Rekeying
from holdfast.wire.signed_input import Mark, SignedInput, StreamPosition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Judge = Callable[[SignedInput], None]  # raises what it refuses an input with
    Admit = Callable[[], bool]  # whether the operator may send inputs

CHANNEL_DOMAIN = b"holdfast channel v1\0"
VERSION = 1
_PLAIN, _INVITED = 1, 2  # first byte of message 1: IK, or IKpsk1
_FIRST = struct.Struct(f">B{KEY_BYTES}s{SIGNATURE_BYTES}s16sQ")
_SECOND = struct.Struct(">BQBQ32s")
_U64 = struct.Struct(">Q")


class Pace(Record):
    """The times of a channel, in seconds, and when it takes new keys."""

    beat_s: float = CHANNEL_BEAT_S
    patience_s: float = CHANNEL_PATIENCE_S
    rekeying: Rekeying = Rekeying()


class Caller(Record):
    """The operator at the other end, as the first message states and proves."""

    device: Device
    stream: OperatorId
    seen_epoch: int  # the highest epoch of this session it knows of
    grant: bytes  # the grant it presents
    invited: bool  # whether it knew the invite's secret


def prologue(session: SessionId) -> bytes:
    """Both ends must have the same: one session's handshake fits no other."""
    return CHANNEL_DOMAIN + session.encode()


class OperatorHandshake:
    """An operator's handshake. The host's device must come from a source the operator trusts."""

    def __init__(
        self,
        stream: InputStream,
        me: Device,
        static: KeyPair,
        ephemeral: KeyPair,
        host: Device,
        floor: EpochFloor,
        *,
        grant: bytes = b"",
        psk: bytes = b"",
        before: bytes = b"",
    ) -> None:
        """`before` replaces the session's prologue, for a device that the host does not know."""
        if len(grant) > CHANNEL_GRANT_MAX_BYTES:
            raise InvalidArgument(f"a grant has at most {CHANNEL_GRANT_MAX_BYTES} bytes")
        self._stream, self._me, self._floor = stream, check_device(me), floor
        self._grant, self._invited = grant, bool(psk)
        self._noise = Handshake(
            IK_PSK1 if psk else IK,
            initiator=True,
            static=static,
            ephemeral=ephemeral,
            remote_static=check_device(host).static,
            prologue=before or prologue(stream.session),
            psks=(psk,) if psk else (),
        )

    def first(self) -> bytes:
        """Message 1."""
        me, stream = self._me, bytes.fromhex(self._stream.stream)
        said = _FIRST.pack(VERSION, me.key, me.signature, stream, self._floor.highest)
        form = _INVITED if self._invited else _PLAIN
        return bytes([form]) + self._noise.write(said + self._grant)

    def finish(
        self,
        message: bytes,
        now: float,
        pace: Pace = Pace(),  # noqa: B008  (a frozen value)
    ) -> OperatorChannel:
        """The channel, from message 2."""
        said = self._noise.read(message)
        if len(said) != _SECOND.size:
            raise HandshakeFailed("the host's answer is malformed")
        version, epoch, known, seq, head = _SECOND.unpack(said)
        _check_version(version)
        if known > 1:
            raise HandshakeFailed("the host's answer is malformed")
        self._floor.rise(epoch)
        self._stream.begin(epoch, Mark(seq, head))
        sealed = _sealed(self._noise, now, pace, operator=True)
        return OperatorChannel(epoch, sealed, self._stream)


class OperatorChannel:
    """The operator's end."""

    def __init__(self, epoch: int, sealed: RecordLayer, stream: InputStream) -> None:
        self.epoch, self.sealed, self._stream = epoch, sealed, stream

    def write(self, payload: bytes, now: float) -> list[bytes]:
        """One input, signed, as records."""
        self.sealed.check_usable()  # before the input takes a number
        entry = self._stream.signed(payload, self.sealed.hash)
        return self.sealed.seal(RecordKind.INPUT, entry.body(), now)

    def receive(self, record: bytes, now: float) -> OpenedRecord | None:
        """A key, mark or message of the host; None for what concerns only the channel."""
        opened = self.sealed.open(record, now)
        if opened is None:
            return None
        try:
            if opened.kind == RecordKind.ACCEPTED and len(opened.body) == _U64.size:
                self._stream.accepted(_U64.unpack(opened.body)[0])
                return None
            if opened.kind not in (
                RecordKind.OUTPUT_KEY,
                RecordKind.OUTPUT_MARK,
                RecordKind.MESSAGE,
            ):
                raise ChannelBroken("the host sent a record that only an operator may send")
        except HoldfastError as error:
            raise self.sealed.breaks(error) from None
        return opened


class HostHandshake:
    """A host's handshake: read, then judged by the caller, then answered."""

    def __init__(
        self,
        incarnation: Incarnation,
        static: KeyPair,
        ephemeral: KeyPair,
        message: bytes,
        *,
        psk: bytes = b"",
        before: bytes = b"",
    ) -> None:
        incarnation.check()
        invited = message[:1] == bytes([_INVITED])
        if message[:1] not in (bytes([_PLAIN]), bytes([_INVITED])):
            raise HandshakeFailed("not the first message of a channel")
        self._incarnation = incarnation
        self._noise = Handshake(
            IK_PSK1 if invited else IK,
            initiator=False,
            static=static,
            ephemeral=ephemeral,
            prologue=before or prologue(incarnation.session),
            psks=(psk,) if invited else (),
        )
        self.caller = _caller(self._noise.read(message[1:]), self._noise.remote_static, invited)
        if self.caller.seen_epoch > incarnation.epoch:
            raise Fenced(
                f"the operator knows of epoch {self.caller.seen_epoch}; this is "
                f"epoch {incarnation.epoch}"
            )

    def answer(
        self,
        book: InputBook,
        judge: Judge,
        now: float,
        pace: Pace = Pace(),  # noqa: B008  (a frozen value)
        admit: Admit = lambda: True,
    ) -> tuple[bytes, HostChannel]:
        """Message 2, and the channel it begins. `judge` is called for each input, `admit` once,
        when the operator itself has sent a record."""
        self._incarnation.check()
        caller = self.caller
        position = book.position(caller.device.key, caller.stream)
        mark = position.mark
        said = _SECOND.pack(VERSION, book.incarnation.epoch, position.known, mark.seq, mark.head)
        message = self._noise.write(said)
        sealed = _sealed(self._noise, now, pace, operator=False)
        return message, HostChannel(caller, sealed, book, judge, admit, position)


class HostChannel:
    """The host's end."""

    def __init__(
        self,
        caller: Caller,
        sealed: RecordLayer,
        book: InputBook,
        judge: Judge,
        admit: Admit,
        told: StreamPosition,
    ) -> None:
        self.caller, self.sealed = caller, sealed
        self._book, self._judge, self._admit, self._told = book, judge, admit, told
        self._key, self._stream = caller.device.key, caller.stream
        self.confirmed = False  # whether the operator itself has sent a record

    def seal(self, kind: RecordKind, body: bytes, now: float) -> list[bytes]:
        if not self.confirmed:
            raise InvalidArgument("the operator has not sent anything on this channel yet")
        return self.sealed.seal(kind, body, now)

    def accepted(self, now: float) -> list[bytes]:
        """Tell the operator how far its inputs were taken: checked and passed on. The session
        answers each input itself."""
        mark = self._book.position(self._key, self._stream).mark
        return self.seal(RecordKind.ACCEPTED, _U64.pack(mark.seq), now)

    def receive(self, record: bytes, now: float) -> SignedInput | OpenedRecord | None:
        """An input or message of the operator. What `judge` raises refuses the input, which then
        counts as taken, and leaves the channel open. Any other error ends the channel."""
        opened = self.sealed.open(record, now)
        try:
            if not self.confirmed:
                self.confirmed = True
                if self._admit():
                    self._book.adopt(self._key, self._stream, self.sealed.hash, self._told)
            if opened is None:
                return None
            if opened.kind == RecordKind.MESSAGE:
                return opened
            if opened.kind != RecordKind.INPUT:
                raise ChannelBroken("the operator sent a record that only a host may send")
            entry = self._book.take(self._key, self._stream, self.sealed.hash, opened.body)
        except HoldfastError as error:
            raise self.sealed.breaks(error) from None
        self._judge(entry)
        return entry


def _caller(said: bytes, static: bytes, invited: bool) -> Caller:
    if len(said) < _FIRST.size:
        raise HandshakeFailed("the operator's first message is cut off")
    version, key, signature, stream, seen = _FIRST.unpack_from(said)
    _check_version(version)
    grant = said[_FIRST.size :]
    if len(grant) > CHANNEL_GRANT_MAX_BYTES:
        raise HandshakeFailed(f"a grant has at most {CHANNEL_GRANT_MAX_BYTES} bytes")
    device = check_device(Device(key, static, signature))
    return Caller(device, OperatorId(stream.hex()), seen, grant, invited)


def _check_version(version: int) -> None:
    if version != VERSION:
        raise VersionMismatch(f"the peer's channel is of version {version}; ours is {VERSION}")


def _sealed(noise: Handshake, now: float, pace: Pace, *, operator: bool) -> RecordLayer:
    return RecordLayer(
        noise.split(),
        noise.hash,
        now,
        speaks_first=operator,
        message_max=SNAPSHOT_MAX_BYTES if operator else FRAME_MAX_BYTES,
        rekeying=pace.rekeying,
        beat_s=pace.beat_s,
        patience_s=pace.patience_s,
    )
