"""Honest discontinuity (N9): how a history that cannot continue is closed, and what may follow it.

A break yields a signed statement of why and how far the old journal can be trusted, and the old
identity never runs again. If its journal is whole, the statement is its last entry. If it is
damaged, nothing may be added to it (that would hide the break), and the statement is stored beside
it as a `Discontinuity`. A successor is a new session that names its predecessor in its first entry.
"""

from __future__ import annotations

import json

from holdfast.journal.entries import Began, Discontinued
from holdfast.journal.signatures import signed_message
from holdfast.journal.verdict import Verdict, VerdictKind
from holdfast.model.errors import JournalDamaged
from holdfast.model.record import Malformed, Record

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
        fields = self.pack()
        for name in ("last_hash", "host_key", "signature"):
            fields[name] = fields[name].hex()
        return json.dumps({"holdfast": "discontinuity v1", **fields}, indent=1)

    @classmethod
    def of_text(cls, text: str) -> Discontinuity:
        try:
            fields = json.loads(text)
            if type(fields) is not dict or fields.pop("holdfast", "") != "discontinuity v1":
                raise Malformed("discontinuity: not one of ours")
            for name in ("last_hash", "host_key", "signature"):
                fields[name] = bytes.fromhex(fields[name])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Malformed(f"discontinuity: {error}") from error
        return cls.unpack(fields, "discontinuity")


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


def follows(successor: Began, session: str, ending: Discontinued | Discontinuity) -> bool:
    """Whether a session documents that it follows this discontinued one, after this entry."""
    return (
        successor.session != session
        and successor.predecessor == session
        and successor.predecessor_seq == ending.last_seq
        and successor.predecessor_hash == ending.last_hash
    )
