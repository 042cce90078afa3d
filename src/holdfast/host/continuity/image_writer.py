"""Storing a directory of images: cut into chunks, and each that is not there yet encrypted and put.
Blocking: runs in threads."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import threading
from collections.abc import Iterator, Mapping

from holdfast.adapters.criu.ghost_images import GhostPages
from holdfast.host.continuity.image_census import ImageCensus
from holdfast.host.continuity.image_cipher import ImageCipher, chunk_name, seal_chunk
from holdfast.host.continuity.image_cutting import (
    Window,
    WindowPlace,
    chunks_of,
    pieces_of,
    pieces_of_memory,
)
from holdfast.host.continuity.image_job import ImageJob
from holdfast.host.continuity.image_manifest import ZEROS, Chunk, ImageTable
from holdfast.model.checkpoint import CheckpointFile
from holdfast.model.errors import HoldfastError, InvalidArgument, StorageFailed, why_not
from holdfast.ports.blob_store import BlobStore

# Smaller files share chunks: CRIU writes dozens of a few hundred bytes.
_SMALL_BYTES = 64 << 10


class GhostMemory:
    """What of a checkpoint's files ghosts hold."""

    def __init__(self) -> None:
        # Of these files the directory has a part only; by path.
        self.files: dict[str, GhostPages] = {}
        self.before: dict[WindowPlace, Chunk] = {}  # what an earlier checkpoint stored
        self.chunks: dict[WindowPlace, Chunk] = {}  # what this one stores
        self.copied_at_once: tuple[str, ...] = ()  # processes of which they hold nothing, and why

    def close(self) -> None:
        for pages in self.files.values():
            pages.close()
        self.files.clear()


class ImageWriter:
    """Of one checkpoint."""

    def __init__(
        self, blobs: BlobStore, prefix: str, census: ImageCensus, cipher: ImageCipher, job: ImageJob
    ) -> None:
        """`prefix`: of this host's chunks in the store."""
        self._blobs, self._prefix, self._census = blobs, prefix, census
        self._cipher, self._job = cipher, job
        self._put: list[str] = []
        self._lock = threading.Lock()
        self.stored_bytes = 0
        self.new_bytes = 0
        self._memory = GhostMemory()

    def write(self, directory: str, memory: GhostMemory) -> ImageTable:
        try:
            self._memory = memory
            files = list(_files_of(directory, memory.files))
            self._job.begin(sum(file.size for file in files))
            chunks = list(self._job.each(self._store, _stream(directory, files, memory.files)))
        except OSError as error:
            raise StorageFailed(f"cannot read {directory}: {why_not(error)}") from error
        return ImageTable.of(files, chunks)

    def write_table(self, table: ImageTable) -> tuple[bytes, int]:
        """The keys of its chunks, and its size."""
        packed = table.packed()
        keys = (self._store(piece, counted=False).key for piece in pieces_of(packed))
        return b"".join(keys), len(packed)

    def undo(self) -> None:
        """What was put is taken away again, as far as the store answers."""
        with contextlib.suppress(HoldfastError):
            for name in self._put:
                self._blobs.delete(self._prefix + name)
                self._census.forget(name)

    def _store(self, piece: bytes | Window, *, counted: bool = True) -> Chunk:
        if isinstance(piece, bytes):
            return self._store_bytes(piece, counted=counted)
        chunk = self._known(piece)
        if chunk is None:
            chunk = self._store_bytes(piece.read())
        else:
            self._job.advance(chunk.size)
        self._memory.chunks[piece.place] = chunk
        return chunk

    def _known(self, window: Window) -> Chunk | None:
        """The chunk of an earlier checkpoint, if no page in it was written since."""
        chunk = self._memory.before.get(window.place)
        if chunk is None or not window.pages.is_unchanged(window.spans):
            return None
        if chunk.key != ZEROS and not self._census.has(chunk_name(chunk.key)):
            return None
        return chunk

    def _store_bytes(self, data: bytes, *, counted: bool = True) -> Chunk:
        chunk = Chunk(ZEROS, len(data))
        if not _is_zeros(data):
            chunk = Chunk(self._cipher.chunk_key(data), len(data))
            name = chunk_name(chunk.key)
            if self._census.claim(name):
                self._put_new(name, seal_chunk(chunk.key, data), len(data))
        if counted:
            self._job.advance(len(data))
        return chunk

    def _put_new(self, name: str, sealed: bytes, size: int) -> None:
        try:
            self._census.reserve(len(sealed), name)
            with self._lock:
                self._put.append(name)  # before: a failed put may have happened
                self.stored_bytes += len(sealed)
                self.new_bytes += size
            self._blobs.put(self._prefix + name, sealed)
        except BaseException:
            self._census.forget(name)
            raise


def _is_zeros(data: bytes) -> bool:
    # The ends first: comparing the whole costs a copy.
    return data[0] == data[-1] == 0 and data == bytes(len(data))


def _files_of(directory: str, memory: Mapping[str, GhostPages]) -> Iterator[CheckpointFile]:
    """In the order of their bytes: what shares chunks first, memory last."""
    found = sorted(_found(directory, ""), key=lambda file: file.path)
    rest = [file for file in found if file.path not in memory]
    yield from (file for file in rest if file.size < _SMALL_BYTES)
    yield from (file for file in rest if file.size >= _SMALL_BYTES)
    for file in found:
        if file.path in memory:
            yield file.replace(size=memory[file.path].size)


def _found(directory: str, inside: str) -> Iterator[CheckpointFile]:
    for entry in os.scandir(f"{directory}/{inside}"):
        path, status = inside + entry.name, entry.stat(follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode)
        if entry.is_dir(follow_symlinks=False):
            yield CheckpointFile(path, mode, directory=True)
            yield from _found(directory, f"{path}/")
        elif entry.is_symlink():
            yield CheckpointFile(path, mode, link=os.readlink(entry.path))
        elif entry.is_file():
            yield CheckpointFile(path, mode, status.st_size)
        else:
            raise InvalidArgument(
                f"{entry.path} is no file, directory or link: it cannot be stored"
            )


def _stream(
    directory: str, files: list[CheckpointFile], memory: Mapping[str, GhostPages]
) -> Iterator[bytes | Window]:
    """The bytes of all files. A large one begins with a chunk of its own, so that its pages are cut
    by themselves."""
    small = io.BytesIO()
    rest = [file for file in files if file.path not in memory]
    for file in rest:
        if 0 < file.size < _SMALL_BYTES:
            small.writelines(_read(directory, file))
    yield from pieces_of(small.getvalue())
    for file in rest:
        if file.size >= _SMALL_BYTES:
            yield from _read(directory, file)
    for file in files:
        if file.path in memory:
            yield from pieces_of_memory(memory[file.path])


def _read(directory: str, file: CheckpointFile) -> Iterator[bytes]:
    size = 0
    with open(f"{directory}/{file.path}", "rb", buffering=0) as opened:
        for chunk in chunks_of(opened):
            size += len(chunk)
            yield chunk
    if size != file.size:
        raise StorageFailed(f"{directory}/{file.path} changed while it was stored")
