"""The host's time of day, which never goes back while a daemon lives.

Envelopes expire by it and records are dated with it. A clock set back must not bring an expired
right to life, so the latest time seen stands until the clock has passed it again.
"""

from __future__ import annotations

import time

_latest = 0.0


def now() -> float:
    global _latest
    read = time.time()
    if read > _latest:
        _latest = read
    return _latest


def not_before(at: float) -> None:
    """Something was dated so by an earlier daemon."""
    global _latest
    _latest = max(_latest, at)
