"""Where checkpoints are kept: saved, listed, loaded, deleted. All work is done in threads.

    HOST/chunks/ab/abcd…            a piece of images, encrypted; the same piece is stored once
    HOST/checkpoints/SESSION/ID     a manifest, signed by the host and encrypted

Each host has a part of its own in a store, and is the only one that writes there. A checkpoint
begins to exist when its manifest does, which is written when all else is on disk. What an
interrupted save or deletion left are chunks that no manifest refers to: the first save of each
daemon removes them.

What the images mean, and whether this machine can take them, is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from holdfast.adapters import key_file
from holdfast.adapters.blobs.directory import DirectoryBlobs
from holdfast.adapters.blobs.object_store import ObjectBlobs
from holdfast.adapters.signing import SigningKey
from holdfast.host.continuity.checkpoint_book import CheckpointBook
from holdfast.host.continuity.image_census import ImageCensus
from holdfast.host.continuity.image_cipher import ImageCipher, chunk_name
from holdfast.host.continuity.image_job import ImageJob, Progress
from holdfast.host.continuity.image_manifest import ZEROS, Manifest
from holdfast.host.continuity.image_reader import ImageReader
from holdfast.host.continuity.image_writer import GhostMemory, ImageWriter
from holdfast.model.captured_files import CapturePlan
from holdfast.model.checkpoint import (
    Checkpoint,
    CheckpointDescription,
    CheckpointId,
    MemoryCopy,
)
from holdfast.model.errors import (
    CheckpointInvalid,
    CheckpointRolledBack,
    HoldfastError,
    NoSuchCheckpoint,
)
from holdfast.model.ids import SessionId
from holdfast.ports.blob_store import BlobStore

log = logging.getLogger(__name__)
CHUNKS = "chunks/"  # below a host's part of the store
_BOOK = "checkpoints.json"
_WORKERS = 8  # two keep a processor busy; the others wait for a disk or a service
_T = TypeVar("_T")


class Given(NamedTuple):
    """A checkpoint, for another host."""

    checkpoint: Checkpoint
    sealed: bytes  # its manifest
    key: bytes  # of this session's manifests
    sizes: dict[str, int]  # its chunks, by name


class ImageStore:
    """Of one host. Used on its event loop."""

    def __init__(
        self, blobs: BlobStore, host: SigningKey, secret: bytes, book: CheckpointBook, quota: int
    ) -> None:
        """`secret`: from which everything is encrypted. `quota`: in bytes, 0 for any amount."""
        self._blobs, self._host, self._book, self._quota = blobs, host, book, quota
        self._cipher = ImageCipher(secret)
        part = host.public.hex()[:32]
        self._chunks, self._manifests = f"{part}/{CHUNKS}", f"{part}/checkpoints/"
        self._census: ImageCensus | None = None  # None: to be taken before the next save
        self._known: dict[str, Checkpoint] = {}  # manifests that were read, by name
        self._changing = asyncio.Lock()  # saves and deletions: one at a time
        self._jobs = ThreadPoolExecutor(4, "checkpoints")
        self._workers = ThreadPoolExecutor(_WORKERS, "checkpoint-chunks")

    async def save(
        self,
        description: CheckpointDescription,
        directory: str,
        progress: Progress | None = None,
        *,
        id: CheckpointId | None = None,
        captured: CapturePlan = CapturePlan(),  # noqa: B008 (a record is frozen)
        memory: GhostMemory | None = None,
    ) -> Checkpoint:
        """Store the files of a directory. It is left as it is. On failure nothing is stored. `id`:
        a new one that the caller has made; without it, one is made here. `captured`: what is said
        of the session's files in it. `memory`: what of these ghosts hold."""
        chosen = id or CheckpointId.of_random(os.urandom(16))
        async with self._changing:
            return await self._off_loop(
                lambda job: self._save(
                    chosen, description, directory, job, captured, memory or GhostMemory()
                ),
                progress,
            )

    async def load(
        self, which: CheckpointId | SessionId, directory: str, progress: Progress | None = None
    ) -> Checkpoint:
        """Put the files of a checkpoint into a directory, which is missing or empty; they appear
        there when all are known to be complete and right. A session stands for its last checkpoint:
        `CheckpointRolledBack` if the store has only older ones."""
        return await self._off_loop(lambda job: self._load(which, directory, job), progress)

    async def list(self, session: SessionId | None = None) -> tuple[Checkpoint, ...]:
        """Newest first. A manifest that cannot be read is logged; `find` says why."""
        found = await self._off_loop(lambda _job: self._readable(session))
        return tuple(sorted(found, key=lambda each: each.created_at, reverse=True))

    async def find(self, which: CheckpointId | SessionId) -> Checkpoint:
        """One of them, or the last of a session, as `load` would take it."""
        return (await self._off_loop(lambda _job: self._find(which))).checkpoint

    def last_saved(self, session: SessionId) -> CheckpointId | None:
        """As this host remembers, without asking the store."""
        last = self._book.last(session)
        return None if last is None else last.id

    async def give(self, session: SessionId, id: CheckpointId) -> Given:
        """What another host needs to ask for this checkpoint's chunks, and to open them."""
        return await self._off_loop(lambda _job: self._give(session, id))

    async def sealed_chunk(self, name: str) -> bytes | None:
        """One chunk, as it is stored."""
        return await self._off_loop(lambda _job: self._blobs.get(self._chunks + name))

    async def adopt(self, manifest: Manifest, blobs: BlobStore, directory: str) -> Checkpoint:
        """Put a checkpoint of another host into this store, under this host's keys and the same id.
        `blobs`: where its chunks are; `directory`: for its files, which is removed afterwards."""
        try:
            await self._off_loop(
                lambda job: ImageReader(blobs, CHUNKS, manifest, None).read_into(directory, job)
            )
            theirs = manifest.checkpoint
            description = CheckpointDescription(**_fields(theirs))
            return await self.save(description, directory, id=theirs.id)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def check_not_older(self, arriving: Checkpoint) -> None:
        """Raises CheckpointRolledBack when this host knows a later one of the session."""
        self._book.check(arriving)

    async def delete(self, id: CheckpointId) -> None:
        async with self._changing:
            await self._off_loop(lambda _job: self._delete(id))

    async def collect(self) -> int:
        """Remove chunks that no checkpoint refers to; how many bytes they had."""
        async with self._changing:
            return await self._off_loop(lambda _job: self._collect())

    async def used_bytes(self) -> int:
        """What this host's part of the store uses."""
        async with self._changing:
            return await self._off_loop(lambda _job: self._counted().used_bytes)

    async def close(self) -> None:
        for threads in (self._jobs, self._workers):
            await asyncio.to_thread(threads.shutdown)
        self._blobs.close()

    async def _off_loop(
        self, work: Callable[[ImageJob], _T], progress: Progress | None = None
    ) -> _T:
        job = ImageJob(self._workers, progress)
        done = asyncio.get_running_loop().run_in_executor(self._jobs, work, job)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            job.stop()
            while not done.done():  # it tidies up; nothing else may change the store meanwhile
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
            done.exception()
            raise

    # -- in threads ---------------------------------------------------------------------------

    def _save(
        self,
        id: CheckpointId,
        description: CheckpointDescription,
        directory: str,
        job: ImageJob,
        captured: CapturePlan,
        memory: GhostMemory,
    ) -> Checkpoint:
        began = time.monotonic()
        census = self._counted()
        writer = ImageWriter(self._blobs, self._chunks, census, self._cipher, job)
        name, reserved = f"{self._manifests}{description.session}/{id}", 0
        try:
            table = writer.write(directory, memory)
            table_keys, table_bytes = writer.write_table(table)
            self._blobs.flush()  # before the manifest: it must never refer to what may be lost
            took_ms = (time.monotonic() - began) * 1000
            checkpoint = Checkpoint(
                **_fields(description.replace(total_ms=description.total_ms + took_ms)),
                id=id,
                host=self._host.public,
                raw_bytes=sum(file.size for file in table.files),
                stored_bytes=writer.stored_bytes,
                new_bytes=writer.new_bytes,
                method=MemoryCopy.GHOST if memory.files else MemoryCopy.PLAIN,
                copied_at_once=memory.copied_at_once,
                captured=captured,
            )
            manifest = Manifest(checkpoint, table_keys, table_bytes)
            sealed = manifest.sealed(self._cipher.manifest_key(checkpoint.session), self._host)
            census.reserve(len(sealed))
            reserved = len(sealed)
            self._blobs.put(name, sealed)
            self._blobs.flush()
            self._book.saved(checkpoint)
        except BaseException:
            census.release(reserved)
            with contextlib.suppress(HoldfastError):
                self._blobs.delete(name)  # a put that failed may have happened
            writer.undo()
            raise
        self._known[name] = checkpoint
        job.finish()
        return checkpoint

    def _load(self, which: str, directory: str, job: ImageJob) -> Checkpoint:
        manifest = self._find(which)
        try:
            self._reader(manifest).read_into(directory, job)
        except CheckpointInvalid as error:
            if error.chunk and self._census is not None:
                self._census.forget(error.chunk)  # the next save stores it again
            raise _of_checkpoint(manifest.checkpoint.id, error) from error
        return manifest.checkpoint

    def _give(self, session: SessionId, id: CheckpointId) -> Given:
        manifest = self._manifest(session, id)
        sealed = self._blobs.get(f"{self._manifests}{session}/{id}")
        if sealed is None:
            raise NoSuchCheckpoint(f"there is no checkpoint {id}")
        chunks = (*manifest.table_chunks(), *self._reader(manifest).table().chunks())
        sizes = {chunk_name(each.key): each.size for each in chunks if each.key != ZEROS}
        key = self._cipher.manifest_key(session)
        return Given(manifest.checkpoint, sealed, key, sizes)

    def _reader(self, manifest: Manifest) -> ImageReader:
        return ImageReader(self._blobs, self._chunks, manifest, self._cipher.chunk_key)

    def _find(self, which: str) -> Manifest:
        if not isinstance(which, SessionId):
            return self._manifest(self._session_of(which), CheckpointId(which))
        found = max(self._readable(which), key=lambda each: each.order, default=None)
        if found is None:
            last = self._book.last(which)
            if last is not None:
                raise CheckpointRolledBack(
                    f"the last checkpoint of session {which}, {last.id}, is not in the store or "
                    "cannot be read, nor is any other",
                )
            raise NoSuchCheckpoint(f"there is no checkpoint of session {which}")
        self._book.check(found)
        return self._manifest(which, found.id)

    def _session_of(self, id: str) -> SessionId:
        for _, session, found in self._stored(None):
            if found == id:
                return session
        raise NoSuchCheckpoint(f"there is no checkpoint {id}")

    def _stored(self, session: SessionId | None) -> Iterator[tuple[str, SessionId, CheckpointId]]:
        """Name, session and id of each manifest."""
        below = f"{self._manifests}{session}/" if session else self._manifests
        for blob in self._blobs.list(below):
            words = blob.name[len(self._manifests) :].split("/")
            with contextlib.suppress(ValueError):  # not one of ours
                of, id = words
                yield blob.name, SessionId(of), CheckpointId(id)

    def _readable(self, session: SessionId | None) -> tuple[Checkpoint, ...]:
        found = []
        for name, of, id in self._stored(session):
            if name not in self._known:
                try:
                    self._known[name] = self._manifest(of, id).checkpoint
                except (CheckpointInvalid, NoSuchCheckpoint) as error:
                    log.error("%s", error.message)
                    continue
            found.append(self._known[name])
        return tuple(found)

    def _manifest(self, session: SessionId, id: CheckpointId) -> Manifest:
        """Always read again: what was right once may have been exchanged since."""
        sealed = self._blobs.get(f"{self._manifests}{session}/{id}")
        if sealed is None:
            raise NoSuchCheckpoint(f"there is no checkpoint {id}")
        key = self._cipher.manifest_key(session)
        try:
            return Manifest.opened(sealed, key, self._host.public, session, id)
        except CheckpointInvalid as error:
            raise _of_checkpoint(id, error) from error

    def _delete(self, id: CheckpointId) -> None:
        session = self._session_of(id)
        name = f"{self._manifests}{session}/{id}"
        left = [each for each in self._readable(session) if each.id != id]
        self._book.deleting(session, id, left)
        self._known.pop(name, None)
        self._blobs.delete(name)
        self._collect()

    def _counted(self) -> ImageCensus:
        if self._census is None:
            self._collect()
        assert self._census is not None
        return self._census

    def _collect(self) -> int:
        manifests = {blob.name: blob.size for blob in self._blobs.list(self._manifests)}
        referred, unread = set[str](), 0
        for _, session, id in self._stored(None):
            try:
                referred.update(self._chunks_of(session, id))
            except (CheckpointInvalid, NoSuchCheckpoint) as error:
                # It may be the store that is at fault, and be mended: its chunks are kept.
                log.error("no chunks are removed from the checkpoint store: %s", error.message)
                unread += 1
        kept, freed, doubtful = [], 0, 0
        for blob in self._blobs.list(self._chunks):
            name = blob.name[len(self._chunks) :]
            if name in referred:
                kept.append((name, blob.size))
            elif unread:
                doubtful += blob.size  # perhaps half written: not relied upon by a later save
            else:
                self._blobs.delete(blob.name)
                freed += blob.size
        others = sum(manifests.values()) + doubtful
        self._census = ImageCensus(kept, others, self._quota)
        return freed

    def _chunks_of(self, session: SessionId, id: CheckpointId) -> Iterator[str]:
        manifest = self._manifest(session, id)
        for chunk in (*manifest.table_chunks(), *self._reader(manifest).table().chunks()):
            if chunk.key != ZEROS:
                yield chunk_name(chunk.key)


def has_saved(state: str) -> bool:
    """Whether this host ever saved a checkpoint: a store need not be opened to find none."""
    return os.path.exists(f"{state}/{_BOOK}")


def open_image_store(place: str, quota: int, state: str, host: SigningKey) -> ImageStore:
    """`place`: a directory or a URL; "" for a directory in the host's state. Blocking."""
    blobs = (
        ObjectBlobs(place) if "://" in place else DirectoryBlobs(place or f"{state}/checkpoints")
    )
    secret = key_file.load_or_create(f"{state}/checkpoint.key")
    return ImageStore(blobs, host, secret, CheckpointBook(f"{state}/{_BOOK}"), quota)


def _fields(description: CheckpointDescription) -> dict[str, Any]:
    return {name: getattr(description, name) for name in CheckpointDescription._fields}


def _of_checkpoint(id: CheckpointId, error: CheckpointInvalid) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {id} cannot be used: {error.message}",
        hint="`hold checkpoints` lists the others",
    )
