"""What is signed, by which key, and over which bytes. Each message opens with a domain of its own,
so that a signature made for one purpose never serves another. The keys themselves come in as
callables.

    binding        session key over session and host key: this host may write this journal
    seal           host key over a block of records
    head           host key over how far the journal surely goes
    proof          host key over a range (proof.py)
    discontinuity  host key over the end of a journal that cannot be extended (lineage.py)
"""

from __future__ import annotations

import json

import msgpack

from holdfast.journal.encoding import encode
from holdfast.journal.entries import Began, Entry, SealEntry
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    R = TypeVar("R", bound=Record)
    Sign = Callable[[bytes], bytes]  # message -> signature, by a key the caller knows
    Check = Callable[[bytes, bytes, bytes], bool]  # public key, message, signature -> is it right

_BINDING = b"holdfast journal binding v1\0"
_SEAL = b"holdfast journal seal v1\0"
_HEAD = b"holdfast journal head v1\0"


def binding_message(session: str, host_key: bytes) -> bytes:
    return _BINDING + session.encode() + host_key


def is_bound(
    session: str, session_key: bytes, host_key: bytes, binding: bytes, check: Check
) -> bool:
    """Whether the session's own key, the one its id is derived from, named this host key."""
    return SessionId.of_key(session_key) == session and check(
        session_key, binding_message(session, host_key), binding
    )


def is_beginning_of(session: str, body: Began, check: Check) -> bool:
    return body.session == session and is_bound(
        session, body.session_key, body.host_key, body.binding, check
    )


def seal_message(session: str, entry: Entry) -> bytes:
    """All of the seal's entry but the signature itself: number, time, epoch, link and digest."""
    body = entry.body
    assert isinstance(body, SealEntry)
    unsigned = encode(
        entry.seq, entry.at, entry.epoch, entry.actor, entry.actor_seq,
        body.replace(signature=b""), entry.parent,
    )  # fmt: skip
    return _SEAL + session.encode() + unsigned


class Head(Record):
    """How far the journal surely goes: its last seal that is known to be on disk. Kept beside the
    journal and replaced as a whole, so that records cut off its end are missed."""

    session: str
    seq: int  # of the seal
    hash: bytes  # of the seal's record
    segment: int  # index of the segment it is in
    offset: int  # where in that segment its record begins
    actors: dict[str, int]  # the last number of each actor up to there
    closed_by: str = ""  # tag of the entry that closed the journal
    signature: bytes = b""

    def message(self) -> bytes:
        return signed_message(_HEAD, self)

    def signed(self, sign: Sign) -> Head:
        return self.replace(signature=sign(self.message()))

    def encoded(self) -> bytes:
        packed: bytes = msgpack.packb(self.pack())
        return packed

    @classmethod
    def decode(cls, data: bytes) -> Head:
        try:
            head = cls.unpack(msgpack.unpackb(data, strict_map_key=True), "head")
        except (ValueError, msgpack.UnpackException, RecursionError) as error:
            raise Malformed(f"head: {error}") from error
        if head.encoded() != data:  # a field under another name is no field of ours
            raise Malformed("head: not in the form it is written in")
        return head


def signed_message(domain: bytes, record: Record, *, without: tuple[str, ...] = ()) -> bytes:
    """A record's fields in order, but for its signature and those that came with a later version
    of the form."""
    fields: dict[str, Any] = record.pack()
    for name in ("signature", *without):
        del fields[name]
    packed: bytes = msgpack.packb(list(fields.values()))
    return domain + packed


def as_text(what: str, record: Record, *, version: int = 1, without: tuple[str, ...] = ()) -> str:
    """A signed record as JSON, bytes in hexadecimal: for a file or a mail."""
    fields = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in record.pack().items()
        if name not in without
    }
    return json.dumps({"holdfast": f"{what} v{version}", **fields}, indent=1)


def of_text(what: str, kind: type[R], text: str, *, versions: tuple[int, ...] = (1,)) -> R:
    """And back. Raises Malformed."""
    forms = [f"{what} v{version}" for version in versions]
    try:
        fields = json.loads(text)
        if type(fields) is not dict or fields.pop("holdfast", "") not in forms:
            raise Malformed(f"not a {what} of holdfast")
        for name in fields.keys() & {n for n, of in kind.__annotations__.items() if of == "bytes"}:
            fields[name] = bytes.fromhex(fields[name])
    except (ValueError, TypeError, RecursionError) as error:
        raise Malformed(f"{what}: {error}") from error
    return kind.unpack(fields, what)
