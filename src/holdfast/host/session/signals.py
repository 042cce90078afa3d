"""Signals to what runs in a session: to the foreground, and the hang-up at its end. What may be
sent is judged before; a tree that does not react is killed elsewhere (closing.py)."""

from __future__ import annotations

import contextlib
import os
import signal

from holdfast.adapters import pty
from holdfast.model.spec import Place


def signal_foreground(master: int, number: int) -> None:
    group = pty.foreground_pgid(master)
    if group > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # sudo's are root's
            os.killpg(group, number)


def hang_up(place: Place, master: int) -> None:
    """As a terminal that is closed does it. What is stopped is continued, so that it can exit."""
    for number in (signal.SIGHUP, signal.SIGCONT):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(place.shell_pid or place.pid, number)
    for number in (signal.SIGHUP, signal.SIGCONT):
        signal_foreground(master, number)
