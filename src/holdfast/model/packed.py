"""Data that is kept while nobody looks at it. As objects, the state of an idle shell would be most
of what its session takes in the daemon; packed it is a tenth of that.

For this process only: what is written or sent has a format of its own.
"""

from __future__ import annotations

import marshal
import zlib
from typing import Any

from holdfast.model.shell_state import ShellState


def packed(data: Any) -> bytes:
    """Of texts, numbers, tuples and dicts."""
    return zlib.compress(marshal.dumps(data), 1)


def unpacked(data: bytes) -> Any:
    return marshal.loads(zlib.decompress(data))


class PackedState:
    """A shell's state."""

    __slots__ = ("_data", "number", "serial")

    def __init__(self, data: bytes, number: int, serial: int) -> None:
        self._data, self.number, self.serial = data, number, serial

    @classmethod
    def of(cls, state: ShellState) -> PackedState:
        values = tuple(getattr(state, field) for field in ShellState._fields)
        return cls(packed(values), state.number, state.serial)

    def renumbered(self, number: int, serial: int) -> PackedState:
        """The same at a later prompt."""
        return PackedState(self._data, number, serial)

    def state(self) -> ShellState:
        state = ShellState(*unpacked(self._data))
        return state.replace(number=self.number, serial=self.serial)
