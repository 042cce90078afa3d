"""When a session's tree is frozen, unless the daemon extends the deadline (F2).

The dead man's switch of a lease: a daemon that hangs or is stopped cannot fence its sessions, so it
sets a deadline here for each lease it holds. This module knows nothing of leases and never thaws.
"""

from __future__ import annotations

import os


class Deadlines:
    """By session: its control group and the deadline, in seconds of CLOCK_BOOTTIME."""

    def __init__(self) -> None:
        self._by_session: dict[str, tuple[str, float]] = {}

    def set(self, session: str, group: str, until: float | None) -> None:
        """None: no deadline."""
        if until is None:
            self.drop(session)
        else:
            self._by_session[session] = (group, until)

    def drop(self, session: str) -> None:
        self._by_session.pop(session, None)

    def next(self) -> float | None:
        return min((until for _, until in self._by_session.values()), default=None)

    def passed(self, now: float) -> list[tuple[str, str]]:
        """Sessions and groups whose deadline has passed; each is returned once."""
        due = [(s, group) for s, (group, until) in self._by_session.items() if until <= now]
        for session, _ in due:
            del self._by_session[session]
        return due


def freeze(group: str) -> str:
    """Tell the kernel to freeze, without waiting: the keeper never waits. Returns "" or the
    error."""
    try:
        fd = os.open(f"{group}/cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1")
        finally:
            os.close(fd)
    except OSError as error:
        return str(error)
    return ""
