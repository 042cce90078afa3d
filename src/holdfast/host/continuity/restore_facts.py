"""What a checkpoint of a session's memory has besides CRIU's images: one directory, which the image
store keeps and gives back as it was.

    images/      CRIU's images
    facts        what a restore must know (`RestoreFacts`)
    parcel       the session's state blob, as its keeper had it
    memory       its shared memory: output, ledger, screen
    untyped      input in custody that the terminal had not taken
    files/, captured  the session's files (workspace_files.py)
    shell-state  what its shell had reported about itself
"""

from __future__ import annotations

import msgpack

from holdfast.model.errors import CheckpointInvalid
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record
from holdfast.model.restore import DumpedTree
from holdfast.model.size import Size

IMAGES, FACTS, PARCEL, MEMORY = "images", "facts", "parcel", "memory"
UNTYPED, SHELL_STATE = "untyped", "shell-state"


class RestoreFacts(Record):
    """Of one checkpoint."""

    session: SessionId
    tree: DumpedTree
    size: Size
    unread: bytes  # typed into the terminal, and read by no program

    def packed(self) -> bytes:
        return bytes(msgpack.packb(self.pack()))

    @classmethod
    def of_bytes(cls, data: bytes) -> RestoreFacts:
        try:
            return cls.unpack(msgpack.unpackb(data))
        except (Malformed, ValueError, msgpack.UnpackException) as error:
            raise CheckpointInvalid("what is known about its tree makes no sense") from error
