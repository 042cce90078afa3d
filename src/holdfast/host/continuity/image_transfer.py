"""A checkpoint on its way from one host's store to another's (wire/host_link.py).

The chunks travel as they are stored: encrypted, under names that follow from what is in them. The
target is given the key of the manifests of this one session, in the channel that only it can read;
the manifest lists the keys of its own chunks and no others. It asks for the chunks that it lacks,
opens each when it comes, and keeps what is right aside until all is there: a transfer that was cut
goes on where it was. Then all of it is put into the target's own store, under the target's keys.

Nothing is taken from a host that did not sign the manifest, for a machine of another kind, or that
is older than what this host knows of the session.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from holdfast.adapters.blobs.directory import DirectoryBlobs
from holdfast.adapters.signing import SigningKey
from holdfast.host.continuity.image_cipher import chunk_name, open_chunk
from holdfast.host.continuity.image_cutting import CHUNK_MAX_BYTES
from holdfast.host.continuity.image_manifest import ZEROS, Chunk, ImageTable, Manifest
from holdfast.host.continuity.image_reader import ImageReader
from holdfast.host.continuity.image_store import CHUNKS, ImageStore
from holdfast.host.continuity.restore import check_machine
from holdfast.host.reach.host_link import PIECE_BYTES, LinkEnd, unreachable
from holdfast.model.checkpoint import CheckpointId
from holdfast.model.errors import (
    CheckpointInvalid,
    HoldfastError,
    HostLost,
    NoSuchCheckpoint,
    ProtocolViolation,
    from_code,
)
from holdfast.model.ids import SessionId
from holdfast.model.limits import HOST_IMAGE_CHUNKS, HOST_IMAGE_SILENCE_S
from holdfast.ports.host_link import Progress
from holdfast.wire import host_link as w
from holdfast.wire.messages.base import Message

log = logging.getLogger(__name__)

_SEALED_MAX_BYTES = 2 * CHUNK_MAX_BYTES  # of one chunk: what cannot be compressed grows a little
_ARRIVING = "arriving"  # directory of the state: chunks of checkpoints that are not complete


class SessionKeys(Protocol):
    """The private keys of sessions (session_store.py)."""

    def session_key(self, session: SessionId) -> SigningKey: ...

    def begin_arrival(self, session: SessionId, key: bytes) -> None:
        """Keep the key of a session that is on its way here."""


class ImageTransfer:
    """Of one host, in both directions."""

    def __init__(self, images: Callable[[], ImageStore], keys: SessionKeys, state: str) -> None:
        """`images`: the host's store, opened when it is first asked for."""
        self._images, self._keys, self._state = images, keys, state

    # -- the source -----------------------------------------------------------------------------

    async def give(
        self, lane: LinkEnd, session: SessionId, id: CheckpointId, progress: Progress | None
    ) -> None:
        """Until the target has all of it. Raises HostLost, and what the target refuses it
        with."""
        giving = await self._images().give(session, id)
        key = self._keys.session_key(session).seed
        await lane.say(w.ImageOffer(id, giving.sealed, giving.key, key))
        done, total = 0, giving.checkpoint.raw_bytes
        while True:
            match await _next(lane):
                case w.ImageWanted(id=of, names=names) if of == id:
                    for name in names:
                        done += await self._give_chunk(lane, id, giving.sizes, name)
                        if progress is not None:
                            progress(min(done, total), total)
                case w.ImageKept(id=of) if of == id:
                    if progress is not None:
                        progress(total, total)
                    return
                case w.ImageRefused(id=of, code=code, message=message, hint=hint) if of == id:
                    raise from_code(code, message, hint)
                case said:
                    _late_or_wrong(said, id)

    async def _give_chunk(
        self, lane: LinkEnd, id: CheckpointId, sizes: dict[str, int], name: str
    ) -> int:
        size = sizes.get(name)
        if size is None:
            raise ProtocolViolation("the other host asks for what is not of this checkpoint")
        data = await self._images().sealed_chunk(name)
        if data is None:
            missing = CheckpointInvalid("a chunk is missing in the store")
            await lane.say(w.ImageRefused(id, missing.code, missing.message))
            raise missing
        for at in range(0, len(data), PIECE_BYTES):
            piece, last = data[at : at + PIECE_BYTES], at + PIECE_BYTES >= len(data)
            await lane.say(w.ImagePiece(id, name, piece, last))
        return size

    # -- the target -----------------------------------------------------------------------------

    async def take(self, lane: LinkEnd) -> None:
        while (said := await lane.next_of_image()) is not None:
            if not isinstance(said, w.ImageOffer):
                continue  # of one that was refused meanwhile
            try:
                await self._take(lane, said)
                await lane.say(w.ImageKept(said.id))
            except HostLost:
                return
            except HoldfastError as error:
                log.error("a checkpoint from %s: %s", lane.peer_name, error.message)
                refused = w.ImageRefused(said.id, error.code, error.message, error.hint)
                await lane.say(refused)

    async def _take(self, lane: LinkEnd, offer: w.ImageOffer) -> None:
        session = lane.session
        try:
            id = CheckpointId(offer.id)
            named = SessionId.of_key(SigningKey(offer.session_key).public)
        except ValueError as error:
            raise ProtocolViolation("not an offer of a checkpoint") from error
        if named != session:
            raise CheckpointInvalid("the key that came with it is not the session's own")
        manifest = Manifest.opened(offer.manifest, offer.manifest_key, lane.peer, session, id)
        check_machine(manifest.checkpoint)
        images = self._images()
        self._keys.begin_arrival(session, offer.session_key)
        try:
            await images.find(id)  # a repetition: only the answer was lost
        except NoSuchCheckpoint:
            images.check_not_older(manifest.checkpoint)
            await self._fetch(lane, manifest)
            lane.brought = id

    async def _fetch(self, lane: LinkEnd, manifest: Manifest) -> None:
        id = manifest.checkpoint.id
        aside = f"{self._state}/{_ARRIVING}/{id}"
        blobs = await asyncio.to_thread(DirectoryBlobs, aside)
        try:
            fetching = _Fetching(lane, id, blobs)
            await fetching.all(list(manifest.table_chunks()))
            table = await asyncio.to_thread(_table, blobs, manifest)
            await fetching.all(list(table.chunks()))
            await self._images().adopt(manifest, blobs, f"{aside}/files")
        finally:
            blobs.close()
        await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)


def clear_unfinished(state: str, kept: Callable[[CheckpointId], bool]) -> None:
    """What is not on its way any longer."""
    with_ids = f"{state}/{_ARRIVING}"
    for name in os.listdir(with_ids) if os.path.isdir(with_ids) else ():
        try:
            wanted = kept(CheckpointId(name))
        except ValueError:
            wanted = False
        if not wanted:
            shutil.rmtree(f"{with_ids}/{name}", ignore_errors=True)


class _Fetching:
    """Chunks of one checkpoint, asked for a few at a time."""

    def __init__(self, lane: LinkEnd, id: CheckpointId, blobs: DirectoryBlobs) -> None:
        self._lane, self._id, self._blobs = lane, id, blobs

    async def all(self, chunks: list[Chunk]) -> None:
        wanted = {chunk_name(each.key): each for each in chunks if each.key != ZEROS}
        lacking = await asyncio.to_thread(lambda: list(self._lacking(wanted)))
        left = iter(lacking)
        while some := tuple(islice(left, HOST_IMAGE_CHUNKS)):
            await self._lane.say(w.ImageWanted(self._id, some))
            for name in some:
                sealed = await self._chunk(name)
                await asyncio.to_thread(self._keep, name, wanted[name], sealed)

    def _lacking(self, wanted: dict[str, Chunk]) -> Iterator[str]:
        for name, chunk in wanted.items():
            there = self._blobs.get(CHUNKS + name)
            try:
                if there is None:
                    raise CheckpointInvalid("it is not here")
                open_chunk(chunk.key, there, chunk.size)
            except CheckpointInvalid:
                yield name

    async def _chunk(self, name: str) -> bytes:
        data = bytearray()
        while True:
            match await _next(self._lane):
                case w.ImagePiece(id=id, name=of, data=piece, last=last) if id == self._id:
                    if of != name:
                        raise ProtocolViolation("the other host sent another chunk than was asked")
                    data += piece
                    if len(data) > _SEALED_MAX_BYTES:
                        raise ProtocolViolation("the other host sent a chunk that does not end")
                    if last:
                        return bytes(data)
                case w.ImageRefused(code=code, message=message, hint=hint):
                    raise from_code(code, message, hint)
                case said:
                    _late_or_wrong(said, self._id)

    def _keep(self, name: str, chunk: Chunk, sealed: bytes) -> None:
        """Raises CheckpointInvalid when it is not what the manifest says."""
        try:
            open_chunk(chunk.key, sealed, chunk.size)
        except CheckpointInvalid as error:
            raise CheckpointInvalid(f"a chunk was altered on its way: {error.message}") from error
        self._blobs.put(CHUNKS + name, sealed)


def _table(blobs: DirectoryBlobs, manifest: Manifest) -> ImageTable:
    return ImageReader(blobs, CHUNKS, manifest, None).table()


async def _next(lane: LinkEnd) -> Message:
    try:
        async with asyncio.timeout(HOST_IMAGE_SILENCE_S):
            said = await lane.next_of_image()
    except TimeoutError:
        raise HostLost(
            f"nothing came from {lane.peer_name} for {HOST_IMAGE_SILENCE_S:.0f} s"
        ) from None
    if said is None:
        raise unreachable(lane.peer_name)
    return said


def _late_or_wrong(said: Message, id: CheckpointId) -> None:
    """What is about a transfer that was given up before is left out."""
    if getattr(said, "id", id) == id:
        raise ProtocolViolation(f"a host does not say {said.tag} at this point")
