"""The deposits: per session its descriptors by name, its state blob, its pid and, once known, its
end."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Any

Status = dict[str, Any]  # {"code": 7} or {"signal": 9}

UNCLAIMED_MAX_S = 60.0  # a deposit follows its launch within the launch's time limit
UNCLAIMED_MAX = 1024  # ends of processes without a deposit (yet); the oldest is dropped first


class Deposit:
    """The descriptors and state held for one session."""

    def __init__(self, pid: int, fds: dict[str, int], blob: bytes) -> None:
        self.pid = pid
        self.fds = fds
        self.blob = blob
        self.status: Status | None = None

    def close(self) -> None:
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}


class Custody:
    """All deposits of this keeper."""

    def __init__(self) -> None:
        self.deposits: dict[str, Deposit] = {}
        # A session may end before its deposit arrives (the daemon died in between, or the command
        # was very short): its status waits here.
        self._unclaimed: OrderedDict[int, tuple[float, Status]] = OrderedDict()

    def deposit(self, session: str, pid: int, fds: dict[str, int], blob: bytes) -> Deposit:
        """Add or replace a deposit. A status that came first is attached."""
        old = self.deposits.pop(session, None)
        if old is not None:
            old.close()
        new = Deposit(pid, fds, blob)
        at, status = self._unclaimed.pop(pid, (0.0, None))
        # Later the pid may belong to another process.
        if status is not None and time.monotonic() - at < UNCLAIMED_MAX_S:
            new.status = status
        self.deposits[session] = new
        return new

    def update(self, session: str, blob: bytes) -> None:
        if session in self.deposits:
            self.deposits[session].blob = blob

    def release(self, session: str) -> None:
        old = self.deposits.pop(session, None)
        if old is not None:
            old.close()

    def ended(self, pid: int, status: Status) -> str | None:
        """Record an end; returns the session it belongs to, if there is a deposit."""
        for session, deposit in self.deposits.items():
            if deposit.pid == pid and deposit.status is None:
                deposit.status = status
                return session
        self._unclaimed[pid] = (time.monotonic(), status)
        while len(self._unclaimed) > UNCLAIMED_MAX:
            self._unclaimed.popitem(last=False)
        return None
