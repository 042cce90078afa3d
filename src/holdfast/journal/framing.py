"""Records as bytes in a segment.

    segment   header, then records; after the last one zeros (room reserved ahead) or nothing
    header    magic, session id, first seq, parent of the first record, crc32
    record    u32 length, u32 crc32, the bytes; the length's top bit marks a seal

The checksum covers length and bytes. It finds accidental damage and its place; links and seals
protect against tampering. Seals are marked so that a verifier finds a block without reading it.
"""

from __future__ import annotations

import re
import struct
import zlib

from holdfast.journal.encoding import HASH_BYTES, seq_of
from holdfast.model.limits import JOURNAL_ENTRY_MAX_BYTES
from holdfast.model.record import Malformed, Record

MAGIC = b"HOLDJRN\x01"  # the last byte is the version
SEAL_MARK = 1 << 31
FRAME_BYTES = 8

_FRAME = struct.Struct(">II")
_HEADER = struct.Struct(f">8s26sQ{HASH_BYTES}s")
_CRC = struct.Struct(">I")
HEADER_BYTES = _HEADER.size + _CRC.size

length_at = struct.Struct(">I").unpack_from


class SegmentHeader(Record):
    """The header of a segment."""

    session: str
    first: int  # seq of its first record
    parent: bytes  # hash of the last record of the segment before


class Whole(Record):
    """A complete record."""

    record: bytes
    seal: bool
    end: int  # offset behind it


def header(session: str, first: int, parent: bytes) -> bytes:
    packed = _HEADER.pack(MAGIC, session.encode(), first, parent)
    return packed + _CRC.pack(zlib.crc32(packed))


def read_header(data: bytes) -> SegmentHeader:
    if len(data) < HEADER_BYTES:
        raise Malformed("the segment's header is cut off")
    if _CRC.unpack_from(data, _HEADER.size)[0] != zlib.crc32(data[: _HEADER.size]):
        raise Malformed("the segment's header is altered")
    magic, session, first, parent = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise Malformed("not a journal segment of a version known here")
    return SegmentHeader(session.decode("ascii", "replace"), first, parent)


def frame(record: bytes, seal: bool = False) -> bytes:
    word = len(record) | SEAL_MARK if seal else len(record)
    return _FRAME.pack(word, zlib.crc32(record, word)) + record


def read(data: bytes, at: int) -> Whole | None:
    """The record at this offset, or None when there is no whole one."""
    if at + FRAME_BYTES > len(data):
        return None
    word, crc = _FRAME.unpack_from(data, at)
    size = word & ~SEAL_MARK
    start = at + FRAME_BYTES
    if not 0 < size <= JOURNAL_ENTRY_MAX_BYTES or start + size > len(data):
        return None
    record = data[start : start + size]
    return Whole(record, word != size, start + size) if zlib.crc32(record, word) == crc else None


def is_clean(data: bytes, at: int) -> bool:
    """Whether there are only zeros from here on."""
    return data.count(0, at) == len(data) - at


def written_after(data: bytes, at: int) -> int:
    """How many bytes from here on are not just trailing zeros."""
    return max(0, len(data.rstrip(b"\0")) - at)


# Where a record can begin: a length of at most the limit, with or without the seal's mark.
_BEGINNING = re.compile(rb"(?=[\x00\x80][\x00-\x03])", re.DOTALL)
assert JOURNAL_ENTRY_MAX_BYTES < 4 << 16


def record_after(data: bytes, at: int, seq: int) -> bool:
    """Whether there is a complete record numbered `seq` or higher anywhere after this offset. If
    so, the fault at the offset is not a torn tail, because nothing follows a tail."""
    for found in _BEGINNING.finditer(data, at + 1, at + written_after(data, at)):
        whole = read(data, found.start())
        if whole is not None:
            try:
                if seq_of(whole.record) >= seq:
                    return True
            except Malformed:
                continue
    return False
