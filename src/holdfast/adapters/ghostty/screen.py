"""The screen of a session, kept by libghostty-vt (implements `holdfast.ports.screen.Screen`).

What a snapshot does not bring back; tests/unit/test_screen.py has a test that fails for each but
pictures and unknown modes:
- emoji joined or split under the other setting of mode 2027 (grapheme clusters) than the present;
- a wide character printed in the line drawing set: the library keeps a wide blank for it;
- hyperlinks and coloured rows without text, once they have scrolled off into scrollback;
- the explicit id of a hyperlink (the address is kept);
- modifyOtherKeys 1 (the library knows only 2), and modes it does not know;
- what was left on the alternate screen while the primary one is shown;
- protection of single characters (DECSCA), shell marks (OSC 133), pictures;
- palette colours, left out on purpose: they are the operator's own.

It does not decide which terminal answers a query: `feed` returns what a terminal would answer.
"""

from __future__ import annotations

from holdfast.adapters.ghostty.terminal_handle import Native, Replies
from holdfast.adapters.ghostty.vt_snapshot import compose
from holdfast.model.limits import SCROLLBACK_MAX_LINES
from holdfast.model.size import Size


class GhosttyScreen:
    """One thread at a time. The terminal is made by the first call that needs one."""

    def __init__(self, size: Size, scrollback_lines: int | None = SCROLLBACK_MAX_LINES) -> None:
        self._native: Native | None = None
        self._closed = False
        self._scrollback_lines = scrollback_lines
        self._replies = Replies(size.checked())

    @property
    def size(self) -> Size:
        return self._replies.size

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take output without copying it; other threads run meanwhile."""
        self._terminal().write(data)
        if not self._replies.parts:
            return b""
        answer = b"".join(self._replies.parts)
        self._replies.parts.clear()
        return answer

    def resize(self, size: Size) -> None:
        if size.checked() != self.size:
            self._replies.size = size
            if self._native is not None:
                self._native.resize(size, self._scrollback_lines)

    def snapshot(self, *, scrollback: bool = True) -> bytes:
        """See the port. Without `scrollback` it repaints a terminal that has been following, and
        would otherwise get the same lines into its scrollback twice."""
        return compose(self._terminal(), self.size, scrollback=scrollback)

    def text(self, *, scrollback: bool = False) -> str:
        terminal = self._terminal()
        corner = (self.size.cols - 1, self.size.rows - 1)
        area = None if scrollback else terminal.area((0, 0), corner)
        return terminal.format(plain=True, trim=True, area=area).decode(errors="replace")

    def scrolled(self) -> int:
        return self._terminal().number("TOTAL_ROWS") - self.size.rows

    def cursor(self) -> tuple[int, int]:
        terminal = self._terminal()
        return terminal.number("CURSOR_X"), terminal.number("CURSOR_Y")

    @property
    def title(self) -> str:
        return self._terminal().title()

    def mode(self, number: int) -> bool:
        return self._terminal().mode(number)

    def close(self) -> None:
        native, self._native, self._closed = self._native, None, True
        if native is not None:
            native.free()

    def __del__(self) -> None:
        self.close()

    def _terminal(self) -> Native:
        if self._native is None:
            if self._closed:
                raise ValueError("the screen is closed")
            self._native = Native.new(self.size, self._scrollback_lines)
            self._native.collect_replies(self._replies)
        return self._native
