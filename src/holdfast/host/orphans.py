"""Processes of sessions that nobody holds any more.

A daemon that dies between launching a session and depositing it, or a host that dies whole, leaves
processes which no session owns. In a cgroup they are found there; at level plain by the session id
every process of a session has in its environment. They are ended, so that what is buried is dead.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

from holdfast.model.ids import SessionId

_INIT = "hold-init"


def end_strays(sessions: Iterable[SessionId]) -> int:
    """SIGKILL to every process of these sessions that we may see; gives how many there were.

    The init of a plain session is left to find that its program has ended: it then ends the rest
    of its tree, also what has cleared its environment."""
    marks = tuple(f"HOLDFAST_SESSION={session}".encode() for session in sessions)
    if not marks:
        return 0
    found = 0
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid() and _is_marked(name, marks):
            found += 1
            if not _is_plain_init(name):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(name), signal.SIGKILL)
    return found


def _is_marked(pid: str, marks: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry in marks for entry in file.read().split(b"\0"))
    except OSError:
        return False


def _is_plain_init(pid: str) -> bool:
    """Ours, and not the first process of a pid namespace, with which the kernel ends the rest."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    except OSError:
        return False
    return fields["Name"].strip() == _INIT and len(fields.get("NSpid", "1").split()) == 1
