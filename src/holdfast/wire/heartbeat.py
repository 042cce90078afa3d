"""Detects records that a relay holds back.

Both ends number the records, so a missing record shows when the next one arrives. The last records
have no next one; for them each side sends every `beat_s` a sign of life and the number of records
it has received. An end that hears nothing for `patience_s`, or whose records are not confirmed
within that time, treats the channel as broken: a record was held back, or the peer is gone, which
looks the same.

No clock: the caller passes `now`, in seconds of a monotonic clock.
"""

from __future__ import annotations

from collections import deque

from holdfast.model.errors import ChannelBroken
from holdfast.model.limits import CHANNEL_BEAT_S, CHANNEL_PATIENCE_S

# Records sent within this fraction of the patience share the time of the first. So memory does not
# grow with their number, and a missing record is noticed a little early rather than late.
_BATCHES = 8


class Liveness:
    """Whether this end's records arrive, and whether the peer is alive."""

    def __init__(
        self,
        now: float,
        *,
        speaks_first: bool,
        beat_s: float = CHANNEL_BEAT_S,
        patience_s: float = CHANNEL_PATIENCE_S,
    ) -> None:
        self._beat_s, self._patience_s = beat_s, patience_s
        self._heard = now
        self._beat_at = now if speaks_first else now + beat_s
        self._sent = self._confirmed = 0
        self._waiting: deque[tuple[int, float]] = deque()  # last number, time of the first

    def sent(self, now: float) -> None:
        """One more record went out."""
        self._sent += 1
        waiting = self._waiting
        if waiting and now - waiting[-1][1] < self._patience_s / _BATCHES:
            waiting[-1] = (self._sent, waiting[-1][1])
        else:
            waiting.append((self._sent, now))

    def heard(self, now: float) -> None:
        """A record came from the peer."""
        self._heard = now

    def confirmed(self, received: int) -> None:
        """The peer says that it has the first `received` of ours."""
        if not self._confirmed <= received <= self._sent:
            raise ChannelBroken(
                f"the peer says it has {received} records; {self._sent} were sent, "
                f"{self._confirmed} confirmed"
            )
        self._confirmed = received
        while self._waiting and self._waiting[0][0] <= received:
            self._waiting.popleft()

    def beat_due(self, now: float) -> bool:
        """Whether a heartbeat is due. Calling it counts as sending one."""
        if now < self._beat_at:
            return False
        self._beat_at = now + self._beat_s
        return True

    def check(self, now: float) -> None:
        if now >= self._heard + self._patience_s:
            raise ChannelBroken(f"nothing was heard for {now - self._heard:.1f} s")
        if self._waiting and now >= self._waiting[0][1] + self._patience_s:
            raise ChannelBroken(
                f"records after number {self._confirmed} were not confirmed for "
                f"{now - self._waiting[0][1]:.1f} s"
            )

    def wake_at(self) -> float:
        """When to call `beat_due` and `check` next."""
        unconfirmed = self._waiting[0][1] if self._waiting else self._heard
        return min(self._beat_at, min(self._heard, unconfirmed) + self._patience_s)
