"""A short busy wait for an answer that is due at once.

The echo of a key press comes back within a tenth of a millisecond. Going to sleep and being woken
takes longer than that, twice on each side. So after sending a key a process polls for a moment
before it sleeps. The wait is bounded, and it is suspended for a while when no quick answer comes,
so it wastes little time whatever is typed.
"""

from __future__ import annotations

KEYS_MAX_BYTES = 16  # of an input that looks like a key press
_GIVE_UP_FOR = 8  # inputs, after one that was not answered quickly


class EchoPatience:
    """Whether to poll, learned from the last answers."""

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
