"""A range of a journal, proven without the rest (N7).

A *witness* is 36 bytes: how many records, and one hash over the session, the range, the hash of the
record before it and of its last record. It can be recomputed from the records of the range alone;
it fits no other range and no changed record. It has no signature, so it is only as trustworthy as
its source.

A *signed proof* is the full-strength form: the witness with what it was made of, signed by the host
key, which the session's own key named. It can be checked with only the session's id, and, kept
elsewhere, it reveals a rolled-back journal.

Checking costs what the range costs, however long the journal is.
"""

from __future__ import annotations

import hashlib
import struct

from holdfast.journal.encoding import HASH_BYTES, hash_of, parent_of, seq_of
from holdfast.journal.signatures import as_text, is_bound, of_text, signed_message
from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Malformed, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.journal.entries import Began
    from holdfast.journal.signatures import Check, Sign

_WITNESS = b"holdfast journal range v1\0"
_PROOF = b"holdfast journal proof v1\0"
_COUNT = struct.Struct(">I")
_RANGE = struct.Struct(">QQ")
WITNESS_BYTES = _COUNT.size + HASH_BYTES


class ProofLink(Record):
    """The range of a run of records, and the hashes at both ends."""

    first: int
    last: int
    before: bytes  # hash of the record before the first; for entry 1 that of the session's id
    after: bytes  # hash of the last record


class SignedProof(Record):
    """The full-strength form. The session's id, its key, the binding, the host key and the
    signature prove each other; nothing else has to be trusted."""

    session: str
    epoch: int
    first: int
    last: int
    before: bytes
    after: bytes
    witness: bytes
    session_key: bytes
    host_key: bytes
    binding: bytes
    signature: bytes = b""

    def text(self) -> str:
        return as_text("proof", self)

    @classmethod
    def of_text(cls, text: str) -> SignedProof:
        return of_text("proof", cls, text)


# -- making -----------------------------------------------------------------------------------


def witness(session: str, first: int, last: int, before: bytes, after: bytes) -> bytes:
    """The 36 bytes for a range."""
    if not 0 < first <= last or last - first >= 1 << 32:
        raise InvalidArgument(f"{first} to {last} is not a range of entries")
    bound = _WITNESS + session.encode() + _RANGE.pack(first, last) + before + after
    return _COUNT.pack(last - first + 1) + hashlib.sha256(bound).digest()


def prove(began: Began, epoch: int, records: Iterable[bytes], sign: Sign) -> SignedProof:
    """A signed proof of a run of records. Refuses one that is not linked."""
    link = linked(records)
    if link is None:
        raise InvalidArgument("these records are not an unbroken range")
    fields = (link.first, link.last, link.before, link.after)
    unsigned = SignedProof(
        began.session,
        epoch,
        *fields,
        witness(began.session, *fields),
        began.session_key,
        began.host_key,
        began.binding,
    )
    return unsigned.replace(signature=sign(signed_message(_PROOF, unsigned)))


# -- checking ---------------------------------------------------------------------------------


def linked(records: Iterable[bytes]) -> ProofLink | None:
    """The two ends of a run of records; None when it is empty or some link in it is wrong."""
    first = last = 0
    before = after = b""
    try:
        for record in records:
            seq = seq_of(record)
            if not first:
                first, before = seq, parent_of(record)
            elif seq != last + 1 or parent_of(record) != after:
                return None
            last, after = seq, hash_of(record)
    except Malformed:
        return None
    return ProofLink(first, last, before, after) if first > 0 else None


def check_witness(
    claimed: bytes, session: str, first: int, last: int, records: Iterable[bytes]
) -> bool:
    """Whether these records are the unbroken range the witness was made for."""
    link = linked(records)
    return (
        link is not None
        and (link.first, link.last) == (first, last)
        and claimed == witness(session, first, last, link.before, link.after)
    )


def check_signed(proof: SignedProof, check: Check, records: Iterable[bytes] | None = None) -> bool:
    """Whether the host that the session named signed this range; and, when records are given,
    whether they are that range."""
    try:
        expected = witness(proof.session, proof.first, proof.last, proof.before, proof.after)
    except InvalidArgument:
        return False
    return (
        proof.witness == expected
        and is_bound(proof.session, proof.session_key, proof.host_key, proof.binding, check)
        and check(proof.host_key, signed_message(_PROOF, proof), proof.signature)
        and (
            records is None
            or check_witness(proof.witness, proof.session, proof.first, proof.last, records)
        )
    )
