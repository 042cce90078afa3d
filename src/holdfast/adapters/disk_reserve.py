"""Room kept for the next version of one file, so that a disk without blocks or inodes can still
take it: an allocated file beside it, `PATH.reserve`, which becomes the new version.

Nothing here helps against a disk that is read-only or broken.
"""

from __future__ import annotations

import contextlib
import os

from holdfast.adapters import atomic_file


class DiskReserve:
    """Of one file."""

    def __init__(self, path: str) -> None:
        self._path, self._reserve = path, f"{path}.reserve"

    def keep(self, size: int) -> None:
        """At least so many bytes are allocated. Raises OSError when they cannot be."""
        fd = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size < size:
                os.posix_fallocate(fd, 0, size)
        finally:
            os.close(fd)

    def spend(self, data: bytes) -> None:
        """Replace the file with this, written into the reserve. Raises OSError and leaves the file
        as it was when there is no reserve or the disk does not take it. The old version's room is
        free afterwards: it is kept as the next reserve."""
        fd = os.open(self._reserve, os.O_WRONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            with open(fd, "wb", buffering=0, closefd=False) as file:
                if file.write(data) != len(data):
                    raise OSError(f"cannot write {self._reserve} whole")
            os.ftruncate(fd, len(data))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(self._reserve, self._path)
        with contextlib.suppress(OSError):  # whoever writes next asks again
            self.keep(size)
        atomic_file.sync_directory(os.path.dirname(self._path))
