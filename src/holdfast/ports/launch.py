"""Starting a session at the requested level, and restoring one from a checkpoint."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.restore import DumpedTree, PeerReset, RestorePhase
from holdfast.model.size import Size
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


class RestoreSpec(Record):
    """Everything a restore needs besides the images; complete, so that the launcher decides
    nothing."""

    session: SessionId
    uid: int  # whose the terminal is
    size: Size
    before: Place  # where it was; of its mounts and its main process the same is made again
    tree: DumpedTree
    unread: str  # in hexadecimal: typed into the terminal, and read by no program


class RestoredTree(Record):
    """A restored session that does not run yet: its control group is frozen."""

    launched: Launched
    phases: tuple[RestorePhase, ...]
    reset: tuple[PeerReset, ...]


class CriuExtra(Record):
    """What a CRIU gets besides its socket: for our shim in it."""

    fds: tuple[int, ...]  # of the caller's
    environment: dict[str, str]  # in which {0} is the number that the first of them has there


NOTHING_MORE = CriuExtra((), {})


class Launch(Protocol):
    """Raises CommandNotFound, LaunchFailed, LevelUnavailable or NotPermitted, leaving nothing
    behind."""

    async def launch(self, spec: LaunchSpec, inherit: dict[int, int]) -> Launched:
        """`inherit` maps a descriptor number inside the session to one of the caller's."""

    async def restore(self, spec: RestoreSpec, images: int) -> RestoredTree:
        """From the images in the directory that is open as this descriptor of the caller's. Raises
        RestoreFailed, leaving nothing behind."""

    async def start_criu(self, socket: int, more: CriuExtra = NOTHING_MORE) -> int:
        """`criu swrk` with that end of a socket pair. Gives its pidfd."""

    async def start_unread_reader(self, socket: int, master: int) -> None:
        """A process with that end of a socket pair, for the terminal behind this master: see
        adapters/launch/unread_reader.py."""

    async def close(self) -> None: ...
