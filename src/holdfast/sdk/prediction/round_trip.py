"""How far away a host is: whether its echo comes too late to type by.

Decided by the shortest of the latest round trips: one that took long says how busy a machine was,
several in a row that all did say how long the way is. No clock: durations come in."""

from __future__ import annotations

from collections import deque

SLOW_S = 0.030  # above this a late echo is felt
FAST_S = 0.020  # below this it is not; in between all stays as it is
SAMPLES = 3  # round trips that must agree


class RoundTrip:
    """The latest round trips, and what they say."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=SAMPLES)
        self.slow = False

    def took(self, seconds: float) -> None:
        self._latest.append(seconds)
        shortest = min(self._latest)
        if shortest < FAST_S:
            self.slow = False
        elif len(self._latest) == SAMPLES and shortest > SLOW_S:
            self.slow = True

    @property
    def doubtful(self) -> bool:
        """Whether it should be asked again now: the last one was slow and that is not settled."""
        return not self.slow and bool(self._latest) and self._latest[-1] > SLOW_S

    def forget(self) -> None:
        """Another connection."""
        self._latest.clear()
        self.slow = False
