"""Getting a checkpoint's files back. Everything is checked on the way, into a directory aside:
nothing is given out before all of it is there and right. Blocking: runs in threads."""

from __future__ import annotations

import bisect
import hmac
import os
import shutil
from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.host.continuity.image_cipher import chunk_name, open_chunk
from holdfast.host.continuity.image_job import ImageJob
from holdfast.host.continuity.image_manifest import ZEROS, Chunk, ImageTable, Manifest
from holdfast.model.checkpoint import CheckpointFile
from holdfast.model.errors import CheckpointInvalid, InvalidArgument, StorageFailed, why_not
from holdfast.ports.blob_store import BlobStore

_ASIDE = ".incoming"


class ImageReader:
    """Of one checkpoint."""

    def __init__(
        self,
        blobs: BlobStore,
        prefix: str,
        manifest: Manifest,
        key_of: Callable[[bytes], bytes] | None,
    ) -> None:
        """`prefix`: of the host's chunks in the store. `key_of`: the key of some content, which
        only the host that stored it knows."""
        self._blobs, self._prefix, self._manifest = blobs, prefix, manifest
        self._key_of = key_of

    def table(self) -> ImageTable:
        chunks = self._manifest.table_chunks()
        table = ImageTable.unpacked(b"".join(map(self._get, chunks)))
        size = sum(file.size for file in table.files)
        if size != self._manifest.checkpoint.raw_bytes:
            raise CheckpointInvalid("its table contradicts itself")
        return table

    def read_into(self, directory: str, job: ImageJob) -> None:
        """The directory is missing or empty; on failure it is again."""
        table = self.table()
        job.begin(self._manifest.checkpoint.raw_bytes)
        try:
            made = not os.path.isdir(directory)
            os.makedirs(directory, mode=0o700, exist_ok=True)
            if os.listdir(directory):
                raise InvalidArgument(f"{directory} is not empty")
            aside = f"{directory}/{_ASIDE}"
            try:
                self._fill(aside, table, job)
                _move_out(aside, directory)
            except BaseException:
                shutil.rmtree(directory if made else aside, ignore_errors=True)
                raise
        except OSError as error:
            raise StorageFailed(f"cannot write to {directory}: {why_not(error)}") from error
        job.finish()

    def _fill(self, aside: str, table: ImageTable, job: ImageJob) -> None:
        os.mkdir(aside, 0o700)
        places = _Places(aside, table.files)

        def fetch(placed: _Placed) -> None:
            if placed.chunk.key != ZEROS:  # a hole already
                places.write(placed.at, self._get(placed.chunk))
            job.advance(placed.chunk.size)

        for _ in job.each(fetch, _placed(table)):
            pass
        _set_modes(aside, table.files)

    def _get(self, chunk: Chunk) -> bytes:
        if chunk.key == ZEROS:
            return bytes(chunk.size)
        name = chunk_name(chunk.key)
        try:
            sealed = self._blobs.get(self._prefix + name)
            if sealed is None:
                raise CheckpointInvalid("a chunk is missing in the store")
            data = open_chunk(chunk.key, sealed, chunk.size)
            if self._key_of and not hmac.compare_digest(self._key_of(data), chunk.key):
                raise CheckpointInvalid("a chunk does not have its digest")
        except CheckpointInvalid as error:
            damaged = CheckpointInvalid(f"{error.message} (chunk {name.partition('/')[2][:16]})")
            damaged.chunk = name
            raise damaged from error
        return data


class _Placed(NamedTuple):
    chunk: Chunk
    at: int  # in the bytes of all files


def _placed(table: ImageTable) -> Iterator[_Placed]:
    at = 0
    for chunk in table.chunks():
        yield _Placed(chunk, at)
        at += chunk.size


class _Places:
    """The files, at first of zeros."""

    def __init__(self, root: str, files: tuple[CheckpointFile, ...]) -> None:
        self._root, self._files = root, [file for file in files if file.size]
        self._starts = []
        start = 0
        for file in self._files:
            self._starts.append(start)
            start += file.size
        for file in sorted(files, key=lambda file: file.path):
            path = f"{root}/{file.path}"
            if file.directory:
                os.mkdir(path, 0o700)
            elif not file.link:
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
                    new.truncate(file.size)
        for file in files:  # last: nothing is written through a link
            if file.link:
                os.symlink(file.link, f"{root}/{file.path}")

    def write(self, at: int, data: bytes) -> None:
        """These bytes, which may be of several files."""
        index = bisect.bisect_right(self._starts, at) - 1
        view = memoryview(data)
        while view:
            file, offset = self._files[index], at - self._starts[index]
            piece = view[: file.size - offset]
            fd = os.open(f"{self._root}/{file.path}", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                _write_all(fd, piece, offset)
            finally:
                os.close(fd)
            view, at, index = view[len(piece) :], at + len(piece), index + 1


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written


def _set_modes(root: str, files: tuple[CheckpointFile, ...]) -> None:
    for file in sorted(files, key=lambda file: file.path, reverse=True):
        if not file.link:
            os.chmod(f"{root}/{file.path}", file.mode)


def _move_out(aside: str, directory: str) -> None:
    for name in os.listdir(aside):
        os.rename(f"{aside}/{name}", f"{directory}/{name}")
    os.rmdir(aside)
