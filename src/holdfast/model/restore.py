"""What a restore must know of a dumped tree, and what came of it.

Values only. Who restores: host/continuity; with what: adapters/criu, adapters/launch.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class ContinuityKind(StrEnum):
    """What of a session goes on."""

    MEMORY = "memory"  # its processes, as they were
    APPLICATION = "application"  # its program's own state; its command was started again with that
    COLD = "cold"  # what is known about it; its command was started again


class MountKind(StrEnum):
    """A mount of the session that is made by us, not by CRIU, when it is restored."""

    HOST = "host"  # a file system of the host, bound at its own path
    KEPT = "kept"  # a directory of the host's that stays visible below a hidden one
    COVER = "cover"  # the empty directory over a hidden one
    DEV = "dev"
    PTS = "pts"
    SHM = "shm"  # /dev/shm, when there was nothing in it


class MountMark(Record):
    """One such mount, and the name that the images have for it."""

    cookie: str
    path: str
    kind: MountKind
    source: str = ""  # what is bound there, of one that is bound; empty: what is at this path here


class DumpedTree(Record):
    """What a restore must know of a tree that the images do not say."""

    shell: int  # pid of the main process, in the session's own numbering
    tty: str  # the path of its terminal there
    tty_keys: tuple[str, ...]  # the names that the images have for that terminal
    mounts: tuple[MountMark, ...]
    # which command's group each process was in: pid in the session's numbering -> directory below
    # the session's own group; those in the session's group itself are left out
    groups: dict[str, str]
    gate: bool  # it was under the exec gate's system call filter


class PeerReset(Record):
    """A connection to a peer outside of the session, which a restore could not bring back (M3)."""

    local: str  # address and port of the session's end
    peer: str  # and of the other
    pid: int  # a process that had it open, in the session's own numbering
    process: str  # its name


class RestorePhase(Record):
    """One step of a restore and what it took."""

    name: str  # what was done
    ms: float  # how long it took, in milliseconds


class RestoredFiles(Record):
    """What a restore did with files that the checkpoint has."""

    put_back: int = 0  # files that became what they were; those made since count too
    kept_in: tuple[str, ...] = ()  # where what was there instead is kept
    left: tuple[str, ...] = ()  # files that differ and were left as they are: the first 20
    left_count: int = 0  # how many these are in all


class RestoreReport(Record):
    """What a restore did."""

    checkpoint: str  # id of the checkpoint; empty when the session was started cold
    epoch_before: int  # the epoch that ended
    epoch: int  # the epoch that began
    phases: tuple[
        RestorePhase, ...
    ] = ()  # what was done, in order; nothing of a journal is executed
    bytes: int = 0  # size of the checkpoint
    reset: tuple[PeerReset, ...] = ()  # connections to peers outside, which were reset
    inputs_lost: int = 0  # recorded inputs that came after the checkpoint: not part of it
    kind: ContinuityKind = ContinuityKind.MEMORY  # what of the session goes on
    files: RestoredFiles | None = None  # what was done with captured files
