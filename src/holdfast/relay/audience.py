"""Incarnations of sessions, and who watches them: what a host sends once, fanned out.

A slow subscriber is told of a gap and holds up nobody (outbox.py). The *fastest* one sets the
host's pace: the host is told how far anybody has been sent (`taken`), and waits when a window's
worth is taken by none. So a lone subscriber is simply sent as fast as it reads, without gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model.ids import SessionId
from holdfast.relay.framing import framed
from holdfast.wire.relay_messages import Broadcast, Gone, Taken, Wanted, Why

if TYPE_CHECKING:
    from holdfast.relay.hosts import HostEnd
    from holdfast.relay.operators import OperatorEnd
    from holdfast.relay.streams import Stream

_REPORTS_PER_WINDOW = 4
_REPORT_FRAMES = 64  # small frames are reported too, so that a host can let go of them


class Subscription:
    """One operator's place in one audience."""

    __slots__ = ("gap", "incarnation", "operator")

    def __init__(self, operator: OperatorEnd, incarnation: Incarnation) -> None:
        self.operator, self.incarnation = operator, incarnation
        self.gap: tuple[int, int] | None = None  # the outbox's: what it left out and has not told


class Incarnation:
    """One epoch of a session, at the host connection that announced it."""

    __slots__ = (
        "_frames", "_size", "_taken", "_window", "epoch", "host", "last", "session", "streams",
        "subscriptions",
    )  # fmt: skip

    def __init__(self, session: SessionId, epoch: int, host: HostEnd, window: int) -> None:
        self.session, self.epoch, self.host = session, epoch, host
        self._window = window
        self.subscriptions: dict[OperatorEnd, Subscription] = {}
        self.streams: dict[int, Stream] = {}  # opened by the session's id
        self.last = self._taken = -1  # numbers of the last broadcast, and of the last one taken
        self._size = self._frames = 0  # taken since the last report

    def broadcast(self, message: Broadcast) -> None:
        frame = framed(message)
        self.last = message.seq
        if not self.subscriptions:
            self.took(message.seq, len(frame))
            return
        for subscription in self.subscriptions.values():
            subscription.operator.outbox.broadcast(frame, subscription, message.seq)

    def took(self, seq: int, size: int) -> None:
        """A subscriber was sent this one; the first to get so far counts."""
        if seq <= self._taken:
            return
        self._taken = seq
        self._size += size
        self._frames += 1
        if (
            self._size * _REPORTS_PER_WINDOW >= self._window
            or self._frames >= _REPORT_FRAMES
            or not size  # a gap was told: whatever was held up for it is free
        ):
            self._report()

    def _report(self) -> None:
        self._size = self._frames = 0
        self.host.outbox.say(Taken(self.session, self._taken))

    def join(self, operator: OperatorEnd) -> None:
        if operator not in self.subscriptions:
            self.subscriptions[operator] = Subscription(operator, self)
            if len(self.subscriptions) == 1:
                self.host.outbox.say(Wanted(self.session, True))

    def leave(self, operator: OperatorEnd) -> None:
        subscription = self.subscriptions.pop(operator, None)
        if subscription is None:
            return
        operator.outbox.forget(subscription)
        if not self.subscriptions:
            self.host.outbox.say(Wanted(self.session, False))
            if self._taken < self.last:  # what waited for it alone waits for nobody
                self._taken = self.last
                self._report()

    def end(self, why: Why) -> None:
        """Not routed any more. What subscribers were already due still comes, then the end."""
        for operator in list(self.subscriptions):
            del self.subscriptions[operator]
            operator.subscribed.pop(self.session, None)
            operator.outbox.say_after(Gone(self.session, why))
