"""Journal and other files of a session, from one host's disk to the other's.

All of them, but for what only the host that wrote it can read: whole, in pieces. Later those that
changed since, once more. At the target they come to a directory aside, which becomes the session's
in one step, when it is known that the session lives there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator

from holdfast.adapters import atomic_file
from holdfast.host.continuity.moving import messages as m
from holdfast.model.errors import ProtocolViolation, StorageFailed, why_not
from holdfast.model.limits import HOST_MESSAGE_BYTES

_PIECE_BYTES = HOST_MESSAGE_BYTES // 2
_SEGMENT = "journal-"
# The end of an earlier incarnation; this one lives. What is written beside and renamed.
_LEFT_OUT = ("tombstone.json", "unacknowledged", "output", "screen", "near-end")

Stamp = tuple[int, int, int]  # what tells that it is still the same file
Known = dict[str, Stamp]  # by path


async def send_files(
    directory: str, known: Known, send: Callable[[m.File], Awaitable[None]]
) -> None:
    """Those that are not `known` to be there as they are, which is brought up to date."""
    for path in await asyncio.to_thread(lambda: sorted(_files_of(directory))):
        found = await asyncio.to_thread(_read, f"{directory}/{path}", known.get(path))
        if found is None:
            continue
        stamp, data = found
        if os.path.basename(path).startswith(_SEGMENT):
            data = data.rstrip(b"\0")  # room ahead; no record ends with it, but its checksum may
            data += bytes(8)
        at = 0
        while True:
            piece = data[at : at + _PIECE_BYTES]
            await send(m.File(path, at, piece))
            at += len(piece)
            if at >= len(data):
                break
        known[path] = stamp


def _read(path: str, known: Stamp | None) -> tuple[Stamp, bytes] | None:
    """None: it is known, or not there any longer. The stamp is the older: what is written meanwhile
    is sent once more."""
    try:
        status = os.stat(path)
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if known == stamp:
            return None
        with open(path, "rb") as file:
            return stamp, file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {why_not(error)}") from error


def _files_of(directory: str) -> Iterator[str]:
    for where, _, names in os.walk(directory):
        for name in names:
            path = os.path.relpath(f"{where}/{name}", directory)
            if path not in _LEFT_OUT and not name.endswith(".new"):
                yield path


class ArrivingFiles:
    """At the target: a directory aside."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def clear(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def take(self, piece: m.File) -> None:
        """Raises StorageFailed, and ProtocolViolation for a path that leads elsewhere. Blocking."""
        words = piece.path.split("/")
        if not all(words) or {".", ".."} & set(words) or "\0" in piece.path:
            raise ProtocolViolation("a file of the session is not below its directory")
        path = f"{self.directory}/{piece.path}"
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(path, flags | (0 if piece.offset else os.O_TRUNC), 0o600)
            with open(fd, "wb") as file:
                file.seek(piece.offset)
                file.write(piece.data)
        except OSError as error:
            raise StorageFailed(f"cannot write {path}: {why_not(error)}") from error

    def sync(self) -> None:
        """All of it is on the disk. Slow: in a thread."""
        for where, _, names in os.walk(self.directory):
            for name in names:
                fd = os.open(f"{where}/{name}", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            atomic_file.sync_directory(where)

    def become(self, directory: str) -> None:
        """The session's own. Done once; repeated, it is done already."""
        if not os.path.isdir(self.directory):
            return
        shutil.rmtree(directory, ignore_errors=True)  # what is known of it is older
        os.rename(self.directory, directory)
        atomic_file.sync_directory(os.path.dirname(directory))
