"""The links: what the next entry is linked to, and when the host must sign.

A `Chain` is the memory of one journal: hash and number of its last record, the last number of each
actor, and the running digest of the block since the last seal. `extend` returns an entry and its
framed record; the caller writes it, and calls `retract` if that fails, so that the chain never runs
ahead of the file.

The first record is linked to a hash of the session's id: records of one session never fit another.
"""

from __future__ import annotations

from hashlib import sha256

from holdfast.journal.encoding import hash_of, pack
from holdfast.journal.entries import HOST, MAY_FOLLOW, Body, Entry, SealEntry
from holdfast.journal.framing import frame
from holdfast.journal.signatures import seal_message
from holdfast.model.errors import LimitReached, SessionEnded
from holdfast.model.limits import (
    JOURNAL_ENTRY_MAX_BYTES,
    JOURNAL_SEAL_BYTES,
    JOURNAL_SEAL_ENTRIES,
    JOURNAL_SEAL_S,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.journal.signatures import Sign

_GENESIS = b"holdfast journal v1\0"
_NEVER = float("-inf")
_SEALED = SealEntry.tag
_SETTLE_BYTES = 4096  # held back from the digest, and how closely the bounds of a seal are kept


def genesis(session: str) -> bytes:
    """The hash that the first record of a session's journal is linked to."""
    return sha256(_GENESIS + session.encode()).digest()


class Chain:
    """The state needed to extend one journal."""

    def __init__(
        self,
        session: str,
        *,
        seq: int = 0,
        head: bytes = b"",
        actors: Mapping[str, int] | None = None,
    ) -> None:
        """A new chain, or one that continues after the *seal* numbered `seq` with hash `head`."""
        self.session = session
        self.seq = seq  # of the last record
        self.head = head or genesis(session)  # its hash
        self.actors = dict(actors or {})
        self.closed_by = ""  # tag of the entry that closed the journal
        self._before: tuple[bytes, str, str, float, bool] | None = None
        self._begin_block()

    def _begin_block(self) -> None:
        self.sealed_seq = self.seq  # of the last seal
        self.unsealed_bytes = 0
        self.seal_due = False  # by what was recorded; see `is_seal_due` for the time
        self._since = _NEVER  # when the block's first entry was made
        self._digest = sha256()
        self._held: list[bytes] = []  # framed records not yet in the digest
        self._settle_at = _SETTLE_BYTES  # unsealed bytes

    # -- extending ----------------------------------------------------------------------------

    def extend(self, at: float, epoch: int, actor: str, body: Body) -> tuple[Entry, bytes]:
        """The next entry and its framed record. It is part of the chain from now on; see
        `retract`."""
        parent = self.head
        framed = self.add(at, epoch, actor, body)
        return Entry(self.seq, float(at), epoch, actor, self.actors[actor], body, parent), framed

    def add(self, at: float, epoch: int, actor: str, body: Body) -> bytes:
        """`extend` for callers that need only the record. Written without helper calls, because
        every key press goes through it."""
        tag, closed, parent, actors = body.tag, self.closed_by, self.head, self.actors
        if closed and tag not in MAY_FOLLOW[closed]:
            raise SessionEnded(f"the journal of {self.session} is closed: {closed}")
        seq, actor_seq = self.seq + 1, actors.get(actor, 0) + 1
        record = pack((seq, float(at), epoch, actor, actor_seq, tag, body.pack(), parent))
        if len(record) > JOURNAL_ENTRY_MAX_BYTES:
            raise LimitReached(
                f"an entry of {len(record)} bytes is over the limit of {JOURNAL_ENTRY_MAX_BYTES}"
            )
        framed = frame(record, tag == _SEALED)
        self._before = (parent, actor, closed, self._since, self.seal_due)
        self.head = sha256(record).digest()
        self.seq = seq
        actors[actor] = actor_seq
        self._held.append(framed)
        self.unsealed_bytes = unsealed = self.unsealed_bytes + len(framed)
        if unsealed >= self._settle_at:
            self._settle()
        if self._since == _NEVER:
            self._since = at
        if body.lifecycle:
            self._note_lifecycle(tag)
        return framed

    def _settle(self) -> None:
        """Every few records: add them to the digest, except the last, which may be retracted; and
        check whether to sign. Once for many, because for each it would cost ten times as much."""
        held = self._held
        last = held.pop()
        self._digest.update(b"".join(held))
        self._held = [last]
        self._settle_at = self.unsealed_bytes + _SETTLE_BYTES
        if (
            self.unsealed_bytes >= JOURNAL_SEAL_BYTES
            or self.seq - self.sealed_seq >= JOURNAL_SEAL_ENTRIES
        ):
            self.seal_due = True

    def _note_lifecycle(self, tag: str) -> None:
        self.seal_due = True
        if tag in MAY_FOLLOW:
            self.closed_by = tag

    def replay(self, entry: Entry, record: bytes, framed: bytes) -> None:
        """Add a record that is already in the journal. The caller has checked its link."""
        self._before = None
        self.head, self.seq = hash_of(record), entry.seq
        self._held.append(framed)
        self.unsealed_bytes += len(framed)
        if self.unsealed_bytes >= self._settle_at:
            self._settle()
        self.actors[entry.actor] = entry.actor_seq
        if self._since == _NEVER:
            self._since = entry.at
        if entry.body.lifecycle:
            self._note_lifecycle(entry.body.tag)
        if entry.body.tag == _SEALED:
            self._begin_block()

    @property
    def parent(self) -> bytes:
        """The hash that the last entry is linked to."""
        assert self._before is not None
        return self._before[0]

    def retract(self) -> None:
        """Remove the last entry, which could not be written."""
        assert self._before is not None, "only the last entry can be retracted, and once"
        self.head, actor, self.closed_by, self._since, self.seal_due = self._before
        self._before = None
        self.seq -= 1
        self.actors[actor] -= 1
        self.unsealed_bytes -= len(self._held.pop())

    # -- seals --------------------------------------------------------------------------------

    def is_seal_due(self, now: float) -> bool:
        """Whether the host must sign now: a lifecycle entry, or enough entries, bytes or time. A
        clock set back counts as time: it must not delay the seal."""
        return self.seal_due or not (
            self._since == _NEVER or 0 <= now - self._since < JOURNAL_SEAL_S
        )

    def seal(self, at: float, epoch: int, sign: Sign) -> tuple[Entry, bytes]:
        """The entry that signs the block. Call `sealed` once it is written, or else `retract`."""
        digest = self._digest.copy()
        digest.update(b"".join(self._held))
        unsigned = SealEntry(self.sealed_seq + 1, digest.digest(), b"")
        actor_seq = self.actors.get(HOST, 0) + 1
        draft = Entry(self.seq + 1, float(at), epoch, HOST, actor_seq, unsigned, self.head)
        signed = unsigned.replace(signature=sign(seal_message(self.session, draft)))
        return self.extend(at, epoch, HOST, signed)

    def sealed(self) -> None:
        """The last seal is written: begin a new block."""
        self._before = None
        self._begin_block()
