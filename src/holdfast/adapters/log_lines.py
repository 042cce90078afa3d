"""Log lines of daemon and relay, so many per place in the code: whoever can cause a line can cause
a million of them, and must not fill the disk or bury what matters.

Each place that logs may write a burst, then a line now and then, which says how many were left out.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

BURST_LINES = 20  # of one place: enough to see what happens
REFILL_S = 5.0  # for one more line
_FORMAT = "%(asctime)s %(name)s: %(message)s"


class RepeatFilter(logging.Filter):
    """Drops lines beyond the rate of their place. Their number is bounded by the code's size."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place = self._places.setdefault((record.pathname, record.lineno), _Place(self._clock()))
        if not place.takes(self._clock()):
            place.left_out += 1
            return False
        if place.left_out:
            record.msg = f"{record.getMessage()} [{place.left_out} more like this were left out]"
            record.args = ()
            place.left_out = 0
        return True


class _Place:
    """One call that logs."""

    __slots__ = ("_lines", "_seen", "left_out")

    def __init__(self, now: float) -> None:
        self._lines, self._seen = float(BURST_LINES), now
        self.left_out = 0

    def takes(self, now: float) -> bool:
        self._lines = min(BURST_LINES, self._lines + (now - self._seen) / REFILL_S)
        self._seen = now
        if self._lines < 1:
            return False
        self._lines -= 1
        return True


class _Stderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Standard error; `written` is called after each line."""

    def __init__(self, written: Callable[[], None]) -> None:
        super().__init__(sys.stderr)
        self._written = written

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        self._written()


def log_to_stderr(written: Callable[[], None] = lambda: None) -> None:
    handler = _Stderr(written)
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[handler])
