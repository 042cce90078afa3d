"""The files that a checkpoint has besides memory: which ones, as they were, and what a restore does
with them. Values only."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class RestoreFiles(StrEnum):
    """What a restore does with captured files that differ from those on disk."""

    # what the session itself wrote after the checkpoint is put back; what somebody else changed
    # after it had stopped is left, and refuses the restore if the session has it open
    ASK = "ask"
    KEEP = "keep"  # all stay as they are on disk
    RESTORE = "restore"  # all become what they were; what is on disk is kept beside


class CapturedFile(Record):
    """One regular file or symbolic link, as it was."""

    path: str  # absolute
    mode: int
    uid: int
    gid: int
    size: int = 0
    modified_ns: int = 0
    changed_ns: int = 0  # its ctime, which programs cannot set
    inode: int = 0
    link: str = ""  # where a symbolic link leads; then it has no bytes
    data: str = ""  # the name under which the checkpoint has its bytes
    open: bool = False  # a process has it open or mapped: it must have this size to be restored


class CapturedDirectory(Record):
    """One directory below a declared one, or that itself."""

    path: str
    mode: int


class LeftOut(Record):
    """A file or directory that a checkpoint does not have."""

    path: str  # absolute
    why: str  # the reason


class CapturePlan(Record):
    """Which files a checkpoint has, or would have now."""

    files: int = 0  # how many
    bytes: int = 0  # of all of them
    directories: tuple[str, ...] = ()  # declared ones that are captured whole
    left_out: tuple[LeftOut, ...] = ()  # what is not captured, and why: the first 20
    left_out_count: int = 0  # how many these are in all


class FileCapture(Record):
    """The files of one checkpoint."""

    roots: tuple[str, ...] = ()  # declared directories that are captured whole
    files: tuple[CapturedFile, ...] = ()
    directories: tuple[CapturedDirectory, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


class FileDifference(Record):
    """A file that is not as it was captured."""

    path: str
    changed_ns: int  # when it was last changed; of one that is missing, when its directory was
    file: CapturedFile | None = None  # as it was; None: there was none
    missing: bool = False  # there is none now
    size: int = 0  # that it has now
