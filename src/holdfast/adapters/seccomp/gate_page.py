"""The memory of one session's exec gate, in the custody of its keeper: whether anything is judged,
and the calls that were taken from the kernel and have no answer yet. native/hold_keeper.c has the
same numbers.

    0     the word: zero while nothing is judged; else a generation, and which kinds are judged
    8     not zero: the keeper has left the gate, and another may read the listener
    64 .. calls, as the kernel wrote them (notification.CALL); a free place has id zero

The word changes by a single store, and whoever lets a call pass reads it after taking that call:
calls made after a change are judged by it. A call is taken directly into its place here, so nothing
is lost when the process that took it dies: the next one answers.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from enum import IntFlag

CALLS_MAX = 500  # without an answer at a time; others wait in the kernel
CALL_BYTES = 80
_WORD_AT, _CALLS_AT = 0, 64
_BYTES = _CALLS_AT + CALLS_MAX * CALL_BYTES
_GENERATION_SHIFT = 8
_ID = struct.Struct("=Q")


class JudgedKinds(IntFlag):
    """Which kinds of call are judged."""

    NOTHING = 0
    EXEC = 1  # and reaching into other processes
    WRITE_OPEN = 2
    CONNECT = 8
    READS = 4  # several actors have a part: who reads what another wrote is to be known


def make() -> int:
    page = os.memfd_create("holdfast-gate", os.MFD_CLOEXEC)
    os.ftruncate(page, _BYTES)
    return page


class GatePage:
    """One session's page, mapped."""

    def __init__(self, memfd: int) -> None:
        self._mapping = mmap.mmap(memfd, _BYTES)
        self._view = memoryview(self._mapping)
        self._words = self._view[:_CALLS_AT].cast("Q")
        self._anchor = ctypes.c_char.from_buffer(self._mapping)
        self._base = ctypes.addressof(self._anchor)
        # Looked for when it is needed first: looking brings every page of this memory into being.
        self._known_free: list[int] | None = None

    @property
    def _free(self) -> list[int]:
        if self._known_free is None:
            self._known_free = [place for place in range(CALLS_MAX) if not self.call(place)]
        return self._known_free

    @property
    def word(self) -> int:
        return self._words[0]

    @property
    def judged(self) -> JudgedKinds:
        return JudgedKinds(self._words[0] & 0xFF)

    def judge(self, kinds: JudgedKinds) -> None:
        """From here on these kinds are judged. Earlier answers no longer count."""
        generation = (self._words[0] >> _GENERATION_SHIFT) + 1
        self._words[0] = generation << _GENERATION_SHIFT | kinds

    # -- calls without an answer ------------------------------------------------------------------

    def address(self, place: int) -> int:
        return self._base + _CALLS_AT + place * CALL_BYTES

    def call(self, place: int) -> bytes:
        """The call in that place; empty if there is none."""
        at = _CALLS_AT + place * CALL_BYTES
        found = bytes(self._view[at : at + CALL_BYTES])
        return found if _ID.unpack_from(found)[0] else b""

    def free_place(self) -> int | None:
        """One that is not used; taken until it is given back. The kernel takes zeros only."""
        return self._free.pop() if self._free else None

    @property
    def has_room(self) -> bool:
        return bool(self._free)

    def give_back(self, place: int) -> None:
        free, at = self._free, _CALLS_AT + place * CALL_BYTES
        self._view[at : at + CALL_BYTES] = bytes(CALL_BYTES)
        free.append(place)

    def waiting(self) -> list[int]:
        """The places of calls that another process took."""
        return [place for place in range(CALLS_MAX) if self.call(place)]

    def close(self) -> None:
        del self._anchor
        self._words.release()
        self._view.release()
        self._mapping.close()


class GateWord:
    """The word, for the daemon: nobody else changes it. In most sessions nothing is ever judged,
    and even looking would bring the page into being."""

    def __init__(self, memfd: int) -> None:
        self._memfd = memfd  # the caller's, and open as long as this is
        self._page = GatePage(memfd) if os.fstat(memfd).st_blocks else None

    @property
    def value(self) -> int:
        return self._page.word if self._page is not None else 0

    @property
    def judged(self) -> JudgedKinds:
        return self._page.judged if self._page is not None else JudgedKinds.NOTHING

    def judge(self, kinds: JudgedKinds) -> None:
        self._page = self._page or GatePage(self._memfd)
        self._page.judge(kinds)

    def close(self) -> None:
        if self._page is not None:
            self._page.close()
