"""The two ends of a stream of signed inputs. `InputStream` is the operator's: it numbers and signs.
`InputBook` is the host's: it keeps the last input of every stream by (device key, stream), because
two clients of one actor count separately.

A stream belongs to one channel; the next channel begins a new one. After a reconnect the session's
own ledger says which inputs were taken.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from holdfast.model.errors import ChannelBroken, InputUnknown, LimitReached
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.limits import CHANNEL_STREAMS, CHANNEL_UNACKED_BYTES, CHANNEL_UNACKED_INPUTS
from holdfast.wire.epochs import Incarnation
from holdfast.wire.signed_input import Mark, SignedInput, StreamPosition, genesis, read_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.key_agreement import Sign


class InputStream:
    """The inputs of one client to one session, over one channel."""

    def __init__(self, session: SessionId, key: bytes, stream: OperatorId, sign: Sign) -> None:
        self.session, self.key, self.stream, self._sign = session, key, stream, sign
        self._mark = genesis(session, key, stream)  # the last input that was signed
        self._epoch = 0
        self._unacked: deque[int] = deque()  # sizes of the inputs not confirmed yet, oldest first
        self._unacked_bytes = 0

    def begin(self, epoch: int, mark: Mark) -> None:
        """The host of this epoch has this record of the stream, which must be empty."""
        if mark != self._mark:
            raise InputUnknown(
                "the host has a record of inputs that this client did not send",
                hint="look at the screen, then connect again",
            )
        self._epoch = epoch

    def signed(self, payload: bytes, channel: bytes) -> SignedInput:
        """The next input, for this channel."""
        size = self._unacked_bytes + len(payload)
        if len(self._unacked) >= CHANNEL_UNACKED_INPUTS or size > CHANNEL_UNACKED_BYTES:
            raise LimitReached("the host has not confirmed the inputs before this one yet")
        unsigned = SignedInput(
            self.session, self._epoch, channel, self.key, self.stream,
            self._mark.seq + 1, self._mark.head, payload,
        )  # fmt: skip
        entry = unsigned.replace(signature=self._sign(unsigned.text()))
        self._mark = Mark(entry.seq, entry.head())
        self._unacked.append(len(payload))
        self._unacked_bytes = size
        return entry

    def accepted(self, seq: int) -> None:
        """The host has taken all inputs up to this one. What it did with each is answered apart."""
        count = seq - (self._mark.seq - len(self._unacked))
        if not 0 <= count <= len(self._unacked):
            raise ChannelBroken(f"the host accepted input {seq}; {self._mark.seq} were sent")
        for _ in range(count):
            self._unacked_bytes -= self._unacked.popleft()


class InputBook:
    """What a host knows of the streams of one session: the mark of each. An actor with too many
    loses the least recently used one. The book lives as long as the daemon."""

    def __init__(self, incarnation: Incarnation, *, per_actor: int = CHANNEL_STREAMS) -> None:
        self.incarnation = incarnation
        self.marks: dict[tuple[bytes, OperatorId], Mark] = {}
        self._channels: dict[tuple[bytes, OperatorId], bytes] = {}
        # Per actor, latest last: a new stream costs the same however many others there are.
        self._own: dict[bytes, OrderedDict[OperatorId, None]] = {}
        self._per_actor = per_actor

    def position(self, key: bytes, stream: OperatorId) -> StreamPosition:
        """What message 2 tells the operator. Asking changes nothing: it may be a relay that
        repeats an old message."""
        found = self.marks.get((key, stream))
        mark = found or genesis(self.incarnation.session, key, stream)
        return StreamPosition(found is not None, mark)

    def adopt(self, key: bytes, stream: OperatorId, channel: bytes, told: StreamPosition) -> None:
        """Take the stream from this channel only, from now on. What its operator was told must
        still be true: another channel may have brought inputs since."""
        now = self.position(key, stream)
        if now.mark != told.mark or now.known < told.known:
            raise ChannelBroken("another channel has brought inputs of this stream since")
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
        """The next input of a stream, checked. It counts as taken even if it is refused later: a
        refused input must not be sent again automatically."""
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
