"""Signals for what runs in a session: to the foreground, and the hang-up at its end. What may be
sent is judged before; how a tree that does not listen is ended is not here (live.py, halts.py)."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from holdfast.adapters import pty

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession


def signal_foreground(live: LiveSession, number: int) -> None:
    group = pty.foreground_pgid(live.fds.master)
    if group is not None and group > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # sudo's are root's
            os.killpg(group, number)


def hang_up(live: LiveSession) -> None:
    """As a terminal that is closed does it. What is stopped is continued, so that it can go."""
    place = live.spec.place
    for number in (signal.SIGHUP, signal.SIGCONT):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(place.shell_pid or place.pid, number)
    for number in (signal.SIGHUP, signal.SIGCONT):
        signal_foreground(live, number)
