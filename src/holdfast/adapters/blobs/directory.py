"""Blobs as files of a directory: each written beside and renamed, so that it is whole or not there.

A blob costs no flush of its own. Thousands are written for one checkpoint, and none of them counts
before the last: `flush` brings them to disk together.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from holdfast.model.errors import CheckpointStoreDown, HoldfastError, StorageFailed, why_not
from holdfast.ports.blob_store import Blob

_UNFINISHED = ".unfinished"  # no blob's name begins with a dot
# Files brought to disk one by one; beyond it, the whole file system at once, which then also waits
# for what others have just written.
_FLUSH_EACH = 256
_FLUSH_AT_ONCE = 16
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DirectoryBlobs:
    """Of one process: what it was writing when it died is removed by the next."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._written: set[str] = set()  # files, and directories with new names, not yet on disk
        self._lock = threading.Lock()
        self._serial = 0
        with self._errors("open"):
            os.makedirs(f"{root}/{_UNFINISHED}", mode=0o700, exist_ok=True)
            os.chmod(root, 0o700)
            for left in os.scandir(f"{root}/{_UNFINISHED}"):
                os.unlink(left.path)

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        path = f"{self._root}/{name}"
        with self._lock:
            self._serial += 1
            beside = f"{self._root}/{_UNFINISHED}/{os.getpid()}-{self._serial}"
        with self._errors("write to"):
            try:
                return self._put(beside, path, data, new)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(beside)

    def _put(self, beside: str, path: str, data: bytes, new: bool) -> bool:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
        move = os.link if new else os.rename
        try:
            move(beside, path)
        except FileNotFoundError:
            self._make(os.path.dirname(path))
            move(beside, path)
        except FileExistsError:
            return False
        with self._lock:
            self._written |= {path, os.path.dirname(path)}
        return True

    def _make(self, directory: str) -> None:
        """With all above it; each of these has a new name then."""
        above = directory
        while len(above) > len(self._root):
            above = os.path.dirname(above)
            with self._lock:
                self._written.add(above)
        os.makedirs(directory, mode=0o700, exist_ok=True)

    def flush(self) -> None:
        with self._lock:
            written, self._written = self._written, set()
        with self._errors("write to"):
            if len(written) > _FLUSH_EACH:
                self._flush_all()
                return
            # At once: the file system brings them to disk in one go, instead of one after another.
            with ThreadPoolExecutor(_FLUSH_AT_ONCE) as threads:
                list(threads.map(_flush_one, written))

    def _flush_all(self) -> None:
        fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(fd)

    def get(self, name: str) -> bytes | None:
        with self._errors("read"):
            try:
                with open(f"{self._root}/{name}", "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def list(self, prefix: str) -> Iterator[Blob]:
        with self._errors("list"):
            yield from self._list(f"{self._root}/{prefix}".rstrip("/"))

    def _list(self, directory: str) -> Iterator[Blob]:
        try:
            entries = list(os.scandir(directory))
        except FileNotFoundError:
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._list(entry.path)
                continue
            with contextlib.suppress(FileNotFoundError):
                size = entry.stat(follow_symlinks=False).st_size
                yield Blob(entry.path[len(self._root) + 1 :], size)

    def delete(self, name: str) -> None:
        with self._errors("delete from"), contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._root}/{name}")

    def close(self) -> None:
        """Nothing is held open."""

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _told(error, doing, self._root) from error


def _flush_one(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _told(error: OSError, doing: str, root: str) -> HoldfastError:
    message = f"cannot {doing} the checkpoint store {root}: {why_not(error)}"
    if error.errno in _NO_ROOM:
        return StorageFailed(
            message, hint="free some space; `hold checkpoints rm ID` deletes a checkpoint"
        )
    return CheckpointStoreDown(message, hint="see `checkpoint_store` in config.toml")
