"""What stays of a journal that was removed from disk: a statement, signed by the host, of how far
it went, its last hash, and what a check found just before. With the session key's binding from its
first entry, anybody can tell that this host was the one to say it; and whoever kept a proof or an
export can still hold that against the last hash."""

from __future__ import annotations

from holdfast.journal.signatures import as_text, is_bound, of_text, signed_message
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.journal.signatures import Check, Sign

_PRUNED = b"holdfast pruned v1\0"


class PrunedJournal(Record):
    """The signed tombstone of a session that was removed."""

    session: str
    name: str
    epoch: int
    ending: str  # as people read it
    ended_at: float
    last_seq: int  # the last trustworthy entry; 0: there was none
    last_hash: bytes  # and its hash
    verdict: str  # of the check before it was removed: `intact`, `torn_tail` or `damaged`
    closed_by: str  # `ended` or `discontinued`; empty: the journal was never closed
    at: float  # when it was removed
    session_key: bytes  # public; the id is derived from it. Empty: the first entry was unreadable
    host_key: bytes  # public; it signs this
    binding: bytes  # the session key's signature over session and host key
    signature: bytes = b""

    def signed(self, sign: Sign) -> PrunedJournal:
        return self.replace(signature=sign(signed_message(_PRUNED, self)))

    def is_valid(self, session: str, check: Check) -> bool:
        """Said of this session, by the host that its own key named."""
        return (
            self.session == session
            and is_bound(session, self.session_key, self.host_key, self.binding, check)
            and check(self.host_key, signed_message(_PRUNED, self), self.signature)
        )

    def text(self) -> str:
        return as_text("pruned", self)

    @classmethod
    def of_text(cls, text: str) -> PrunedJournal:
        return of_text("pruned", cls, text)
