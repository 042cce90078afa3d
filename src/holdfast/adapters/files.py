"""Files replaced as a whole: written beside, brought to disk, renamed. A crash leaves the old one
or the new one, never half."""

from __future__ import annotations

import contextlib
import os


def replace(path: str, data: bytes, mode: int = 0o600) -> None:
    """Raises OSError and leaves the old file when the new one cannot be written."""
    new = f"{path}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
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
