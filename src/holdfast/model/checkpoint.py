"""A checkpoint: what is said of one when it is saved, and what the image store adds."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.captured_files import CapturePlan, LeftOut
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.state import Level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_PREFIX = "ck-"
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # as in the ids of sessions
_LENGTH = 16  # 80 random bits: no collisions within one host's store


class CheckpointId(str):
    """A checkpoint's random name, such as `ck-3k9xw2m7q0d5t8ha`. The prefix tells it from the name
    or id of a session, where a verb takes either."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        body = text.removeprefix(_PREFIX)
        if body == text or len(body) != _LENGTH or not set(body) <= set(_LETTERS):
            raise ValueError(f"not a checkpoint id: {text[:40]!r}")
        return super().__new__(cls, text)

    @classmethod
    def of_random(cls, entropy: bytes) -> Self:
        """From 16 random bytes, of which each gives one letter."""
        return cls(_PREFIX + "".join(_LETTERS[byte % 32] for byte in entropy[:_LENGTH]))


class Waking(Record):
    """What brings a session back that is asleep, besides a restore that somebody asks for."""

    on_use: bool = False  # it was not used: whoever uses it wakes it
    with_host_for: str = ""  # the host stopped: its next start, on behalf of this actor


class CheckpointKind(StrEnum):
    """What was saved, and so what coming back from it means."""

    MEMORY = "memory"  # the processes themselves, by CRIU
    APPLICATION = "application"  # what the program gave of its own state; it starts anew with that


class MemoryCopy(StrEnum):
    """How the memory in a checkpoint was copied."""

    PLAIN = "plain"  # copied while the session stood still
    GHOST = "ghost"  # that of large processes afterwards, from copy-on-write copies


class MachineNeeds(Record):
    """What a machine must have for these images; compared before anything is touched."""

    isa: str  # the instruction set, as `uname -m` says it
    kernel: str = ""  # release it was taken on; "" when that does not matter
    criu: str = ""  # version that wrote the images; "" for an application's own snapshot


class CheckpointDescription(Record):
    """What the host says of a checkpoint when it saves one."""

    session: SessionId
    session_name: str  # at that time
    epoch: int  # of the incarnation that was saved
    kind: CheckpointKind
    created_at: float  # UNIX time
    created_by: str  # actor id; "" for the host itself
    level: Level
    machine: MachineNeeds
    journal_seq: int  # the last entry of the journal that this state includes
    journal_head: bytes  # its hash
    note: str  # what the actor wrote about it
    frozen_ms: float  # for so long the session stood still
    total_ms: float  # from the request until the images were complete; storing adds to it

    @property
    def order(self) -> tuple[int, int, float]:
        """A later checkpoint of the same session is greater. Epoch and journal only rise, even if
        a clock does not."""
        return (self.epoch, self.journal_seq, self.created_at)


class Checkpoint(CheckpointDescription):
    """One that is stored."""

    id: CheckpointId
    host: bytes  # public key of the host that signed it
    raw_bytes: int  # of all images
    stored_bytes: int  # that this one added to the store: compressed, and without known chunks
    new_bytes: int = 0  # the same before compression
    method: MemoryCopy = MemoryCopy.PLAIN
    copied_at_once: tuple[str, ...] = ()  # large processes that had no ghost, each with the reason
    captured: CapturePlan = CapturePlan()  # which files it has, and which not


class CheckpointFile(Record):
    """One file of the images, in the order in which their bytes are stored."""

    path: str  # relative
    mode: int  # permission bits
    size: int = 0
    link: str = ""  # where a symbolic link leads; then it has no bytes
    directory: bool = False


class CheckpointInfo(Record):
    """A checkpoint, as people and programs see it."""

    id: str  # its id, which `hold restore` takes
    session: SessionId  # id of the session
    name: str  # of the session, when it was made
    epoch: int  # of the incarnation that is in it
    kind: CheckpointKind  # what was saved
    at: float  # when, in seconds since 1970
    actor: str  # name of the actor that asked for it
    note: str = ""  # what it is for, for people
    bytes: int = 0  # of all that is in it
    stored_bytes: int = 0  # that it added to the store: compressed, and without what was there
    frozen_ms: float = 0.0  # how long the session stood still
    total_ms: float = 0.0  # how long it took in all
    bytes_new: int = 0  # of `bytes`, those that no checkpoint of this host had before
    method: MemoryCopy = MemoryCopy.PLAIN  # how the memory in it was copied
    copied_at_once: tuple[str, ...] = ()  # large processes that had no ghost, each with the reason
    files: int = 0  # captured with it: what was open for writing, and declared directories
    file_bytes: int = 0  # of these files
    left_out: tuple[LeftOut, ...] = ()  # what was not captured, and why: the first 20
    left_out_count: int = 0  # how many these are in all
    journal_seq: int = 0  # the last entry of the session's journal that is part of it
