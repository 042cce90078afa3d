"""The score by which the kernel chooses what to end when memory runs out.

The supervisor lowers its own, so that a program that takes too much is ended, and not what starts
the host again; each keeper does the same for itself (native/hold_keeper.c). What they start gets
back what was before. Without the right to do so, a score that was raised is lowered again as far as
that is permitted to everybody.
"""

from __future__ import annotations

import contextlib
import os

_PATH = "/proc/self/oom_score_adj"
_PROTECTED = "-900"  # not -1000: memory that nobody may be ended for would halt the machine
_BEFORE = "HOLDFAST_OOM"  # in the environment of what the supervisor starts: the score before


def protect() -> None:
    """Of this process; what it starts finds in its environment what to restore."""
    with contextlib.suppress(OSError), open(_PATH, encoding="ascii") as file:
        os.environ[_BEFORE] = before = file.read().strip()
        if not _write(_PROTECTED) and int(before) > 0:
            _write("0")


def restore() -> None:
    if before := os.environ.get(_BEFORE):
        _write(before)


def _write(score: str) -> bool:
    """Whether it was permitted."""
    with contextlib.suppress(OSError):
        fd = os.open(_PATH, os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, score.encode()) > 0
        finally:
            os.close(fd)
    return False
