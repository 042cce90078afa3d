"""Being woken when a session's cgroup becomes empty, frozen or thawed.

The one part of observation the kernel announces by itself: `cgroup.events` is ready for POLLPRI
(selectors: EVENT via `poll`, epoll: EPOLLPRI) after each change, until it is read again. That a
process starts to wait for the terminal is announced by nobody; its state has to be looked at. That
the main process ended is announced by its pidfd, which the host holds already.
"""

from __future__ import annotations

import os

from holdfast.model.record import Record


class Population(Record):
    """`populated`: some process is left in the group or below it."""

    populated: bool
    frozen: bool


class CgroupEvents:
    """The opened `cgroup.events` of one session: poll `fileno()` for POLLPRI, then `read()`."""

    def __init__(self, cgroup: str) -> None:
        self._fd = os.open(f"{cgroup}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._fd

    def read(self) -> Population:
        """The facts now; takes the readiness away. A group that was removed is empty."""
        try:
            return parse(os.pread(self._fd, 4096, 0))
        except OSError:
            return Population(populated=False, frozen=False)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def parse(text: bytes) -> Population:
    lines = text.split(b"\n")
    return Population(populated=b"populated 1" in lines, frozen=b"frozen 1" in lines)
