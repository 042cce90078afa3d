"""The keys typed and not yet in the journal's file, in the session's shared memory.

A record per key would make typing slow and the journal long, so an operator's keys are gathered for
a moment and recorded as one. Meanwhile they stand here, in a page in the keeper's custody: a daemon
that is killed leaves them to the next one, and no byte that reached the terminal goes unrecorded.
Secret keys are counted here, never written.

Each key is *prepared* before the ledger takes it and *committed* after. A kill in between leaves
one prepared key, and the ledger knows whether it was taken.
"""

from __future__ import annotations

import struct

from holdfast.adapters.session_memory.layout import BURST_AT, PAGE
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.model.ids import OperatorId
from holdfast.model.record import Record

# u64 words.
_COMMITTED, _COMMITTED_SEQ, _PREPARED, _PREPARED_SEQ, _FIRST_SEQ = range(5)
_HEAD = struct.Struct("QQd16s32s")  # output offset, secret, time, operator, actor
_HEAD_AT = 5 * 8
_DATA_AT = 128
ROOM_BYTES = PAGE - _DATA_AT
assert _HEAD_AT + _HEAD.size <= _DATA_AT


class BurstKeys(Record):
    """What one operator typed in one burst. Of secret keys only how many they are."""

    actor: str
    operator: OperatorId
    seq: int
    last_seq: int
    at: float
    offset: int
    data: bytes
    size: int
    secret: bool


class BurstPage:
    """At most one burst at a time: of one operator, secret or not."""

    def __init__(self, ring: Ring) -> None:
        self._page = ring.view[BURST_AT : BURST_AT + PAGE]
        self._words = self._page.cast("Q")
        self._whose: tuple[str, str, bool] | None = None
        self._size = 0

    def prepare(self, actor: str, operator: OperatorId, seq: int, data: bytes, secret: bool) -> int:
        """Room for this key in the burst that is open; else -1, and nothing was done."""
        size = self._size + len(data)
        if self._whose != (actor, operator, secret) or size > ROOM_BYTES:
            return -1
        if not secret:
            self._page[_DATA_AT + self._size : _DATA_AT + size] = data
        self._words[_PREPARED] = size
        self._words[_PREPARED_SEQ] = seq
        return size

    def commit(self, size: int, seq: int) -> None:
        """The key prepared last was taken."""
        self._size = size
        self._words[_COMMITTED] = size
        self._words[_COMMITTED_SEQ] = seq

    def begin(
        self, actor: str, operator: OperatorId, secret: bool, seq: int, offset: int, at: float
    ) -> None:
        """A new burst, empty. The one before was recorded and cleared."""
        words = self._words
        words[_COMMITTED] = words[_PREPARED] = 0
        words[_COMMITTED_SEQ] = words[_PREPARED_SEQ] = seq - 1
        who = bytes.fromhex(operator), actor.encode("ascii")
        _HEAD.pack_into(self._page, _HEAD_AT, offset, secret, at, *who)
        words[_FIRST_SEQ] = seq
        self._whose, self._size = (actor, operator, secret), 0

    def keys(self) -> BurstKeys | None:
        """What is gathered; None when there is nothing."""
        words = self._words
        if not words[_FIRST_SEQ] or not words[_COMMITTED]:
            return None
        offset, secret, at, operator, actor = _HEAD.unpack_from(self._page, _HEAD_AT)
        size = words[_COMMITTED]
        return BurstKeys(
            actor=actor.rstrip(b"\0").decode("ascii"),
            operator=OperatorId(operator.hex()),
            seq=words[_FIRST_SEQ],
            last_seq=words[_COMMITTED_SEQ],
            at=at,
            offset=offset,
            data=b"" if secret else bytes(self._page[_DATA_AT : _DATA_AT + size]),
            size=size,
            secret=bool(secret),
        )

    def clear(self) -> None:
        """It is recorded."""
        self._words[_FIRST_SEQ] = 0
        self._whose = None

    def settle(self, last_taken: dict[OperatorId, int]) -> None:
        """A daemon died: whether the key it had prepared was taken, the ledger knows."""
        words = self._words
        if not words[_FIRST_SEQ]:
            return
        operator = OperatorId(_HEAD.unpack_from(self._page, _HEAD_AT)[3].hex())
        prepared = words[_PREPARED_SEQ]
        if prepared > words[_COMMITTED_SEQ] and last_taken.get(operator, 0) >= prepared:
            words[_COMMITTED] = words[_PREPARED]
            words[_COMMITTED_SEQ] = prepared

    def close(self) -> None:
        self._words.release()
        self._page.release()
