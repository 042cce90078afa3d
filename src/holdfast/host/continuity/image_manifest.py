"""What is stored of one checkpoint besides its chunks.

The *table* says where the bytes of each file are. It is stored in chunks itself: that of a gigabyte
is a quarter of a megabyte. The *manifest* is what the host signs: the checkpoint, and where its
table is. It is written last; without it nothing is a checkpoint.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgpack

from holdfast.adapters.signing import SigningKey, check
from holdfast.host.continuity.image_cipher import KEY_BYTES, open_sealed, seal
from holdfast.host.continuity.image_cutting import CHUNK_MAX_BYTES
from holdfast.model.checkpoint import Checkpoint, CheckpointFile, CheckpointId
from holdfast.model.errors import CheckpointInvalid
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record

_SIGNED = b"holdfast checkpoint\0"
_PURPOSE = b"manifest"
ZEROS = bytes(KEY_BYTES)  # in place of a key: nothing but zeros, and nothing is stored
_SIZE = struct.Struct(">I")


class Chunk(NamedTuple):
    """A piece of a checkpoint: its key, and how many bytes it has."""

    key: bytes
    size: int


class ImageTable(Record):
    """The files, and the chunks that their bytes are in, one after the other."""

    files: tuple[CheckpointFile, ...]
    keys: bytes  # of 32 bytes each
    sizes: bytes  # of 4 bytes each

    @classmethod
    def of(cls, files: list[CheckpointFile], chunks: list[Chunk]) -> ImageTable:
        return cls(
            tuple(files),
            b"".join(chunk.key for chunk in chunks),
            b"".join(_SIZE.pack(chunk.size) for chunk in chunks),
        )

    def chunks(self) -> Iterator[Chunk]:
        for index, (size,) in enumerate(_SIZE.iter_unpack(self.sizes)):
            yield Chunk(self.keys[index * KEY_BYTES : (index + 1) * KEY_BYTES], size)

    def packed(self) -> bytes:
        return bytes(msgpack.packb(self.pack()))

    @classmethod
    def unpacked(cls, data: bytes) -> ImageTable:
        """Raises CheckpointInvalid: it must say of each byte where it is, and lead nowhere else."""
        try:
            table = cls.unpack(msgpack.unpackb(data))
        except (ValueError, Malformed) as error:
            raise CheckpointInvalid(f"its table cannot be read: {error}") from error
        counts = divmod(len(table.keys), KEY_BYTES), divmod(len(table.sizes), _SIZE.size)
        bytes_in_chunks = sum(chunk.size for chunk in table.chunks()) if not counts[1][1] else -1
        paths = [file.path for file in table.files]
        if (
            counts[0] != counts[1]
            or bytes_in_chunks != sum(file.size for file in table.files)
            or any(chunk.size > CHUNK_MAX_BYTES for chunk in table.chunks())
            or not all(map(_is_inside, paths))
            or any(a >= b for a, b in pairwise(sorted(paths)))
        ):
            raise CheckpointInvalid("its table contradicts itself")
        return table


def _is_inside(path: str) -> bool:
    return bool(path) and not {"", ".", ".."} & set(path.split("/"))


class Manifest(Record):
    """What the host signs."""

    checkpoint: Checkpoint
    table_keys: bytes  # of the table's chunks
    table_bytes: int

    def table_chunks(self) -> Iterator[Chunk]:
        for index in range(len(self.table_keys) // KEY_BYTES):
            size = min(CHUNK_MAX_BYTES, self.table_bytes - index * CHUNK_MAX_BYTES)
            yield Chunk(self.table_keys[index * KEY_BYTES : (index + 1) * KEY_BYTES], size)

    def sealed(self, key: bytes, host: SigningKey) -> bytes:
        body = bytes(msgpack.packb(self.pack()))
        signed = [host.public, host.sign(_SIGNED + body), body]
        return seal(key, bytes(msgpack.packb(signed)), _PURPOSE)

    @classmethod
    def opened(
        cls, sealed: bytes, key: bytes, host: bytes, session: SessionId, id: CheckpointId
    ) -> Manifest:
        """Raises CheckpointInvalid unless it is signed by this host, and is this checkpoint of this
        session."""
        data = open_sealed(key, sealed, _PURPOSE)
        try:
            public, signature, body = msgpack.unpackb(data)
            genuine = public == host and check(host, _SIGNED + body, signature)
            manifest = cls.unpack(msgpack.unpackb(body)) if genuine else None
        except (ValueError, TypeError, Malformed) as error:
            raise CheckpointInvalid(f"its manifest cannot be read: {error}") from error
        if manifest is None:
            raise CheckpointInvalid("it is not signed by this host")
        found = manifest.checkpoint
        if (found.session, found.id, found.host) != (session, id, host):
            raise CheckpointInvalid(f"what is stored there is {found.id} of {found.session}")
        return manifest
