"""The screen of a session, fed lazily from its ring.

Output is not parsed as it comes: the ring holds it, and the screen catches up when somebody needs
a view, or when the lag reaches UNFED_MAX_BYTES. A session that prints little never has a screen
at all. The screen always stands between escape sequences, so a snapshot plus the bytes that follow
its offset is the whole truth.

A screen is daemon memory, so it dies with the daemon. Its state is therefore checkpointed into the
session's shared memory every half ring of output and at each resize: a new daemon paints the
checkpoint and feeds the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.adapters.ring import Ring
from holdfast.core.vt_boundary import complete_prefix, find_queries
from holdfast.model.limits import OUTPUT_CHUNK_BYTES, UNFED_MAX_BYTES
from holdfast.model.size import Size
from holdfast.ports.screen import Screen

_QUERY_MAX_BYTES = 64  # a query split over two bursts is still seen


class View:
    """What a session's terminal shows, at an offset."""

    def __init__(self, ring: Ring, size: Size, make: Callable[[Size], Screen]) -> None:
        self._ring = ring
        self._size = size
        self._make = make
        self._screen: Screen | None = None
        self._scanned = ring.head  # output before this was looked at for queries
        self._lag_max = min(UNFED_MAX_BYTES, ring.capacity // 2)
        checkpoint = ring.load_checkpoint()
        self._checkpoint = checkpoint[0] if checkpoint else 0
        self.offset = self._checkpoint  # of the screen; without a screen, where feeding will begin

    def output_came(self) -> None:
        """New output is in the ring: catch up only if the lag is at its limit."""
        if self._ring.head - self.offset > self._lag_max:
            self.catch_up()

    def answer_queries(self) -> bytes:
        """What a terminal would answer to the queries in the newest output."""
        start = max(self._scanned - _QUERY_MAX_BYTES, self._ring.tail)
        self._scanned = self._ring.head
        if not find_queries(self._ring.copy(start, self._ring.head)):
            return b""
        return self.catch_up()

    def catch_up(self) -> bytes:
        """Feed the screen all complete output; gives the emulator's answers to queries in it."""
        screen = self._screen_now()
        answers = b""
        while self.offset < self._ring.head:
            end = min(self.offset + OUTPUT_CHUNK_BYTES, self._ring.head)
            data = self._ring.read(self.offset, end)
            chunk = data[0] if len(data) == 1 else b"".join(data)
            whole = complete_prefix(chunk, OUTPUT_CHUNK_BYTES // 2)
            if not whole:
                break
            answers += screen.feed(chunk[:whole])
            self.offset += whole
            if self.offset - self._checkpoint >= self._ring.capacity // 2:
                self.checkpoint()
        return answers

    def resize(self, size: Size) -> None:
        self._size = size
        if self._ring.head or self._screen is not None:
            self.catch_up()
            self._screen_now().resize(size)
            self.checkpoint()

    def snapshot(self) -> tuple[int, bytes]:
        """The view as terminal text, and the offset it is true at."""
        self.catch_up()
        return self.offset, self._screen_now().snapshot()

    def text(self, *, scrollback: bool = False) -> str:
        self.catch_up()
        return self._screen_now().text(scrollback=scrollback)

    def cursor(self) -> tuple[int, int]:
        self.catch_up()
        return self._screen_now().cursor()

    def mode(self, number: int) -> bool:
        self.catch_up()
        return self._screen_now().mode(number)

    @property
    def title(self) -> str:
        """Of the screen as far as it was fed; asking does not feed it."""
        return self._screen.title if self._screen is not None else ""

    def checkpoint(self) -> None:
        """Put the state into shared memory. Without scrollback: it is taken often, and what is
        above the screen is in the ring."""
        data = self._screen_now().snapshot(scrollback=False)
        if self._ring.save_checkpoint(self.offset, data):
            self._checkpoint = self.offset

    def close(self, *, keep: bool = False) -> None:
        """Drop the screen; with `keep`, after a last checkpoint for the next daemon."""
        if self._screen is not None:
            if keep:
                self.catch_up()
                self.checkpoint()
            self._screen.close()
            self._screen = None

    def _screen_now(self) -> Screen:
        if self._screen is None:
            self._screen = self._make(self._size)
            checkpoint = self._ring.load_checkpoint()
            if checkpoint is not None:
                # What is still held from before the checkpoint fills the scrollback; then the
                # checkpoint paints the screen exactly.
                offset, painted = checkpoint
                if offset > self._ring.tail:
                    before = self._ring.copy(self._ring.tail, offset)
                    self._screen.feed(before[: complete_prefix(before, len(before))])
                self._screen.feed(painted)
                self.offset = offset
            self.offset = max(self.offset, self._ring.tail)
        return self._screen
