"""Streams: numbered two-way pipes between one operator and one host.

The relay makes the numbers and never uses one twice, and who sends for a number must be one of
its two ends: a guessed number reaches nobody. Each direction has credit. A sender may have a
window's worth on the way; what has left the relay towards the receiver is given back to it. So one
receiver that does not read holds up its own streams and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.relay.bounds import Bounds
from holdfast.relay.framing import framed
from holdfast.relay.metrics import Metrics
from holdfast.wire.relay_messages import Closed, Credit, Data, Incoming, Why

if TYPE_CHECKING:
    from holdfast.relay.audience import Incarnation
    from holdfast.relay.hosts import HostEnd
    from holdfast.relay.operators import OperatorEnd

    End: TypeAlias = HostEnd | OperatorEnd


class Half:
    """One direction of a stream."""

    __slots__ = ("_credit", "_number", "_owed", "_sender", "_window", "receiver")

    def __init__(self, number: int, sender: End, receiver: End, window: int) -> None:
        self._number, self._sender, self.receiver = number, sender, receiver
        self._window = self._credit = window
        self._owed = 0  # left the relay, and the sender was not told yet

    def spend(self, size: int) -> bool:
        """Whether the sender may send so much."""
        self._credit -= size
        return self._credit >= 0

    def left(self, size: int) -> None:
        """So much was handed to the receiver. Told in quarters of a window: often enough that a
        sender need not pause, seldom enough to cost nothing."""
        self._owed += size
        if self._owed * 4 >= self._window:
            self._credit += self._owed
            if self._number in self._sender.streams:
                self._sender.outbox.say(Credit(self._number, self._owed))
            self._owed = 0


class Stream:
    """Both halves, and the session it was opened for, if it was."""

    __slots__ = ("host", "incarnation", "number", "operator", "to_host", "to_operator")

    def __init__(
        self,
        number: int,
        operator: OperatorEnd,
        host: HostEnd,
        incarnation: Incarnation | None,
        window: int,
    ) -> None:
        self.number, self.operator, self.host = number, operator, host
        self.incarnation = incarnation
        self.to_host = Half(number, operator, host, window)
        self.to_operator = Half(number, host, operator, window)


class Streams:
    """All that are open."""

    def __init__(self, bounds: Bounds, metrics: Metrics) -> None:
        self._bounds, self._metrics = bounds, metrics
        self._last = 0
        self.count = 0

    def open(self, operator: OperatorEnd, host: HostEnd, incarnation: Incarnation | None) -> Stream:
        self._last += 1
        stream = Stream(self._last, operator, host, incarnation, self._bounds.stream_window_bytes)
        operator.streams[stream.number] = host.streams[stream.number] = stream
        if incarnation is not None:
            incarnation.streams[stream.number] = stream
        self.count += 1
        self._metrics.count("streams_total")
        host.outbox.say(Incoming(stream.number, incarnation.session if incarnation else None))
        return stream

    def data(self, sender: End, message: Data) -> None:
        stream = sender.streams.get(message.stream)
        if stream is None:
            self._unknown(sender, message.stream)
            return
        half = stream.to_host if sender is stream.operator else stream.to_operator
        size = len(message.data)
        self._metrics.count("data_frames_total")
        self._metrics.count("data_bytes_total", size)
        # Written anew, not passed on as it came: two decoders may read an odd message differently,
        # and the other end must read the number that was checked here.
        if not half.spend(size):
            self._metrics.count("overruns_total")
            self.close(stream, Why.OVERRUN)
        elif not half.receiver.outbox.pass_on(framed(message), half, size):
            self._metrics.count("overruns_total")
            self.close(stream, Why.FULL)

    def close_by(self, sender: End, number: int) -> None:
        """One end wants no more of it."""
        stream = sender.streams.get(number)
        if stream is None:
            self._unknown(sender, number)
        else:
            self.close(stream, Why.CLOSED, but=sender)

    def close(self, stream: Stream, why: Why, *, but: End | None = None) -> None:
        """Tell its ends, `but` the one that knows."""
        if stream.operator.streams.pop(stream.number, None) is None:
            return
        stream.host.streams.pop(stream.number, None)
        if stream.incarnation is not None:
            stream.incarnation.streams.pop(stream.number, None)
        self.count -= 1
        stream.operator.lose_admissions(stream, why)
        for end in (stream.operator, stream.host):
            if end is not but:
                end.outbox.say(Closed(stream.number, why))

    def _unknown(self, sender: End, number: int) -> None:
        """Closed a moment ago, or never its own: which of the two is not told."""
        self._metrics.count("unknown_streams_total")
        sender.outbox.say(Closed(number, Why.UNKNOWN))
