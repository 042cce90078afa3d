"""Streams: numbered two-way pipes between one operator and one host.

The relay assigns the numbers and never reuses one, and only the two ends of a stream may send on
it: a guessed number reaches nobody. Each direction has credit. A sender may have one window in
flight; it gets credit back for what has left the relay towards the receiver. So a receiver that
does not read blocks only its own streams.

When one end is at another relay, that relay is the receiver, and reports when bytes have left *it*:
credit works end to end. Each of the two relays numbers such a stream for its own end; on the link
it has the number given by the host's relay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from holdfast.relay.limits import Bounds
from holdfast.relay.metrics import Metrics
from holdfast.relay.server_frame import framed
from holdfast.wire.relay_messages import Credit, Incoming, StreamClosed, StreamData, Why
from holdfast.wire.relay_peer_messages import Reached

if TYPE_CHECKING:
    from holdfast.relay.host_end import HostEnd
    from holdfast.relay.operator_end import OperatorEnd
    from holdfast.relay.peer_hosts import PeerHosts
    from holdfast.relay.peer_operators import PeerOperators
    from holdfast.relay.subscriptions import RoutedIncarnation

    HostSide: TypeAlias = HostEnd | PeerHosts
    OperatorSide: TypeAlias = OperatorEnd | PeerOperators
    End: TypeAlias = HostSide | OperatorSide


class Half:
    """One direction of a stream: its ends, and the numbers by which they know it."""

    __slots__ = ("_credit", "_owed", "_sender", "_window", "from_number", "receiver", "to_number")

    def __init__(
        self, sender: End, from_number: int, receiver: End, to_number: int, window: int
    ) -> None:
        self._sender, self.from_number = sender, from_number
        self.receiver, self.to_number = receiver, to_number
        self._window = self._credit = window
        self._owed = 0  # left the relay, not yet credited to the sender

    def spend(self, size: int) -> bool:
        """Whether the sender may send so much."""
        self._credit -= size
        return self._credit >= 0

    def left(self, size: int) -> None:
        """So much was written to the receiver. If that is a relay, it reports itself what has
        left."""
        if not self.receiver.is_peer:
            self.returned(size)

    def returned(self, size: int) -> None:
        """Credit so many bytes. Sent in quarters of a window: often enough that a sender need not
        pause, and seldom enough to be cheap."""
        self._owed += size
        if self._owed * 4 >= self._window:
            self._credit += self._owed
            if self.from_number in self._sender.streams:
                self._sender.outbox.say(Credit(self.from_number, self._owed))
            self._owed = 0


class RelayStream:
    """Both halves, and the session it was opened for, if any and its host is here."""

    __slots__ = (
        "host", "host_number", "incarnation", "key", "number", "operator", "to_host", "to_operator"
    )  # fmt: skip

    def __init__(
        self,
        operator: OperatorSide,
        number: int,
        host: HostSide,
        host_number: int,
        key: bytes,
        windows: tuple[int, int],
        incarnation: RoutedIncarnation | None = None,
    ) -> None:
        """`key`: the host's; `windows`: of the operator, of the host."""
        self.operator, self.number = operator, number
        self.host, self.host_number, self.key = host, host_number, key
        self.incarnation = incarnation
        self.to_host = Half(operator, number, host, host_number, windows[0])
        self.to_operator = Half(host, host_number, operator, number, windows[1])

    def half_from(self, sender: End) -> Half:
        return self.to_host if sender is self.operator else self.to_operator


class Streams:
    """All open streams."""

    def __init__(self, bounds: Bounds, metrics: Metrics, on_none: Callable[[], None]) -> None:
        """`on_none`: the last one was closed."""
        self._bounds, self._metrics, self._on_none = bounds, metrics, on_none
        self._last = 0
        self.count = 0

    def open(
        self,
        operator: OperatorSide,
        host: HostEnd,
        incarnation: RoutedIncarnation | None,
        window: int | None = None,
    ) -> RelayStream:
        """To a host at this relay. `window`: the window given to an operator at another relay."""
        number = self._number()
        ours = self._bounds.stream_window_bytes
        windows = (window or ours, ours)
        stream = RelayStream(operator, number, host, number, host.key, windows, incarnation)
        if incarnation is not None:
            incarnation.streams[number] = stream
        self._add(stream)
        host.outbox.say(Incoming(number, incarnation.session if incarnation else None))
        return stream

    def cross(self, operator: OperatorEnd, host: PeerHosts, reached: Reached) -> RelayStream:
        """To a host at another relay, which has opened the stream there."""
        windows = (self._bounds.stream_window_bytes, reached.window)
        number = self._number()
        stream = RelayStream(operator, number, host, reached.stream, reached.host, windows)
        self._add(stream)
        return stream

    def _number(self) -> int:
        self._last += 1
        return self._last

    def _add(self, stream: RelayStream) -> None:
        stream.operator.streams[stream.number] = stream
        stream.host.streams[stream.host_number] = stream
        self.count += 1
        self._metrics.count("streams_total")

    def data(self, sender: End, message: StreamData) -> None:
        stream = sender.streams.get(message.stream)
        if stream is None:
            self._unknown(sender, message.stream)
            return
        half = stream.half_from(sender)
        size = len(message.data)
        self._metrics.count("data_frames_total")
        self._metrics.count("data_bytes_total", size)
        # Encoded again, not passed on as received: two decoders may read an odd message
        # differently, and the other end must read the number that was checked here.
        if half.to_number != message.stream:
            message = StreamData(half.to_number, message.data)
        frame = framed(message)
        if not half.spend(size):
            self._metrics.count("overruns_total")
            self.close(stream, Why.OVERRUN)
        elif not half.receiver.outbox.pass_on(frame, half, size):
            self._metrics.count("overruns_total")
            self.close(stream, Why.FULL)

    def credit(self, receiver: End, message: Credit) -> None:
        """Another relay reports that so much has left it towards its end."""
        stream = receiver.streams.get(message.stream)
        if stream is not None:
            half = stream.to_operator if receiver is stream.operator else stream.to_host
            half.returned(message.size)

    def close_by(self, sender: End, number: int, why: Why = Why.CLOSED) -> None:
        """One end closes the stream."""
        stream = sender.streams.get(number)
        if stream is not None:
            self.close(stream, why, but=sender)
        elif not sender.is_peer:  # a relay closed it at the same time
            self._unknown(sender, number)

    def close(self, stream: RelayStream, why: Why, *, but: End | None = None) -> None:
        """Tell its ends, except `but`, which knows."""
        if stream.operator.streams.pop(stream.number, None) is None:
            return
        stream.host.streams.pop(stream.host_number, None)
        if stream.incarnation is not None:
            stream.incarnation.streams.pop(stream.number, None)
        self.count -= 1
        stream.operator.lose_admissions(stream, why)
        if stream.operator is not but:
            stream.operator.outbox.say(StreamClosed(stream.number, why))
        if stream.host is not but:
            stream.host.outbox.say(StreamClosed(stream.host_number, why))
        if not self.count:
            self._on_none()

    def _unknown(self, sender: End, number: int) -> None:
        """Just closed, or never its own: the answer does not say which."""
        self._metrics.count("unknown_streams_total")
        sender.outbox.say(StreamClosed(number, Why.UNKNOWN))
