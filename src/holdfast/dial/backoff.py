"""How long to wait before the next try: longer each time, with jitter, so that hosts return to a
relay over several seconds and not in one wave. And when to leave a relay that is stopping:
operators first, then their hosts, long before it would cut them off."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S, MOST_S = 0.2, 20.0
SOON_MOST_S = 1.0  # while the next relay may come up at any moment
_LEAVE_SHARE = (
    0.05  # of the time a relay gives: operators leave within this share, hosts within twice
)
_GIVEN_MOST_S = 60.0
_NEXT_S = 5.0  # for another relay to start where one has stopped


class Backoff:
    """For one connection. `chance` returns numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._tries = 0

    def wait_s(self, most_s: float = MOST_S) -> float:
        """Before the next try: a random time up to a bound that doubles until it is `most_s`."""
        bound = FIRST_S * 2.0**self._tries
        if bound < most_s:
            self._tries += 1
        return min(bound, most_s) * (0.5 + 0.5 * self._chance())

    def succeeded(self) -> None:
        """The connection lasted: start over at the next loss."""
        self._tries = 0


class Leaving:
    """When to leave a relay that stops within so many seconds, counted from its announcement."""

    def __init__(self, within_s: float, chance: Callable[[], float]) -> None:
        given_s = max(0.0, min(_GIVEN_MOST_S, within_s))  # whatever it says
        self.operator_s = given_s * _LEAVE_SHARE * chance()
        self.host_s = given_s * _LEAVE_SHARE * (1 + chance())
        # The latest time to leave: an operator does not wait for answers any longer, nor a host for
        # its operators.
        self.operator_latest_s, self.host_latest_s = given_s / 4, given_s / 3
        self.soon_s = given_s + _NEXT_S  # for this long, retry with short waits
