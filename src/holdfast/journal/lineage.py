"""Honest discontinuity (N9): how a history that cannot continue is closed, and what may follow it.

A break yields a signed statement of why and how far the old journal can be trusted, and the old
identity never runs again. If its journal is whole, the statement is its last entry. If it is
damaged, nothing may be added to it (that would hide the break), and the statement is stored beside
it as a `Discontinuity`. A successor is a new session that names its predecessor in its first entry.
"""

from __future__ import annotations

from holdfast.journal.entries import Discontinued
from holdfast.journal.signatures import as_text, of_text, signed_message
from holdfast.journal.verdict import Break, Verdict, VerdictKind
from holdfast.model.discontinuity import DiscontinuityCause, DiscontinuityKind
from holdfast.model.errors import JournalDamaged
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.journal.signatures import Check, Sign

_WITHOUT_CAUSE = b"holdfast discontinuity v1\0"
_WITH_CAUSE = b"holdfast discontinuity v2\0"

# What a broken journal is called. A head that names another history than the records is a fork.
_KINDS = {
    Break.ALTERED: DiscontinuityKind.CORRUPTION,
    Break.BAD_SIGNATURE: DiscontinuityKind.CORRUPTION,
    Break.MISSING: DiscontinuityKind.CHAIN_BREAK,
    Break.REORDERED: DiscontinuityKind.CHAIN_BREAK,
    Break.FOREIGN: DiscontinuityKind.CHAIN_BREAK,
    Break.TRUNCATED: DiscontinuityKind.CHAIN_BREAK,
    Break.HEADLESS: DiscontinuityKind.CHAIN_BREAK,
    Break.EXTENDED: DiscontinuityKind.CHAIN_BREAK,
    Break.FORKED: DiscontinuityKind.CONFLICTING_CHAINS,
}


class Discontinuity(Record):
    """The statement about a journal that cannot be extended, signed by the host that found it. The
    first version of the form had no cause; what it says stays valid."""

    session: str
    reason: str
    last_seq: int  # the last trustworthy entry of its journal; 0: none
    last_hash: bytes  # and its hash; empty for none
    at: float
    host_key: bytes
    cause: DiscontinuityCause | None = None  # None: version 1
    signature: bytes = b""

    def message(self) -> bytes:
        """What is signed."""
        if self.cause is None:
            return signed_message(_WITHOUT_CAUSE, self, without=("cause",))
        return signed_message(_WITH_CAUSE, self)

    def signed(self, sign: Sign) -> Discontinuity:
        return self.replace(signature=sign(self.message()))

    def is_signed(self, check: Check, host_key: bytes = b"") -> bool:
        """Signed by the key it names, which must be the expected one if that is known."""
        return (not host_key or host_key == self.host_key) and check(
            self.host_key, self.message(), self.signature
        )

    def text(self) -> str:
        if self.cause is None:
            return as_text("discontinuity", self, without=("cause",))
        return as_text("discontinuity", self, version=2)

    @classmethod
    def of_text(cls, text: str) -> Discontinuity:
        return of_text("discontinuity", cls, text, versions=(1, 2))


def cause_of(verdict: Verdict, one: bytes = b"", other: bytes = b"") -> DiscontinuityCause:
    """Of a damaged journal. Two histories: the hashes of both, at the record they part."""
    kind = _KINDS[verdict.kind] if verdict.kind is not None else DiscontinuityKind.UNKNOWN
    hashes = {}
    if kind is DiscontinuityKind.CONFLICTING_CHAINS:
        hashes = {"a": one.hex(), "b": other.hex()}
    return DiscontinuityCause(kind, at=verdict.broken_seq, **hashes)


def discontinued(verdict: Verdict, reason: str, cause: DiscontinuityCause) -> Discontinued:
    """The last entry of a journal that is whole (or whose torn tail was cut)."""
    if verdict.outcome is VerdictKind.DAMAGED:
        raise JournalDamaged(
            f"a damaged journal is not extended: {verdict.text()}",
            hint="its discontinuity is stated beside it",
        )
    return Discontinued(reason, verdict.last_seq, verdict.last_hash, cause)


def discontinuity(
    session: str,
    verdict: Verdict,
    last_hash: bytes,
    reason: str,
    at: float,
    host_key: bytes,
    cause: DiscontinuityCause,
) -> Discontinuity:
    """The statement beside a damaged journal, to be signed. `last_hash` is the hash of the last
    trustworthy entry, which the caller reads."""
    through = verdict.trustworthy_through
    return Discontinuity(session, reason, through, last_hash, at, host_key, cause)
