"""Journal and other files of a session that does not run, from one host's disk to the other's. At
the target they come to a directory aside, which becomes the session's in one step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from holdfast.adapters import atomic_file
from holdfast.host.continuity.handover.messages import SessionFile
from holdfast.model.errors import ProtocolViolation, StorageFailed, why_not

_PIECE_BYTES = 1 << 20
# Written anew at the target; and what is only beside another file until it is renamed.
_LEFT_OUT = ("tombstone.json", "unacknowledged", "arriving")
_UNFINISHED = ".new"


def pieces_of(directory: str) -> Iterator[SessionFile]:
    """All that is to go along. Raises StorageFailed."""
    try:
        for name in sorted(os.listdir(directory)):
            path = f"{directory}/{name}"
            if name in _LEFT_OUT or name.endswith(_UNFINISHED) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                offset = 0
                while data := file.read(_PIECE_BYTES):
                    yield SessionFile(name, offset, data)
                    offset += len(data)
                if not offset:
                    yield SessionFile(name, 0, b"")
    except OSError as error:
        raise StorageFailed(f"cannot read {directory}: {why_not(error)}") from error


class BroughtFiles:
    """Aside, at the target."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def begin(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory, mode=0o700)

    def take(self, piece: SessionFile) -> None:
        """Raises StorageFailed, and ProtocolViolation for a name that leads elsewhere."""
        if "/" in piece.path or "\0" in piece.path or piece.path in ("", ".", "..", *_LEFT_OUT):
            raise ProtocolViolation("that is no file of a session")
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(f"{self.directory}/{piece.path}", flags, 0o600)
            try:
                os.pwrite(fd, piece.data, piece.offset)
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageFailed(f"cannot write {piece.path}: {why_not(error)}") from error

    def sync(self) -> None:
        """All of it is on the disk. Blocking."""
        for name in os.listdir(self.directory):
            fd = os.open(f"{self.directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        atomic_file.sync_directory(self.directory)

    def become(self, directory: str) -> None:
        """The session's own. What was there of it is older."""
        shutil.rmtree(directory, ignore_errors=True)
        os.rename(self.directory, directory)
        atomic_file.sync_directory(os.path.dirname(directory))

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
