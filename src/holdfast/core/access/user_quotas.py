"""How much of a host one unix user may use: connections, sessions, rings, disk.

A host of root serves every user of a machine. Root and the user that runs the host are not counted
against a quota, and some places are theirs alone, so that nobody can keep them from a halt. Pure:
what is used is passed in.
"""

from __future__ import annotations

from holdfast.model.errors import LimitReached, StorageFailed
from holdfast.model.limits import (
    OPERATORS_KEPT,
    OPERATORS_MAX,
    SESSIONS_KEPT,
    SESSIONS_MAX,
    USER_CONNECTIONS,
    USER_DISK_BYTES,
    USER_RING_BYTES,
    USER_SESSIONS,
)
from holdfast.model.record import Record


class UserQuotas(Record):
    """Of each unix user other than root and the host's own; settings of the host."""

    connections: int = USER_CONNECTIONS
    sessions: int = USER_SESSIONS
    ring_bytes: int = USER_RING_BYTES
    disk_bytes: int = USER_DISK_BYTES

    def check_connection(self, own: int, others: int, total: int, *, trusted: bool) -> None:
        """Raise unless one more may come. `own`: of the same user, or from inside the same session
        of the host's own user; `others`: of all that have no place kept for them."""
        _check_total(total, OPERATORS_MAX, "connections")
        if trusted:
            return
        if own >= self.connections:
            raise LimitReached(
                f"you have your limit of {self.connections} connections to this host",
                hint="close some; `user_connections` in its config.toml sets the limit",
            )
        kept = OPERATORS_MAX - OPERATORS_KEPT
        _check_total(others, kept, "connections of other users and from inside sessions")

    def check_session(self, used: Usage, ring_bytes: int, total: int, *, trusted: bool) -> None:
        """Raise unless this user may have one more session, with a ring of this size."""
        _check_total(total, SESSIONS_MAX, "sessions")
        if trusted:
            return
        _check_total(total, SESSIONS_MAX - SESSIONS_KEPT, "sessions of other users")
        if used.sessions >= self.sessions:
            raise LimitReached(
                f"you have your limit of {self.sessions} live sessions on this host",
                hint="end some; `user_sessions` in its config.toml sets the limit",
            )
        if used.ring_bytes + ring_bytes > self.ring_bytes:
            raise LimitReached(
                f"the rings of your sessions have {used.ring_bytes} of {self.ring_bytes} bytes, "
                f"and this one wants {ring_bytes}",
                hint="a smaller --ring, or end some; `user_ring_bytes` in config.toml sets it",
            )
        if used.disk_bytes >= self.disk_bytes:
            raise LimitReached(
                f"your sessions use {used.disk_bytes} bytes of disk; the limit is "
                f"{self.disk_bytes}",
                hint="ask the host's user to remove ended ones; `user_disk_bytes` in config.toml "
                "sets the limit",
            )

    def check_journal(self, disk_bytes: int, wanted: int) -> None:
        """Raise unless a running session may take so much more, with what all of its user's
        sessions use. Like a full disk: input is refused, and nobody is kept from stopping it."""
        if disk_bytes + wanted > self.disk_bytes:
            raise StorageFailed(
                f"the sessions of this session's unix user use {disk_bytes} bytes of disk, and "
                f"their quota is {self.disk_bytes}",
                hint="ask the host's user for `hold prune`; `user_disk_bytes` in its config.toml "
                "sets the quota",
            )


class Usage(Record):
    """What one unix user has of a host."""

    sessions: int
    ring_bytes: int
    disk_bytes: int


def _check_total(count: int, most: int, what: str) -> None:
    if count >= most:
        raise LimitReached(f"this host has its limit of {most} {what}", hint="try again later")
