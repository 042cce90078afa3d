"""The two ends of a stream of signed inputs, across channels: nothing is doubled by a reconnect and
nothing lost without being named.

`InputStream` is the operator's: it numbers, signs, and keeps each input until the host has taken
it. `InputBook` is the host's: the last input of every stream, by (device key, stream), because two
clients of one actor count separately. At a handshake the host says where the stream stands; the
operator then knows exactly which of its inputs were taken, or that nobody knows any more.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from holdfast.model.errors import ChannelBroken, InputUnknown, InvalidArgument, LimitReached
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.limits import CHANNEL_STREAMS, CHANNEL_UNACKED_BYTES, CHANNEL_UNACKED_INPUTS
from holdfast.model.record import Record
from holdfast.wire.epochs import Incarnation
from holdfast.wire.signed_input import Mark, SignedInput, Standing, genesis, read_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.key_agreement import Sign


_ATTEMPTS = 16  # channels an input was signed for that are remembered; older ones: fate unknown


class Resumed(Record):
    """What an operator learns from where the host says its stream stands."""

    again: tuple[bytes, ...] = ()  # not taken: they go over the new channel, before anything else
    unknown: tuple[bytes, ...] = ()  # fate unknown (the session moved on): never sent by itself


class _Kept:
    """An input the host has not confirmed. It may have arrived as any of the entries that were
    signed for it, each for another channel; `heads` are the heads of the chain after them."""

    __slots__ = ("heads", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.heads: deque[bytes] = deque(maxlen=_ATTEMPTS)


class InputStream:
    """The inputs of one client to one session. It outlives channels; it does not outlive the
    client, whose next life takes a new stream."""

    def __init__(self, session: SessionId, key: bytes, stream: OperatorId, sign: Sign) -> None:
        self.session, self.key, self.stream, self._sign = session, key, stream, sign
        self._taken = genesis(session, key, stream)  # as far as the host has confirmed
        self._mark = self._taken  # as far as inputs are signed for the present channel
        self._epoch = 0
        self._kept: OrderedDict[int, _Kept] = OrderedDict()  # by number, all after `_taken`
        self._kept_bytes = 0

    @property
    def unconfirmed(self) -> tuple[bytes, ...]:
        """The inputs that the host has not confirmed yet."""
        return tuple(kept.payload for kept in self._kept.values())

    def resume(self, epoch: int, standing: Standing) -> Resumed:
        """The host of this epoch, on a new channel, says where the stream stands."""
        moved, mark = 0 < self._epoch < epoch, standing.mark
        # A host that has no record of a stream may have forgotten it: that none of its inputs was
        # taken is sure only when there was none.
        new = self._taken.seq == 0 and not self._kept
        fits = self._possible(mark) and (standing.known or new)
        if not fits and not (moved and mark.seq <= self._last):
            raise InputUnknown(
                "the host's record of this client's inputs is not the client's own",
                hint="look at the screen; then go on as a new client",
            )
        if fits:
            self._confirm(mark.seq)
        left = self.unconfirmed
        self._epoch, self._taken, self._mark = epoch, mark, mark
        if not moved:
            return Resumed(again=left)
        self._kept.clear()
        self._kept_bytes = 0
        return Resumed(unknown=left)

    def again(self, channel: bytes) -> list[SignedInput]:
        """What the host has not taken, signed anew for this channel under the same numbers. They
        must go first: the numbers after them are not theirs to give away."""
        left = [each for seq, each in self._kept.items() if seq > self._mark.seq]
        return [self._signed(each, channel) for each in left]

    def signed(self, payload: bytes, channel: bytes) -> SignedInput:
        """The next input, for this channel."""
        if self._mark.seq != self._last:
            raise InvalidArgument("inputs that were sent before have to go first")
        size = self._kept_bytes + len(payload)
        if len(self._kept) >= CHANNEL_UNACKED_INPUTS or size > CHANNEL_UNACKED_BYTES:
            raise LimitReached("the host has not confirmed the inputs before this one yet")
        kept = _Kept(payload)
        self._kept[self._last + 1] = kept
        self._kept_bytes = size
        return self._signed(kept, channel)

    def accepted(self, seq: int) -> None:
        """The host has taken all inputs up to this one; what it did with each it says elsewhere."""
        if not self._taken.seq <= seq <= self._mark.seq:
            raise ChannelBroken(f"the host accepted input {seq}; {self._mark.seq} were sent")
        self._confirm(seq)

    @property
    def _last(self) -> int:
        return next(reversed(self._kept), self._taken.seq)

    def _possible(self, mark: Mark) -> bool:
        """Whether the stream can stand there, going by what was sent."""
        if mark.seq in self._kept:
            return mark.head in self._kept[mark.seq].heads
        return mark == self._taken

    def _confirm(self, seq: int) -> None:
        while self._kept and next(iter(self._kept)) <= seq:
            number, kept = self._kept.popitem(last=False)
            self._taken = Mark(number, kept.heads[-1])
            self._kept_bytes -= len(kept.payload)

    def _signed(self, kept: _Kept, channel: bytes) -> SignedInput:
        unsigned = SignedInput(
            self.session, self._epoch, channel, self.key, self.stream,
            self._mark.seq + 1, self._mark.head, kept.payload,
        )  # fmt: skip
        entry = unsigned.replace(signature=self._sign(unsigned.text()))
        self._mark = Mark(entry.seq, entry.head())
        kept.heads.append(self._mark.head)
        return entry


class InputBook:
    """What a host knows of the streams of one session: the mark of each. The least recently used of
    an actor goes when it has too many; that client is then told that fates are unknown.

    It lasts as long as the daemon. The next one knows no stream, and says so; whether an input that
    was on its way reached the session is then told by the session's own ledger."""

    def __init__(self, incarnation: Incarnation, *, per_actor: int = CHANNEL_STREAMS) -> None:
        self.incarnation = incarnation
        self.marks: dict[tuple[bytes, OperatorId], Mark] = {}
        self._channels: dict[tuple[bytes, OperatorId], bytes] = {}
        # Of each actor, the latest last: who comes costs no more the more others there are.
        self._own: dict[bytes, OrderedDict[OperatorId, None]] = {}
        self._per_actor = per_actor

    def standing(self, key: bytes, stream: OperatorId) -> Standing:
        """What to tell the operator. Telling changes nothing: the one who asks may be a relay that
        repeats an old message."""
        found = self.marks.get((key, stream))
        mark = found or genesis(self.incarnation.session, key, stream)
        return Standing(found is not None, mark)

    def adopt(self, key: bytes, stream: OperatorId, channel: bytes, told: Standing) -> None:
        """From now on the stream comes through this channel, and through no other. What its
        operator was told must still be true: the old channel may have brought more since."""
        now = self.standing(key, stream)
        if now.mark != told.mark or now.known < told.known:
            raise ChannelBroken("more inputs came through the old channel meanwhile")
        self.marks[key, stream] = now.mark
        self._channels[key, stream] = channel
        own = self._own.setdefault(key, OrderedDict())
        own[stream] = None
        own.move_to_end(stream)
        if len(own) > self._per_actor:
            gone, _ = own.popitem(last=False)
            self.marks.pop((key, gone), None)
            self._channels.pop((key, gone), None)

    def take(self, key: bytes, stream: OperatorId, channel: bytes, body: bytes) -> SignedInput:
        """The next input of a stream, checked. From then on it counts as taken, whatever becomes
        of it: an input that was refused must not be sent again by itself."""
        self.incarnation.check()
        place = (key, stream)
        if self._channels.get(place) != channel:
            raise ChannelBroken("another channel carries this stream now")
        seq, signature, payload = read_body(body)
        mark = self.marks[place]
        if seq != mark.seq + 1:
            raise ChannelBroken(f"input {seq} came where {mark.seq + 1} belongs")
        session, epoch = self.incarnation.session, self.incarnation.epoch
        entry = SignedInput(
            session, epoch, channel, key, stream, seq, mark.head, payload, signature
        )
        entry.check()
        self.marks[place] = Mark(seq, entry.head())
        self._own[key].move_to_end(stream)
        return entry
