"""Rates: how fast an actor may write, counted by token buckets.

A bucket fills at its rate up to a burst, and an input takes from it or is refused whole. A clock
that goes backwards neither fills a bucket (a refund) nor keeps it from filling until it has caught
up (a freeze): counting goes on from the new now. Who has which rate is said by envelopes.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument, LimitReached, RateLimited
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import RATE_BUCKETS_MAX, RATE_BURST_S
from holdfast.model.record import Record


class Limits(Record):
    """The rates of one actor in one session; None: not limited."""

    inputs_per_s: float | None = None
    bytes_per_s: float | None = None


class Bucket:
    """One rate being counted. It begins full."""

    __slots__ = ("_level", "_rate", "_seen")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._level = self.burst
        self._seen = now

    @property
    def burst(self) -> float:
        """At least 1: a slow rate still lets an input through at a time."""
        return max(1.0, self._rate * RATE_BURST_S)

    def wait_s(self, amount: float, rate: float, now: float) -> float:
        """How long until so much may be taken; 0: now. The rate may have changed since."""
        self._level = min(self.burst, self._level + max(0.0, now - self._seen) * self._rate)
        self._seen = now
        self._rate = rate
        self._level = min(self.burst, self._level)
        return max(0.0, amount - self._level) / rate

    def take(self, amount: float) -> None:
        self._level -= amount

    def full(self, now: float) -> bool:
        return self._level + max(0.0, now - self._seen) * self._rate >= self.burst


class Rates:
    """The buckets of every actor in every session. A connection has none of its own: connecting
    again fills nothing."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[SessionId, ActorId, str], Bucket] = {}

    def charge(
        self, actor: ActorId, session: SessionId, limits: Limits, size: int, now: float
    ) -> None:
        """Count one input of `size` bytes; if that is too fast, refuse it and count nothing."""
        wanted = [
            (what, amount, rate)
            for what, amount, rate in (
                ("inputs", 1.0, limits.inputs_per_s),
                ("bytes", float(size), limits.bytes_per_s),
            )
            if rate is not None
        ]
        buckets = [self._bucket((session, actor, what), rate, now) for what, _, rate in wanted]
        for bucket, (what, amount, rate) in zip(buckets, wanted, strict=True):
            wait = bucket.wait_s(amount, rate, now)
            if amount > bucket.burst:
                raise InvalidArgument(
                    f"an input of {size} bytes is more than the limit of {rate:g} {what} a second "
                    "ever lets through",
                    hint=f"send at most {int(bucket.burst)} bytes at once",
                )
            if wait > 0:
                raise RateLimited(
                    f"more than {rate:g} {what} a second; allowed again in {_seconds(wait)} s",
                    hint="nothing was typed; wait so long and send it again",
                )
        for bucket, (_, amount, _rate) in zip(buckets, wanted, strict=True):
            bucket.take(amount)

    def _bucket(self, key: tuple[SessionId, ActorId, str], rate: float, now: float) -> Bucket:
        if key not in self._buckets:
            if len(self._buckets) >= RATE_BUCKETS_MAX:
                # A full bucket is as good as none. Any other would be filled by being dropped.
                self._buckets = {k: kept for k, kept in self._buckets.items() if not kept.full(now)}
            if len(self._buckets) >= RATE_BUCKETS_MAX:
                raise LimitReached(f"already {RATE_BUCKETS_MAX} rates are being counted")
            self._buckets[key] = Bucket(rate, now)
        return self._buckets[key]


def _seconds(wait: float) -> str:
    """Rounded up, so that whoever waits as long as it says is let through."""
    return f"{wait + 0.01:.2f}"
