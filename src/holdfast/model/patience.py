"""A short wait in a loop instead of in the kernel, where an answer is due at once.

The echo of a key press comes back within a tenth of a millisecond. Going to sleep and being woken
takes longer than that, twice on each side. So who has just sent a key looks again and again for a
moment before going to sleep. It is bounded, and it is given up for a while where no quick answer
comes: a few wasted moments per second at most, whatever is typed.
"""

from __future__ import annotations

KEYS_MAX_BYTES = 16  # of an input that looks like a key press
_GIVE_UP_FOR = 8  # inputs, after one that was not answered quickly


class EchoPatience:
    """Whether to look again at once, learned from the last answers."""

    def __init__(self) -> None:
        self._skip = 0

    def worthwhile(self, size: int) -> bool:
        """Whether an input of this size is likely to be answered at once."""
        if size > KEYS_MAX_BYTES:
            return False
        if self._skip:
            self._skip -= 1
            return False
        return True

    def answered(self, quickly: bool) -> None:
        if not quickly:
            self._skip = _GIVE_UP_FOR
