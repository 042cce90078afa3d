"""The screen of a session, fed lazily from its ring.

Output is not parsed as it comes: the ring holds it, and the screen catches up when somebody needs
a view, or when much of it waits. A session that prints little never has a screen at all, and a
flood of plain lines is mostly skipped (core/scroll_skip.py): what scrolled by is out of sight.
The screen is always between escape sequences, so a snapshot plus the bytes that follow its
offset is the whole truth.

A screen is daemon memory, so it dies with the daemon. Its state is therefore checkpointed into the
session's shared memory before the output it came from rolls off, and at each resize: a new daemon
paints the checkpoint and feeds the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core import scroll_skip
from holdfast.core.vt_boundary import complete_prefix
from holdfast.model.limits import OUTPUT_CHUNK_BYTES
from holdfast.model.size import Size
from holdfast.ports.screen import ScreenPort
from holdfast.wire.terminal_queries import find_queries

_KEPT_BYTES = 64 << 10  # of a flood, fed to the screen: more lines than any screen has
_QUERY_MAX_BYTES = 64  # a query split over two bursts is still seen
# Go to the last row of a blank screen: the lines skipped had filled it. The pen stays as it is.
_JUMP = b"\x1b[2J\x1b[3J\x1b[999;1H"


class View:
    """What a session's terminal shows, at an offset."""

    def __init__(self, ring: Ring, size: Size, make: Callable[[Size], ScreenPort]) -> None:
        self._ring = ring
        self._size = size
        self._make = make
        self._screen: ScreenPort | None = None
        self._scanned = ring.head  # output before this was looked at for queries
        self._base = b""  # what the screen was when last fed; made when first needed, see `_skip`
        self._pen = b""  # in force at `offset`, as far as `_base` does not say it
        self.lag_max = ring.capacity * 5 // 8  # output that may wait for the screen
        self._kept = min(_KEPT_BYTES, ring.capacity // 4)
        self._thin = False  # lines were skipped that belong into the scrollback
        checkpoint = ring.load_checkpoint()
        self._checkpoint = checkpoint[0] if checkpoint else 0
        # Of the screen; without one, where feeding will begin. A keeper moves output whether or
        # not the screen still needs what rolls off.
        self.offset = max(self._checkpoint, ring.tail)
        self._looked = self.offset  # output from `offset` to here is known to only scroll

    def make_room(self) -> None:
        """The lag is over `lag_max`: the ring is filling with what the screen still needs."""
        self.offset = max(self.offset, self._ring.tail)
        if not self._skip():
            self.catch_up()

    def room(self) -> int:
        """Output the ring can take before it would overwrite what the screen still needs."""
        return self._ring.capacity - (self._ring.head - self.offset)

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
        self.offset = max(self.offset, self._ring.tail)
        if self._ring.head - self.offset > 2 * self._kept:
            self._skip()
        if self.offset < self._ring.head:
            self._base = b""
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

    def snapshot(self, *, scrollback: bool = True) -> tuple[int, bytes]:
        """The view as terminal text, and the offset it is true at."""
        self.catch_up()
        if scrollback:
            self._fill_scrollback()
        return self.offset, self._screen_now().snapshot(scrollback=scrollback)

    def text(self, *, scrollback: bool = False) -> str:
        self.catch_up()
        if scrollback:
            self._fill_scrollback()
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
        """Put the state into shared memory. Without scrollback: what is above the screen is in the
        ring."""
        self._save(self._screen_now().snapshot(scrollback=False))

    def painted(self) -> tuple[int, bytes]:
        """The screen as terminal text, and the offset at which that is true, as far as it is known
        without making a screen: of the one there is, or else the last checkpoint."""
        if self._screen is not None:
            self.catch_up()
            return self.offset, self._screen.snapshot(scrollback=False)
        return self._ring.load_checkpoint() or (0, b"")

    def close(self, *, keep: bool = False) -> None:
        """Drop the screen; with `keep`, after a last checkpoint for the next daemon."""
        if self._screen is not None:
            if keep:
                self.catch_up()
                self.checkpoint()
            self._screen.close()
            self._screen = None

    # -- floods -------------------------------------------------------------------------------

    def _skip(self) -> bool:
        """Leave output that only scrolls out of the screen, but for the last of it, if that makes
        no difference to the screen. The lines above it are in the ring: see `_fill_scrollback`."""
        ring, rows = self._ring, self._size.rows
        kept_from = ring.head - self._kept
        if kept_from <= self.offset or not self._only_scrolls():
            return False
        start = max(self.offset, kept_from - self._kept)
        passed = ring.copy(start, kept_from)
        line_end = scroll_skip.last_line_end(passed)
        kept = ring.copy(kept_from, ring.head)
        if min(passed.count(b"\n", 0, line_end), kept.count(b"\n")) < rows:
            return False
        pen = self._pen_at(start, passed[:line_end])
        if pen is None or not self._is_usual():
            return False
        self._pen = pen
        self.offset = start + line_end
        self._thin = True
        self._screen_now().feed(_JUMP + pen)
        self._save(self._base + _JUMP + pen)
        return True

    def _only_scrolls(self) -> bool:
        """Whether all that waits for the screen does; each byte is looked at once."""
        ring = self._ring
        start = max(self._looked, self.offset)
        new = ring.copy(start, ring.head)
        whole = complete_prefix(new, OUTPUT_CHUNK_BYTES // 2)
        if not scroll_skip.only_scrolls(new if whole == len(new) else new[:whole]):
            return False
        self._looked = start + whole
        return True

    def _is_usual(self) -> bool:
        """Whether the screen scrolls in the ordinary way. Its snapshot is the base of checkpoints
        until it is fed again."""
        if not self._base:
            base = self._screen_now().snapshot(scrollback=False)
            if not scroll_skip.is_usual(base):
                return False
            self._base, self._pen = base, b""
        return True

    def _pen_at(self, start: int, passed: bytes) -> bytes | None:
        """The colours in force after `passed`, which began at `start`."""
        if start > self.offset and not scroll_skip.has_reset(passed):
            passed = self._ring.copy(self.offset, start) + passed
        return scroll_skip.pen_after(self._pen if self._base else b"", passed)

    def _fill_scrollback(self) -> None:
        """After a flood was skipped the screen has few lines above it; the ring has more. A new
        screen is made from both, as a new daemon would."""
        if self._thin and self._screen is not None:
            self.checkpoint()
            self._screen.close()
            self._screen = None
            self._screen_now()
            self._thin = False

    # -- the screen and its checkpoint ----------------------------------------------------------

    def _save(self, data: bytes) -> None:
        if self._ring.save_checkpoint(self.offset, data):
            self._checkpoint = self.offset

    def _screen_now(self) -> ScreenPort:
        if self._screen is not None:
            return self._screen
        self._screen = screen = self._make(self._size)
        checkpoint = self._ring.load_checkpoint()
        if checkpoint is not None:
            # What is still held from before the checkpoint fills the scrollback; then the
            # checkpoint paints the screen exactly.
            offset, painted = checkpoint
            if offset > self._ring.tail:
                before = self._ring.copy(self._ring.tail, offset)
                screen.feed(before[: complete_prefix(before, len(before))])
            screen.feed(painted)
            self.offset = offset
        self.offset = max(self.offset, self._ring.tail)
        return screen
