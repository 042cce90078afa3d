"""The input of a session: who sent which input last, and a conduit to the PTY, so that no input is
lost or applied twice when the daemon dies.

An input is *taken* when all of it is in the input conduit, a pipe in the keeper's custody, and its
sequence number stands in the ledger, a table in the session's shared page. From the conduit it is
spliced into the PTY; the kernel takes from the pipe exactly what the PTY took, so a new daemon
finds in the pipe what was not typed yet, and types it. The only moment of doubt, a kill between
filling the pipe and noting the sequence, is settled by the length of the pipe before and after.
"""

from __future__ import annotations

import functools
import os
import struct

from holdfast.adapters.session_memory.layout import LEDGER_AT, PAGE
from holdfast.adapters.session_memory.output_ring import Ring, unread
from holdfast.model.ids import OperatorId
from holdfast.model.limits import LEDGER_OPERATORS

CONDUIT_PAGES = 16  # a pipe's default capacity

# u64 words from LEDGER_AT: the input being staged, then the table.
_STAGING, _BEFORE, _LENGTH, _SEQ, _WHO = 0, 1, 2, 3, 4  # _WHO takes two words
_CLOCK = 6
_STAGED = struct.Struct("5Q")  # from _BEFORE to _WHO
_TABLE_AT = 8
_ROW = 4  # operator (two words), sequence, last use
assert LEDGER_AT + 8 * (_TABLE_AT + _ROW * LEDGER_OPERATORS) <= PAGE


class InputLedger:
    """Staging of inputs, and the memory of who got how far."""

    def __init__(self, ring: Ring, conduit: int) -> None:
        self.conduit = conduit
        self._page = ring.view[LEDGER_AT:PAGE]
        self._words = self._page.cast("Q")
        self._rows = self._read_rows()
        # Only this process fills and empties the conduit, so it need not ask how full it is. A pipe
        # is full when its pages are, and inputs that do not fit into a page's rest begin a new one:
        # so pages are counted as if none were shared, until the pipe is empty again.
        self.untyped = self._pages = 0  # bytes in custody that are not in the PTY yet

    def recover(self) -> None:
        """Another daemon took inputs until now: settle the one it may have been staging, and count
        what it left to be typed."""
        if self._words[_STAGING]:
            self._settle()
        self.untyped = unread(self.conduit)
        self._pages = CONDUIT_PAGES if self.untyped else 0

    def last_seq(self, operator: OperatorId) -> int:
        """The last input of this operator that was taken; 0 when none is remembered."""
        row = self._rows.get(operator)
        return 0 if row is None else int(self._words[row + 2])

    def room(self) -> int:
        """Bytes the conduit surely takes now."""
        return (CONDUIT_PAGES - self._pages) * PAGE

    def take(self, operator: OperatorId, seq: int, data: bytes) -> None:
        """Put one input into custody, whole. The caller has checked that there is room."""
        words = self._words
        _STAGED.pack_into(self._page, 8 * _BEFORE, self.untyped, len(data), seq, *_split(operator))
        words[_STAGING] = 1
        if data and os.write(self.conduit, data) != len(data):
            raise AssertionError("the input conduit had less room than it said")
        self.untyped += len(data)
        self._pages += -(-len(data) // PAGE)
        self._note(operator, seq)
        words[_STAGING] = 0

    def type_into(self, master: int) -> bool:
        """Move what is in custody into the PTY. Whether nothing is left to move."""
        while self.untyped:
            try:
                self.untyped -= os.splice(self.conduit, master, self.untyped)
            except BlockingIOError:
                return False
        self._pages = 0
        return True

    def operators(self) -> dict[OperatorId, int]:
        """Every operator remembered, with its last sequence."""
        return {operator: int(self._words[row + 2]) for operator, row in self._rows.items()}

    def close(self) -> None:
        self._words.release()
        self._page.release()
        os.close(self.conduit)

    def _settle(self) -> None:
        """A daemon died while staging. The write was all or nothing: the length tells which."""
        words = self._words
        if unread(self.conduit) == words[_BEFORE] + words[_LENGTH]:
            self._note(_join(words[_WHO], words[_WHO + 1]), words[_SEQ])
        words[_STAGING] = 0

    def _note(self, operator: OperatorId, seq: int) -> None:
        words = self._words
        row = self._rows.get(operator)
        if row is None:
            row = self._free_row()
            words[row + 3] = 0
            words[row], words[row + 1] = _split(operator)
            self._rows[operator] = row
        words[row + 2] = seq
        words[_CLOCK] += 1
        words[row + 3] = words[_CLOCK]

    def _read_rows(self) -> dict[OperatorId, int]:
        words = self._words
        every = range(_TABLE_AT, _TABLE_AT + _ROW * LEDGER_OPERATORS, _ROW)
        return {_join(words[row], words[row + 1]): row for row in every if words[row + 3]}

    def _free_row(self) -> int:
        """A row never used, else that of the operator who typed longest ago."""
        if len(self._rows) < LEDGER_OPERATORS:
            return _TABLE_AT + _ROW * len(self._rows)
        oldest = min(self._rows, key=lambda operator: self._words[self._rows[operator] + 3])
        return self._rows.pop(oldest)


@functools.lru_cache(maxsize=1024)
def _split(operator: OperatorId) -> tuple[int, int]:
    return int(operator[:16], 16), int(operator[16:], 16)


def _join(high: int, low: int) -> OperatorId:
    return OperatorId(f"{high:016x}{low:016x}")
