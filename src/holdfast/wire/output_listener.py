"""Output as one operator reads it: only the host's frames, each once, in order, none left out.

A frame that does not fit is refused and changes nothing, so a forged frame cannot confuse a reader.
A genuine frame that comes too early means that others are missing: then the reader is lost until
the host says where to continue (`OutputKey.begins`).

Unsigned frames are provisional: another reader of the same output, together with the relay, could
have forged them. The next signed frame settles them, or a mark over the operator's own channel. If
they turn out not to be the host's, BadSignature is raised, and the client has to replace what it
showed.
"""

from __future__ import annotations

from holdfast.model.device import SIGNATURE_BYTES
from holdfast.model.errors import BadSignature, HoldfastError, OutputGap, OutputRefused
from holdfast.model.ids import SessionId
from holdfast.model.limits import CHANNEL_PATIENCE_S, OUTPUT_UNSIGNED_FRAMES
from holdfast.model.record import Record
from holdfast.wire.ed25519 import check
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.key_agreement import Aead
from holdfast.wire.output_broadcast import (
    HEADER,
    SIGNED,
    UNSIGNED,
    OutputKey,
    OutputMark,
    bound,
    link,
    nonce,
    signed_text,
)

_KEYS_MAX = 256  # announced ahead of their frames; with more the reader asks again


class HeardOutput(Record):
    """One frame, opened."""

    seq: int
    data: bytes
    provisional: bool  # no signature covers it yet
    settled: int  # every frame with a smaller number than this is the host's


class Listener:
    """The reader's end. `floor` is shared with the operator's channel to the same session."""

    def __init__(
        self,
        session: SessionId,
        host_key: bytes,
        floor: EpochFloor,
        *,
        patience_s: float = CHANNEL_PATIENCE_S,
    ) -> None:
        self._session, self._host_key, self._floor = session, host_key, floor
        self._patience_s = patience_s
        self._epoch, self._seq, self._head = -1, 0, b""
        self._keys: dict[int, tuple[OutputKey, Aead]] = {}  # by group epoch
        self._settled = 0
        self._provisional_since = 0.0
        self._mark: tuple[OutputMark, float] | None = None  # not reached yet
        self._lost: HoldfastError | None = OutputGap("the host has not said where to begin")

    @property
    def lost(self) -> bool:
        """Whether the host has to say where to continue."""
        return self._lost is not None

    def is_early(self, frame: bytes) -> bool:
        """Whether its key may still arrive: keys and frames take different routes."""
        if self.lost or len(frame) < HEADER.size:
            return self.lost
        return bool(HEADER.unpack_from(frame)[2] > max(self._keys))

    def take_key(self, body: bytes, now: float) -> bool:
        """A sender key came over our own channel. True when the session has a new incarnation: what
        was shown before belongs to the old one."""
        told = OutputKey.decode(body)
        moved = self._floor.rise(told.epoch)
        same = told.epoch == self._epoch
        if same and (told.seq < self._seq or told.group < max(self._keys)):
            raise OutputRefused("the host's output goes back to an earlier frame")
        if told.begins or not same:
            self._begin(told)
            return moved
        if self.lost:
            return moved  # the key comes again with the place to continue from
        if told.group in self._keys:
            raise OutputRefused("a sender key came twice")
        # A key without frames, or whose frames have all arrived, is no longer needed.
        self._keys = {
            group: (known, aead)
            for group, (known, aead) in self._keys.items()
            if known.seq < told.seq and self._seq < told.seq
        }
        self._keys[told.group] = (told, Aead(told.key))
        if len(self._keys) > _KEYS_MAX:
            raise self._gone(OutputGap(f"frames from {self._seq} on did not arrive"))
        self._noted(OutputMark(told.epoch, told.seq, told.head), now)
        return moved

    def open(self, frame: bytes, now: float) -> HeardOutput:
        """The next frame."""
        if len(frame) < HEADER.size:
            raise OutputRefused("a frame of output is cut off")
        form, epoch, group, seq = HEADER.unpack_from(frame)
        self._floor.check(epoch)
        if self._lost is not None:
            raise self._lost
        if epoch != self._epoch or group not in self._keys or form not in (UNSIGNED, SIGNED):
            raise OutputRefused("a frame is under a key that this operator was not given")
        if seq < self._seq:
            raise OutputRefused(f"frame {seq} was received before")
        told, aead = self._keys[group]
        header = frame[: HEADER.size]
        plain = aead.open(nonce(seq), frame[HEADER.size :], bound(self._session, header))
        if plain is None or (form == SIGNED and len(plain) < SIGNATURE_BYTES) or seq < told.seq:
            raise OutputRefused(f"frame {seq} was altered, or belongs to other output")
        if seq > self._seq:
            raise self._gone(OutputGap(f"frames {self._seq} to {seq - 1} are missing"))
        return self._next(form == SIGNED, told, header, plain, now)

    def mark(self, body: bytes, now: float) -> int:
        """The host says over our own channel how far the output has come. Returns what is
        settled."""
        told = OutputMark.decode(body)
        self._floor.check(told.epoch)
        if told.epoch == self._epoch and not self.lost:
            self._noted(told, now)
        return self._settled

    def poll(self, now: float) -> None:
        """Raises OutputGap when frames were held back, BadSignature when some stay unsigned."""
        if self._lost is not None:
            return
        if self._mark is not None and now >= self._mark[1] + self._patience_s:
            raise self._gone(OutputGap(f"frames from {self._seq} on were held back"))
        if self._settled < self._seq and now >= self._provisional_since + self._patience_s:
            raise self._gone(BadSignature("the host does not sign its output"))

    def give_up(self, why: HoldfastError) -> None:
        """Drop what was read: nothing fits until the host says where to continue."""
        self._gone(why)

    def _begin(self, told: OutputKey) -> None:
        self._epoch, self._seq, self._head = told.epoch, told.seq, told.head
        self._settled = told.seq
        self._keys = {told.group: (told, Aead(told.key))}
        self._mark = self._lost = None

    def _next(
        self, is_signed: bool, told: OutputKey, header: bytes, plain: bytes, now: float
    ) -> HeardOutput:
        """A frame with the right key and number. The chain tells whether it is the host's."""
        if self._seq == told.seq and self._head != told.head:
            raise self._forged()
        data = plain[SIGNATURE_BYTES:] if is_signed else plain
        head = link(self._head, header, data)
        if is_signed:
            text = signed_text(self._session, header, head)
            if not check(self._host_key, text, plain[:SIGNATURE_BYTES]):
                raise self._forged()
        elif self._seq + 1 - self._settled >= OUTPUT_UNSIGNED_FRAMES:
            raise self._gone(BadSignature("the host does not sign its output"))
        if self._settled == self._seq:
            self._provisional_since = now
        at, self._seq, self._head = self._seq, self._seq + 1, head
        for group in [each for each in self._keys if each < told.group]:
            del self._keys[group]  # no more frames under an older key can come
        if is_signed:
            self._settled = self._seq
        if self._mark is not None:
            self._noted(self._mark[0], now)
        return HeardOutput(at, data, not is_signed and self._settled <= at, self._settled)

    def _noted(self, told: OutputMark, now: float) -> None:
        """The host itself has stated the head at some frame."""
        if told.seq > self._seq:
            self._mark = self._mark or (told, now)  # the frames may be on their way
        elif told.seq == self._seq:
            if told.head != self._head:
                raise self._forged()
            self._settled, self._mark = self._seq, None

    def _forged(self) -> HoldfastError:
        return self._gone(
            BadSignature(
                f"output after frame {self._settled} was not the host's: another reader forged it",
                hint="ask for the screen and replace what was shown since",
            )
        )

    def _gone(self, error: HoldfastError) -> HoldfastError:
        """Nothing fits from here on until the host says where to continue."""
        self._lost, self._mark = error, None
        return error
