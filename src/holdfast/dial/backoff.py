"""How long to wait before the next try: longer each time, and never all at once. A relay that comes
back finds its hosts spread over seconds, not in one wave. And when to leave one that says it ends:
operators first, then their hosts, long before it would cut them off."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S, MOST_S = 0.2, 20.0
SOON_MOST_S = 1.0  # while the next relay may be there at any moment
_LEAVE_SHARE = 0.05  # of the time a relay gives: within this operators go, within twice this hosts
_GIVEN_MOST_S = 60.0
_NEXT_S = 5.0  # for another to begin where one has ended


class Backoff:
    """Of one connection. `chance` gives numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._tries = 0

    def wait_s(self, most_s: float = MOST_S) -> float:
        """Before the next try: anything up to a bound that doubles until it is `most_s`."""
        bound = FIRST_S * 2.0**self._tries
        if bound < most_s:
            self._tries += 1
        return min(bound, most_s) * (0.5 + 0.5 * self._chance())

    def succeeded(self) -> None:
        """It held for a while: the next loss is a new story."""
        self._tries = 0


class Leaving:
    """When to leave a relay that ends within so many seconds, counted from when it said so."""

    def __init__(self, within_s: float, chance: Callable[[], float]) -> None:
        given_s = max(0.0, min(_GIVEN_MOST_S, within_s))  # whatever it says
        self.operator_s = given_s * _LEAVE_SHARE * chance()
        self.host_s = given_s * _LEAVE_SHARE * (1 + chance())
        # Later than this nobody waits for anything: an operator for its answers, a host for its
        # operators.
        self.operator_latest_s, self.host_latest_s = given_s / 4, given_s / 3
        self.soon_s = given_s + _NEXT_S  # so long whoever left dials again soon
