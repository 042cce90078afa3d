"""Keys typed without the turn are dropped as a whole line: the tail of a command never runs.

The rule, for every client with a keyboard. When keys were dropped because the host does not take
them, what is typed next belongs to the same line and is dropped too, even if it would be taken by
then, until

- nothing was typed for `PAUSE_S`, or
- an Enter or C-c, which is dropped as well. What comes within `PASTE_GAP_S` of it is of the same
  paste, and dropped. Several Enters in what was read at once are a paste whose pieces may come
  slowly (ssh): only a pause ends it.

Commands of the client itself are not keys in this sense: they always work. There is no clock here,
and nothing about the turn.
"""

from __future__ import annotations

# Longer than people stop within a word, shorter than it takes to read the line that says why.
PAUSE_S = 1.5
# Longer than a terminal takes between two pieces of a paste, shorter than from Enter to a key.
PASTE_GAP_S = 0.05
_ENDS_LINE = (0x03, 0x0A, 0x0D)


class UnsentLine:
    """Whether a line is being dropped, and until when if nothing more is typed."""

    def __init__(self) -> None:
        self._until = 0.0

    def dropped(self, data: bytes, now: float) -> None:
        """These keys were not sent."""
        self._until = now + (PASTE_GAP_S if _ends_line(data) else PAUSE_S)

    def drops(self, now: float) -> bool:
        """Whether a key typed now belongs to a line that is dropped."""
        return now < self._until

    def swallows(self, data: bytes, now: float) -> bool:
        """Whether these keys are dropped with the line that they belong to."""
        if not self.drops(now):
            return False
        self.dropped(data, now)
        return True


def _ends_line(data: bytes) -> bool:
    return sum(byte in _ENDS_LINE for byte in data) == 1 and data[-1] in _ENDS_LINE
