"""When a session's tree is to be frozen, unless the daemon puts it off (F2).

The dead man's handle behind a lease: a daemon that hangs or is stopped cannot fence its sessions,
so whoever holds a lease says here until when. What a lease is, is not known here; nothing is ever
thawed from here.
"""

from __future__ import annotations

import os


class Deadlines:
    """By session: its control group, and the moment, in seconds of CLOCK_BOOTTIME."""

    def __init__(self) -> None:
        self._by_session: dict[str, tuple[str, float]] = {}

    def set(self, session: str, group: str, until: float | None) -> None:
        """None: it is not to be frozen by time any more."""
        if until is None:
            self.drop(session)
        else:
            self._by_session[session] = (group, until)

    def drop(self, session: str) -> None:
        self._by_session.pop(session, None)

    def next(self) -> float | None:
        return min((until for _, until in self._by_session.values()), default=None)

    def passed(self, now: float) -> list[tuple[str, str]]:
        """Sessions and groups whose moment has come; each is told once."""
        due = [(s, group) for s, (group, until) in self._by_session.items() if until <= now]
        for session, _ in due:
            del self._by_session[session]
        return due


def freeze(group: str) -> str:
    """Ask the kernel for it, without waiting: the keeper never waits. "" or why it cannot be."""
    try:
        fd = os.open(f"{group}/cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1")
        finally:
            os.close(fd)
    except OSError as error:
        return str(error)
    return ""
