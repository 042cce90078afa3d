"""The record layer of a channel: messages to sealed records and back, in strict order.

A record has no number on the wire: both ends count, and only the next one opens. So a record that
was dropped, repeated, moved, altered or forged is noticed at once, and ends the channel. Each side
announces its end (`FIN`), renews keys in the stream (`REKEY`) and confirms what it has received
(`ALIVE`, see heartbeat.py).

    record   AES-256-GCM of: 1 byte kind (top bit: the message goes on in the next record), body

What the messages mean is not known here. No I/O, no clock, no randomness.
"""

from __future__ import annotations

from enum import IntEnum

from holdfast.model.errors import ChannelBroken, HoldfastError, InvalidArgument
from holdfast.model.limits import (
    CHANNEL_BEAT_S,
    CHANNEL_OVERDUE_S,
    CHANNEL_PATIENCE_S,
    CHANNEL_REKEY_BYTES,
    CHANNEL_REKEY_RECORDS,
    CHANNEL_RENEW_S,
    SNAPSHOT_MAX_BYTES,
)
from holdfast.model.record import Record
from holdfast.wire.heartbeat import Liveness
from holdfast.wire.key_agreement import TAG_BYTES
from holdfast.wire.noise import MESSAGE_MAX_BYTES, Cipher

RECORD_MAX_BYTES = MESSAGE_MAX_BYTES
BODY_MAX_BYTES = RECORD_MAX_BYTES - TAG_BYTES - 1  # of one record; longer messages take several
_MORE = 0x80


class RecordKind(IntEnum):
    """What a message is."""

    REKEY = 0  # all after it is under the next key
    ALIVE = 1  # how many records were received: heartbeat and acknowledgement in one
    FIN = 2  # nothing comes after it
    INPUT = 16  # operator: one signed input
    ACCEPTED = 17  # host: inputs up to this number were taken
    OUTPUT_KEY = 18  # host: a sender key, and where in the output it counts from
    OUTPUT_MARK = 19  # host: how far the output has gone
    MESSAGE = 20  # one message of docs/protocol.md


_OWN = frozenset({RecordKind.REKEY, RecordKind.ALIVE, RecordKind.FIN})
_KINDS = {int(kind): kind for kind in RecordKind}


class OpenedRecord(Record):
    """One message of the peer."""

    kind: int
    body: bytes


class Rekeying(Record):
    """How much goes under one key. Both ends must have the same."""

    records: int = CHANNEL_REKEY_RECORDS
    bytes: int = CHANNEL_REKEY_BYTES


class _Direction:
    """A cipher and how much it sealed under its present key."""

    __slots__ = ("_bytes", "_limits", "_records", "cipher", "fin", "number")

    def __init__(self, cipher: Cipher, limits: Rekeying) -> None:
        self.cipher, self._limits = cipher, limits
        self._records = self._bytes = 0
        self.number = 0  # records so far, under all keys
        self.fin = False

    @property
    def used_up(self) -> bool:
        return self._records >= self._limits.records or self._bytes >= self._limits.bytes

    def passed(self, size: int) -> None:
        self.number += 1
        self._records += 1
        self._bytes += size

    def rekey(self) -> None:
        self.number += 1
        self.cipher.rekey()
        self._records = self._bytes = 0


class RecordLayer:
    """One end of a channel. `hash` identifies the channel: only its two ends have it."""

    def __init__(
        self,
        ciphers: tuple[Cipher, Cipher],
        hash: bytes,
        now: float,
        *,
        speaks_first: bool,
        message_max: int = SNAPSHOT_MAX_BYTES,
        rekeying: Rekeying = Rekeying(),  # noqa: B008  (a frozen value)
        beat_s: float = CHANNEL_BEAT_S,
        patience_s: float = CHANNEL_PATIENCE_S,
    ) -> None:
        self.hash = hash
        self._out, self._in = (_Direction(cipher, rekeying) for cipher in ciphers)
        self._since, self._message_max = now, message_max
        self._live = Liveness(now, speaks_first=speaks_first, beat_s=beat_s, patience_s=patience_s)
        self._parts, self._part_kind = bytearray(), -1  # of an unfinished message
        self._broken: HoldfastError | None = None

    @property
    def finished(self) -> bool:
        """Whether both ends have announced their end."""
        return self._in.fin and self._out.fin

    @property
    def peer_finished(self) -> bool:
        return self._in.fin

    def seal(self, kind: RecordKind, body: bytes, now: float) -> list[bytes]:
        """The records of one message, to be carried in this order."""
        self.check_usable()
        if kind in _OWN:
            raise InvalidArgument(f"{kind.name} is the record layer's own")
        records: list[bytes] = []
        while len(body) > BODY_MAX_BYTES:
            self._put(kind | _MORE, body[:BODY_MAX_BYTES], now, records)
            body = body[BODY_MAX_BYTES:]
        self._put(kind, body, now, records)
        return records

    def finish(self, now: float) -> list[bytes]:
        """The record that announces our end."""
        self.check_usable()
        records: list[bytes] = []
        self._put(RecordKind.FIN, b"", now, records)
        self._out.fin = True
        return records

    def open(self, record: bytes, now: float) -> OpenedRecord | None:
        """The message that this record completes, or None. Any error ends the channel."""
        if self._broken is not None:
            raise self._broken
        try:
            return self._open(record, now)
        except HoldfastError as error:
            raise self.breaks(error) from None

    def poll(self, now: float) -> list[bytes]:
        """Records that are due by now. ChannelBroken when something was held back."""
        if self._broken is not None:
            raise self._broken
        if self.finished:
            return []
        if not self._in.fin:  # a peer that has finished sends no more
            try:
                self._live.check(now)
            except ChannelBroken as error:
                raise self.breaks(error) from None
        records: list[bytes] = []
        if not self._out.fin and self._live.beat_due(now):
            self._put(RecordKind.ALIVE, self._in.number.to_bytes(8), now, records)
        return records

    def wake_at(self) -> float:
        """When to call `poll` at the latest."""
        return self._live.wake_at()

    def renewal_due(self, now: float) -> bool:
        """Whether the channel is old enough to be replaced by a new one."""
        return now >= self._since + CHANNEL_RENEW_S

    def overdue(self, now: float) -> bool:
        """Whether the peer, which has to make the new one, had enough time for it."""
        return now >= self._since + CHANNEL_RENEW_S + CHANNEL_OVERDUE_S

    def cut(self) -> None:
        """The stream under the channel has ended. ChannelBroken if the peer had not announced its
        end."""
        if self._broken is not None:
            raise self._broken
        if not self._in.fin:
            raise self.breaks(ChannelBroken("cut off: the peer had not announced its end"))

    def breaks(self, error: HoldfastError) -> HoldfastError:
        """End the channel; every later call raises this error."""
        self._broken = self._broken or error
        return error

    def check_usable(self) -> None:
        """Raises if nothing more can be sent."""
        if self._broken is not None:
            raise self._broken
        if self._out.fin:
            raise ChannelBroken("this end has already announced its end")

    def _put(self, kind: int, body: bytes, now: float, records: list[bytes]) -> None:
        out = self._out
        if out.used_up:
            records.append(out.cipher.seal(bytes([RecordKind.REKEY])))
            self._live.sent(now)
            out.rekey()
        records.append(out.cipher.seal(bytes([kind]) + body))
        self._live.sent(now)
        out.passed(1 + len(body))

    def _open(self, record: bytes, now: float) -> OpenedRecord | None:
        arriving = self._in
        if arriving.fin:
            raise ChannelBroken("a record came after the peer had announced its end")
        plain = arriving.cipher.open(record) if len(record) <= RECORD_MAX_BYTES else None
        if not plain:
            raise ChannelBroken(
                f"record {arriving.number + 1} is not the one the peer sent: something was "
                "dropped, repeated, moved or altered"
            )
        self._live.heard(now)
        kind = _KINDS.get(plain[0] & ~_MORE)
        if kind is None:
            raise ChannelBroken(f"there is no message of kind {plain[0] & ~_MORE}")
        if kind is RecordKind.REKEY and len(plain) == 1 and not plain[0] & _MORE:
            arriving.rekey()
            return None
        if arriving.used_up:
            raise ChannelBroken("the peer did not renew its key in time")
        arriving.passed(len(plain))
        if kind not in _OWN:
            return self._whole(kind, plain)
        self._own(kind, plain)
        return None

    def _own(self, kind: RecordKind, plain: bytes) -> None:
        """The record layer's own kinds are one record each, of a fixed size."""
        if plain[0] & _MORE:
            raise ChannelBroken(f"a record of kind {kind.name} cannot continue in another")
        if kind is RecordKind.ALIVE and len(plain) == 9:
            self._live.confirmed(int.from_bytes(plain[1:]))
        elif kind is RecordKind.FIN and len(plain) == 1 and self._part_kind < 0:
            self._in.fin = True
        else:
            raise ChannelBroken(f"a malformed record of kind {kind.name}")

    def _whole(self, kind: RecordKind, plain: bytes) -> OpenedRecord | None:
        more = plain[0] & _MORE
        if self._part_kind not in (-1, kind):
            raise ChannelBroken("a message begins before the last one is complete")
        if not more and self._part_kind < 0:
            return OpenedRecord(kind, plain[1:])
        if more and len(plain) != BODY_MAX_BYTES + 1:
            raise ChannelBroken("a message continues after a record that is not full")
        if len(self._parts) + len(plain) - 1 > self._message_max:
            raise ChannelBroken(f"a message is over the limit of {self._message_max} bytes")
        self._parts += plain[1:]
        self._part_kind = kind
        if more:
            return None
        whole, self._parts, self._part_kind = bytes(self._parts), bytearray(), -1
        return OpenedRecord(kind, whole)
