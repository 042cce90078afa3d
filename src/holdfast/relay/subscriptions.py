"""The subscribers of a session: a host's broadcasts, fanned out.

A slow subscriber gets a gap and holds up nobody (outbox.py). The *fastest* one sets the host's
pace: the host learns how far the fastest has been sent (`taken`), and waits when nobody has taken a
window's worth. So a single subscriber is served as fast as it reads, without gaps.

Another relay is one subscriber, and fans out to its own (peer_hosts.py); what it was sent counts as
taken when it reports that one of its subscribers was sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model.ids import SessionId
from holdfast.relay.server_frame import framed
from holdfast.wire.relay_messages import (
    Announced,
    Broadcast,
    SessionGone,
    SubscribersWanted,
    Taken,
    Why,
)

if TYPE_CHECKING:
    from holdfast.relay.host_end import HostEnd
    from holdfast.relay.streams import OperatorSide, RelayStream

_REPORTS_PER_WINDOW = 4
_REPORT_FRAMES = 64  # after so many small frames, so that a host can free them


class Subscription:
    """One operator's subscription to one session."""

    __slots__ = ("gap", "operator", "subscribers")

    def __init__(self, operator: OperatorSide, subscribers: Subscribers) -> None:
        self.operator, self.subscribers = operator, subscribers
        self.gap: tuple[int, int] | None = None  # dropped by the outbox and not reported yet

    def took(self, seq: int, size: int) -> None:
        if not self.operator.is_peer:
            self.subscribers.took(seq, size)


class Subscribers:
    """The subscribers of one epoch of a session. Subclasses know where its host is."""

    __slots__ = ("_frames", "_size", "_taken", "_window", "epoch", "last", "session",
                 "subscriptions")  # fmt: skip

    def __init__(self, session: SessionId, epoch: int, window: int) -> None:
        self.session, self.epoch, self._window = session, epoch, window
        self.subscriptions: dict[OperatorSide, Subscription] = {}
        self.last = self._taken = -1  # numbers of the last broadcast and the last one taken
        self._size = self._frames = 0  # taken since the last report

    def want(self, wanted: bool) -> None:
        """There are subscribers now, or none are left."""
        raise NotImplementedError

    def report(self, taken: int) -> None:
        """The fastest subscriber has been sent everything up to here."""
        raise NotImplementedError

    def broadcast(self, message: Broadcast) -> None:
        frame = framed(message)
        self.last = message.seq
        if not self.subscriptions:
            self.took(message.seq, len(frame))
            return
        for subscription in self.subscriptions.values():
            subscription.operator.outbox.broadcast(frame, subscription, message.seq)

    def took(self, seq: int, size: int) -> None:
        """A subscriber was sent this one; the first to get this far counts."""
        if seq <= self._taken:
            return
        self._taken = seq
        self._size += size
        self._frames += 1
        if (
            self._size * _REPORTS_PER_WINDOW >= self._window
            or self._frames >= _REPORT_FRAMES
            or not size  # a gap was sent, or a relay reports: what was held for it is free
        ):
            self._report()

    def _report(self) -> None:
        self._size = self._frames = 0
        self.report(self._taken)

    def join(self, operator: OperatorSide) -> None:
        if operator not in self.subscriptions:
            self.subscriptions[operator] = Subscription(operator, self)
            if len(self.subscriptions) == 1:
                self.want(True)

    def leave(self, operator: OperatorSide) -> None:
        subscription = self.subscriptions.pop(operator, None)
        if subscription is None:
            return
        operator.outbox.forget(subscription)
        if not self.subscriptions:
            self.want(False)
            if self._taken < self.last:  # nobody else waits for what it had not taken
                self._taken = self.last
                self._report()

    def end(self, why: Why) -> None:
        """No longer routed. Subscribers still get what is queued, then the end."""
        for operator in list(self.subscriptions):
            del self.subscriptions[operator]
            operator.subscribed.pop(self.session, None)
            operator.outbox.say_after_broadcasts(SessionGone(self.session, why))


class RoutedIncarnation(Subscribers):
    """One epoch of a session, at the host connection that announced it."""

    __slots__ = ("announced", "host", "streams")

    def __init__(
        self, session: SessionId, announced: Announced, host: HostEnd, window: int
    ) -> None:
        super().__init__(session, announced.epoch, window)
        self.announced, self.host = announced, host
        self.streams: dict[int, RelayStream] = {}  # opened by the session's id

    def want(self, wanted: bool) -> None:
        self.host.outbox.say(SubscribersWanted(self.session, wanted))

    def report(self, taken: int) -> None:
        self.host.outbox.say(Taken(self.session, taken))
