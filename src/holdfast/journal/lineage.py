"""Honest discontinuity (N9): how a history that cannot continue is closed, and what may follow it.

A break yields a signed statement of why and how far the old journal can be trusted, and the old
identity never runs again. If its journal is whole, the statement is its last entry. If it is
damaged, nothing may be added to it (that would hide the break), and the statement is stored beside
it as a `Discontinuity`. A successor is a new session that names its predecessor in its first entry.
"""

from __future__ import annotations

from holdfast.journal.entries import Discontinued
from holdfast.journal.signatures import as_text, of_text, signed_message
from holdfast.journal.verdict import Verdict, VerdictKind
from holdfast.model.errors import JournalDamaged
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.journal.signatures import Check, Sign

_DISCONTINUITY = b"holdfast discontinuity v1\0"


class Discontinuity(Record):
    """The statement about a journal that cannot be extended, signed by the host that found it."""

    session: str
    reason: str
    last_seq: int  # the last trustworthy entry of its journal; 0: none
    last_hash: bytes  # and its hash; empty for none
    at: float
    host_key: bytes
    signature: bytes = b""

    def signed(self, sign: Sign) -> Discontinuity:
        return self.replace(signature=sign(signed_message(_DISCONTINUITY, self)))

    def is_signed(self, check: Check, host_key: bytes = b"") -> bool:
        """Signed by the key it names, which must be the expected one if that is known."""
        return (not host_key or host_key == self.host_key) and check(
            self.host_key, signed_message(_DISCONTINUITY, self), self.signature
        )

    def text(self) -> str:
        return as_text("discontinuity", self)

    @classmethod
    def of_text(cls, text: str) -> Discontinuity:
        return of_text("discontinuity", cls, text)


def discontinued(verdict: Verdict, reason: str) -> Discontinued:
    """The last entry of a journal that is whole (or whose torn tail was cut)."""
    if verdict.outcome is VerdictKind.DAMAGED:
        raise JournalDamaged(
            f"a damaged journal is not extended: {verdict.text()}",
            hint="its discontinuity is stated beside it",
        )
    return Discontinued(reason, verdict.last_seq, verdict.last_hash)


def discontinuity(
    session: str, verdict: Verdict, last_hash: bytes, reason: str, at: float, host_key: bytes
) -> Discontinuity:
    """The statement beside a damaged journal, to be signed. `last_hash` is the hash of the last
    trustworthy entry, which the caller reads."""
    return Discontinuity(session, reason, verdict.trustworthy_through, last_hash, at, host_key)
