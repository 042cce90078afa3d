"""Secrets of 32 bytes, each in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import os

from holdfast.model.errors import StorageFailed

KEY_BYTES = 32


def load_or_create(path: str) -> bytes:
    """Two processes that create it at once end up with the same: the first to link wins."""
    with contextlib.suppress(FileNotFoundError):
        return _load(path)
    private = os.urandom(KEY_BYTES)
    beside = f"{path}.{os.urandom(4).hex()}.new"
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(private)
            file.flush()
            os.fsync(fd)
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)
        os.unlink(beside)
        return _load(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise StorageFailed(f"cannot store a key: {error.strerror} ({path})") from error


def _load(path: str) -> bytes:
    with open(path, "rb") as file:
        private = file.read(KEY_BYTES + 1)
    if len(private) != KEY_BYTES:
        raise StorageFailed(f"not a key of {KEY_BYTES} bytes: {path}")
    return private
