"""Files replaced as a whole: written beside, brought to disk, renamed. A crash leaves the old one
or the new one, never half."""

from __future__ import annotations

import contextlib
import os


def replace(path: str, data: bytes) -> None:
    """Raises OSError and leaves the old file when the new one cannot be written. The new one is its
    owner's alone."""
    new = f"{path}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.rename(new, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def sync_directory(directory: str) -> None:
    """Names made, changed and removed here are on disk: without it a rename may be undone by a loss
    of power."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
