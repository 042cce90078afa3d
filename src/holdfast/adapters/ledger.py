"""The input of a session: who sent which input last, and a conduit to the PTY, so that no input is
lost or applied twice when the daemon dies.

An input is *taken* when all of it is in the input conduit, a pipe in the keeper's custody, and its
sequence number stands in the ledger, a table in the session's shared page. From the conduit it is
spliced into the PTY; the kernel takes from the pipe exactly what the PTY took, so a new daemon
finds in the pipe what was not typed yet, and types it. The only moment of doubt, a kill between
filling the pipe and noting the sequence, is settled by the length of the pipe before and after.
"""

from __future__ import annotations

import os

from holdfast.adapters.ring import LEDGER_AT, PAGE, Ring, unread
from holdfast.model.ids import OperatorId
from holdfast.model.limits import LEDGER_OPERATORS

CONDUIT_BYTES = 64 << 10  # a pipe's default capacity

# u64 words from LEDGER_AT: the input being staged, then the table.
_STAGING, _BEFORE, _LENGTH, _SEQ, _WHO = 0, 1, 2, 3, 4  # _WHO takes two words
_CLOCK = 6
_TABLE_AT = 8
_ROW = 4  # operator (two words), sequence, last use
assert LEDGER_AT + 8 * (_TABLE_AT + _ROW * LEDGER_OPERATORS) <= PAGE


class Ledger:
    """Staging of inputs, and the memory of who got how far."""

    def __init__(self, ring: Ring, conduit: int) -> None:
        self.conduit = conduit
        self._words = ring.view[LEDGER_AT:PAGE].cast("Q")
        if self._words[_STAGING]:
            self._settle()

    def last_seq(self, operator: OperatorId) -> int:
        """The last input of this operator that was taken; 0 when none is remembered."""
        row = self._find(operator)
        return 0 if row is None else int(self._words[row + 2])

    def room(self) -> int:
        """Bytes the conduit surely takes now."""
        waiting = unread(self.conduit)
        # The first page of what waits may be partly typed, the last partly filled.
        pages = -(-waiting // PAGE) + 1 if waiting else 0
        return max(0, CONDUIT_BYTES - pages * PAGE)

    def take(self, operator: OperatorId, seq: int, data: bytes) -> None:
        """Put one input into custody, whole. The caller has checked that there is room."""
        words = self._words
        words[_BEFORE] = unread(self.conduit)
        words[_LENGTH] = len(data)
        words[_SEQ] = seq
        words[_WHO], words[_WHO + 1] = _split(operator)
        words[_STAGING] = 1
        if data and os.write(self.conduit, data) != len(data):
            raise AssertionError("the input conduit had less room than it said")
        self._note(operator, seq)
        words[_STAGING] = 0

    def type_into(self, master: int) -> bool:
        """Move what is in custody into the PTY. Whether nothing is left to move."""
        waiting = unread(self.conduit)
        while waiting:
            try:
                waiting -= os.splice(self.conduit, master, waiting)
            except BlockingIOError:
                return False
        return True

    def operators(self) -> dict[OperatorId, int]:
        """Every operator remembered, with its last sequence."""
        found = {}
        for index in range(LEDGER_OPERATORS):
            row = _TABLE_AT + index * _ROW
            if self._words[row + 3]:
                found[_join(self._words[row], self._words[row + 1])] = int(self._words[row + 2])
        return found

    def close(self) -> None:
        self._words.release()
        os.close(self.conduit)

    def _settle(self) -> None:
        """A daemon died while staging. The write was all or nothing: the length tells which."""
        words = self._words
        if unread(self.conduit) == words[_BEFORE] + words[_LENGTH]:
            self._note(_join(words[_WHO], words[_WHO + 1]), words[_SEQ])
        words[_STAGING] = 0

    def _note(self, operator: OperatorId, seq: int) -> None:
        row = self._find(operator)
        if row is None:
            row = self._oldest()
            self._words[row + 3] = 0
            self._words[row], self._words[row + 1] = _split(operator)
        self._words[row + 2] = seq
        self._words[_CLOCK] += 1
        self._words[row + 3] = self._words[_CLOCK]

    def _find(self, operator: OperatorId) -> int | None:
        high, low = _split(operator)
        for index in range(LEDGER_OPERATORS):
            row = _TABLE_AT + index * _ROW
            if self._words[row] == high and self._words[row + 1] == low and self._words[row + 3]:
                return row
        return None

    def _oldest(self) -> int:
        rows = range(_TABLE_AT, _TABLE_AT + _ROW * LEDGER_OPERATORS, _ROW)
        return min(rows, key=lambda row: self._words[row + 3])


def _split(operator: OperatorId) -> tuple[int, int]:
    return int(operator[:16], 16), int(operator[16:], 16)


def _join(high: int, low: int) -> OperatorId:
    return OperatorId(f"{high:016x}{low:016x}")
