"""How an entry is encoded: one msgpack list, its record.

    [seq, at, epoch, actor, actor_seq, tag, body, parent]

The hash of an entry is that of its record. Entries of a newer version stay readable as `Unknown`:
their links are checked, but not interpreted.
"""

from __future__ import annotations

import hashlib

import msgpack

from holdfast.journal.entries import BY_TAG, Body, Entry, UnknownEntry
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HASH_BYTES = 32

# The record of an entry, from the tuple of what stands above.
pack: Callable[[tuple[object, ...]], bytes] = msgpack.Packer(use_bin_type=True).pack


def encode(
    seq: int, at: float, epoch: int, actor: str, actor_seq: int, body: Body, parent: bytes
) -> bytes:
    """The record of an entry."""
    return pack((seq, at, epoch, actor, actor_seq, body.tag, body.pack(), parent))


def decode(record: bytes) -> Entry:
    """The entry of a record. Raises Malformed."""
    seq, at, epoch, actor, actor_seq, tag, body, parent = _fields(record)
    kinds = (type(at), type(epoch), type(actor), type(actor_seq), type(tag), type(body))
    if kinds != (float, int, str, int, str, dict):
        raise Malformed("entry: a field has the wrong type")
    if type(parent) is not bytes or len(parent) != HASH_BYTES:
        raise Malformed("entry: the link has the wrong size")
    kind = BY_TAG.get(tag)
    made: Body
    try:
        made = UnknownEntry(tag, msgpack.packb(body)) if kind is None else kind.unpack(body, tag)
    except Malformed:
        made = UnknownEntry(tag, msgpack.packb(body))
    return Entry(seq, at, epoch, actor, actor_seq, made, parent)


def seq_of(record: bytes) -> int:
    """The number of a record: the first of its eight fields, read without the others."""
    if len(record) > 10 and record[0] == _LIST_OF_EIGHT:
        kind = record[1]
        if kind < 0x80:
            return kind
        size = _INT_BYTES.get(kind)
        if size is not None:
            return int.from_bytes(record[2 : 2 + size])
    raise Malformed("entry: a number is expected first")


_LIST_OF_EIGHT = 0x98  # as msgpack writes it
_INT_BYTES = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}


def parent_of(record: bytes) -> bytes:
    """The hash a record is linked to: its last field."""
    return record[-HASH_BYTES:]


def hash_of(record: bytes) -> bytes:
    return hashlib.sha256(record).digest()


def _fields(record: bytes) -> list[Any]:
    try:
        fields = msgpack.unpackb(record, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise Malformed(f"entry: {error}") from error
    if type(fields) is not list or len(fields) != 8 or type(fields[0]) is not int:
        raise Malformed("entry: a list of eight is expected")
    return fields
