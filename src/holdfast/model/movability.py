"""Whether a session could be checkpointed and moved now: what is known of each process, what that
means, and what it would take."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.captured_files import CapturePlan
from holdfast.model.graph import Process
from holdfast.model.record import Record
from holdfast.model.state import Level


class MoveVerdict(StrEnum):
    """From the best to the worst."""

    MOVABLE = "movable"  # it comes back as it was
    RESETS = "resets"  # it comes back, but something of it is lost: the finding says what
    BLOCKS = "blocks"  # as long as this is so, the session cannot be moved

    @property
    def rank(self) -> int:
        return list(MoveVerdict).index(self)


class MoveFinding(Record):
    """One thing about a process, or about the session."""

    what: str  # what it is: `fd 7: io_uring`
    verdict: MoveVerdict  # what it does to a move
    why: str  # the reason
    remedy: str  # what would make it movable


class ProcessMovability(Record):
    """One process."""

    pid: int  # in the session's own numbering
    command: str  # command line, or the kernel's name for it
    verdict: MoveVerdict  # the worst of its findings
    findings: tuple[MoveFinding, ...] = ()  # what there is to say; empty when nothing


class MoveEstimate(Record):
    """What a checkpoint would take now."""

    bytes: int  # of memory, before compression
    frozen_ms: float  # for so long the session would stand still


class NeededFile(Record):
    """A program or library that is in use: another machine must have the same."""

    path: str  # where it is
    size: int  # in bytes
    build_id: str = ""  # of an ELF file, in hexadecimal; empty when it has none


class MoveTarget(Record):
    """Another machine, as far as it matters to a session that would be moved there."""

    name: str  # what the asker calls it
    isa: str  # its instruction set
    kernel: str  # its release
    criu: str  # version of its CRIU; empty when there is none that works
    missing: tuple[MoveFinding, ...] = ()  # files that it has not, or has in another version
    labels: tuple[str, ...] = ()  # that its config.toml gives it
    memory_free: int = 0  # bytes that its sessions could still use

    def named(self, name: str) -> MoveTarget:
        """As people call it, in its findings too."""
        missing = tuple(each.replace(what=f"{name}: {each.what}") for each in self.missing)
        return self.replace(name=name, missing=missing)


class Movability(Record):
    """Whether a session could be checkpointed and moved now, and what stands in the way."""

    movable: bool  # nothing blocks
    level: Level  # that the session was started at
    processes: tuple[ProcessMovability, ...]  # each with what there is to say about it
    estimate: MoveEstimate  # what a checkpoint would take
    findings: tuple[MoveFinding, ...] = ()  # about the session as a whole, and its target
    isa: str = ""  # instruction set of this machine
    kernel: str = ""  # its release
    needs: tuple[NeededFile, ...] = ()  # programs and libraries in use, if they were asked for
    capture: CapturePlan | None = None  # files that a checkpoint would have; null: it can have none


# -- what the judgement rests on ------------------------------------------------------------------


class DeletedFile(Record):
    """An open file that no longer has a name: it moves with the checkpoint, up to a limit."""

    fd: int
    path: str  # that it had
    size: int  # bytes on disk


class MoveFacts(Record):
    """What the kernel says of one process, besides what is in the graph."""

    process: Process
    tracer: int = 0  # pid of the process that debugs it; 0: none
    nested: tuple[str, ...] = ()  # kinds of namespaces of its own: `pid`, `user`, `ipc`
    inner_terminal: bool = False  # its controlling terminal is another than the session's
    maps_io_uring: bool = False
    queues: tuple[str, ...] = ()  # POSIX message queues that it has open
    deleted: tuple[DeletedFile, ...] = ()
    # of sockets of families that the graph does not name: descriptor -> the kernel's name
    protocols: dict[str, str] = {}  # noqa: RUF012 (a record is frozen)
    anonymous_bytes: int = 0  # memory that no file has


class HostAbility(Record):
    """What the host can do for a session."""

    level: Level  # that the session was started at
    is_root: bool
    criu: str = ""  # version; empty when there is none that works
