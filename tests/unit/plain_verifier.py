"""A verifier of journals written from docs/journal.md alone, as it would be in another language: it
uses nothing of this project. When it disagrees with ours, one of the three is wrong.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any

import msgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_AFTER = {
    "ended": {"detached", "refused", "voided", "command_ended", "turn_moved", "sealed"},
    "discontinued": {"sealed"},
}
_SIGNED = ("session", "seq", "hash", "segment", "offset", "actors", "closed_by")
_PROVEN = (
    "session", "epoch", "first", "last", "before", "after", "witness", "session_key", "host_key",
    "binding",
)  # fmt: skip


class Wrong(Exception):
    """The journal is damaged."""


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def id_of(session_key: bytes) -> str:
    number, digits = int.from_bytes(sha(b"holdfast session\0" + session_key), "big"), ""
    for _ in range(26):
        digits += _ALPHABET[number % 32]
        number //= 32
    return digits


def need(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


class Verifier:
    def __init__(self, session: str) -> None:
        self.session = session.encode()
        self.seq, self.hash = 0, sha(b"holdfast journal v1\0" + self.session)
        self.signed_through = 0
        self._block, self._block_from = hashlib.sha256(), 1
        self._closed_by, self._host_key = "", b""
        self._hashes: dict[int, bytes] = {}

    def verify(self, segments: list[bytes], head: bytes) -> str:
        """intact, torn_tail or damaged."""
        try:
            torn = False
            need(bool(segments), "no segment")
            for number, data in enumerate(segments, 1):
                rest = data[self._records(data) :].rstrip(b"\0")
                need(not rest or number == len(segments), "not whole, and a segment follows")
                torn = bool(rest)
            self._check_head(head)
        except (Wrong, ValueError, KeyError, TypeError, struct.error):
            return "damaged"
        return "torn_tail" if torn else "intact"

    def _records(self, data: bytes) -> int:
        """All records of a segment; gives the offset behind the last whole one."""
        magic, session, first, parent, crc = struct.unpack_from(">8s26sQ32sI", data)
        need((magic, session) == (b"HOLDJRN\x01", self.session), "not of this session")
        need(crc == zlib.crc32(data[:74]), "the header's checksum")
        need((first, parent) == (self.seq + 1, self.hash), "the header's place")
        at = 78
        while at + 8 <= len(data):
            word, crc = struct.unpack_from(">II", data, at)
            size = word & 0x7FFFFFFF
            record = data[at + 8 : at + 8 + size]
            if not 0 < size <= 196608 or len(record) < size or zlib.crc32(record, word) != crc:
                self._nothing_follows(data, at)
                break
            self._record(record, data[at : at + 8 + size], word != size)
            at += 8 + size
        return at

    def _nothing_follows(self, data: bytes, at: int) -> None:
        for start in range(at + 1, len(data) - 8):
            word, crc = struct.unpack_from(">II", data, start)
            record = data[start + 8 : start + 8 + (word & 0x7FFFFFFF)]
            if 0 < len(record) == word & 0x7FFFFFFF and zlib.crc32(record, word) == crc:
                need(msgpack.unpackb(record)[0] <= self.seq, "not whole, and a record follows")

    def _record(self, record: bytes, framed: bytes, marked: bool) -> None:
        seq, _at, _epoch, _actor, _actor_seq, kind, body, parent = msgpack.unpackb(record)
        need((seq, parent) == (self.seq + 1, self.hash), "the link")
        if seq == 1:
            self._begin(kind, body)
        need(not self._closed_by or kind in _AFTER[self._closed_by], "after the end")
        need(marked is (kind == "sealed"), "the mark of a seal")
        if marked:
            self._seal(seq, record, body)
        else:
            self._block.update(framed)
        self.seq, self.hash = seq, sha(record)
        self._hashes[seq] = self.hash
        if kind in _AFTER:
            self._closed_by = kind

    def _begin(self, kind: str, body: dict[str, Any]) -> None:
        need(kind == "began" and body["session"].encode() == self.session, "the first entry")
        need(id_of(body["session_key"]).encode() == self.session, "the session's key")
        self._host_key = body["host_key"]
        message = b"holdfast journal binding v1\0" + self.session + self._host_key
        need(is_signed(body["session_key"], message, body["binding"]), "the binding")

    def _seal(self, seq: int, record: bytes, body: dict[str, Any]) -> None:
        fits = (body["from_seq"], body["digest"]) == (self._block_from, self._block.digest())
        need(fits, "the seal does not fit its block")
        need(record[-100:-98] == b"\xc4\x40" and record[-34:-32] == b"\xc4\x20", "a seal's form")
        unsigned = record[:-100] + b"\xc4\x00" + record[-34:]
        message = b"holdfast journal seal v1\0" + self.session + unsigned
        need(is_signed(self._host_key, message, record[-98:-34]), "the seal's signature")
        self.signed_through = seq
        self._block, self._block_from = hashlib.sha256(), seq + 1

    def _check_head(self, data: bytes) -> None:
        head = msgpack.unpackb(data)
        need(head["session"].encode() == self.session, "the head of another")
        message = b"holdfast journal head v1\0" + msgpack.packb([head[key] for key in _SIGNED])
        need(is_signed(self._host_key, message, head["signature"]), "the head's signature")
        need(self._hashes.get(head["seq"]) == head["hash"], "the head knows of another history")


def witness(session: str, first: int, last: int, records: list[bytes]) -> bytes:
    """From the records of the range alone."""
    before = after = records[0][-32:]
    for seq, record in enumerate(records, first):
        need((msgpack.unpackb(record)[0], record[-32:]) == (seq, after), "the link")
        after = sha(record)
    need(len(records) == last - first + 1, "the range")
    bound = b"holdfast journal range v1\0" + session.encode() + struct.pack(">QQ", first, last)
    return struct.pack(">I", len(records)) + sha(bound + before + after)


def is_proof(session: str, fields: dict[str, Any], records: list[bytes]) -> bool:
    """Whether a signed proof, its bytes decoded, is one of this session and of these records."""
    message = b"holdfast journal proof v1\0" + msgpack.packb([fields[key] for key in _PROVEN])
    binding = b"holdfast journal binding v1\0" + session.encode() + fields["host_key"]
    return (
        fields["session"] == session == id_of(fields["session_key"])
        and is_signed(fields["session_key"], binding, fields["binding"])
        and is_signed(fields["host_key"], message, fields["signature"])
        and fields["witness"] == witness(session, fields["first"], fields["last"], records)
    )
