"""Starting a session at the requested level."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.record import Record
from holdfast.model.spec import LaunchSpec, Place


class Launched(Record):
    """A running session: its place, and descriptors that the caller now owns."""

    place: Place
    master: int  # PTY master, non-blocking, close-on-exec
    pidfd: int  # of place.pid
    # the connection to its keeper, SEQPACKET; the keeper ends the session if this is closed before
    # anything was deposited
    keeper: int
    keeper_pid: int
    gate: int = -1  # answers the session's system call filter; -1: it has none
    gate_page: int = -1  # its memory


class Launch(Protocol):
    """Raises CommandNotFound, LaunchFailed, LevelUnavailable or NotPermitted, leaving nothing
    behind."""

    async def launch(self, spec: LaunchSpec, inherit: dict[int, int]) -> Launched:
        """`inherit` maps a descriptor number inside the session to one of the caller's."""

    async def close(self) -> None: ...
