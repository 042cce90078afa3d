"""How long to wait before the next try: longer each time, and never all at once. A relay that comes
back finds its hosts spread over seconds, not in one wave."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S, MOST_S = 0.2, 20.0


class Backoff:
    """Of one connection. `chance` gives numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._tries = 0

    def wait_s(self) -> float:
        """Before the next try: anything up to a bound that doubles."""
        bound = min(MOST_S, FIRST_S * 2.0 ** min(self._tries, 16))
        self._tries += 1
        return bound * (0.5 + 0.5 * self._chance())

    def succeeded(self) -> None:
        """It held for a while: the next loss is a new story."""
        self._tries = 0
