"""The host's time of day, which never goes back while a daemon lives.

Envelopes expire by it and records are dated with it. A clock set back must not bring an expired
right to life, so time goes on from the latest seen until the clock has passed that again. It does
go on: a turn held idly, a rate that was used up and an envelope made since must end in their time.
"""

from __future__ import annotations

import time

_latest = 0.0
_behind: float | None = None  # by the monotonic clock, when the clock was last seen behind


def now() -> float:
    global _latest, _behind
    read = time.time()
    if read >= _latest:
        _latest, _behind = read, None
        return read
    ticks = time.monotonic()
    if _behind is not None:
        _latest += ticks - _behind
    _behind = ticks
    return _latest


def not_before(at: float) -> None:
    """Something was dated so by an earlier daemon."""
    global _latest
    _latest = max(_latest, at)
