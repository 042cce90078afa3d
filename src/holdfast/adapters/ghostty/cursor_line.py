"""The line of the cursor in a terminal kept by libghostty-vt: for an operator's own terminal, over
which guesses are drawn (`holdfast.sdk.prediction.machine`) and must leave no trace.

It is fed the same output as the operator's terminal, at the same size. It reports what is on the
line, whether a guess may be drawn there, and gives the text that puts cells and pen back as they
were. It draws nothing and decides nothing about guesses. It keeps no scrollback."""

from __future__ import annotations

import re

from holdfast.adapters.ghostty.abi import ffi, lib
from holdfast.adapters.ghostty.terminal_handle import Native, Replies
from holdfast.model.size import Size

_ASCII = re.compile(rb"\x1b[()*+]B")
_PEN = re.compile(rb"(?:\x1b\[[\d;:]*m)*")
_PEN_EXTRAS = ("screen.style", "screen.hyperlink", "screen.protection", "screen.charsets")
_BLANK = bytes(8)  # a cell that was never written, or was erased
# Modes under which printing does more than put a character in the next cell: origin, left and
# right margins, synchronized output (nothing is seen until its end); and insert, of ANSI.
_BENDING = (6, 69, 2026)
_INSERT = 4


class LineScreen:
    """An emulator beside the operator's terminal. One thread at a time."""

    def __init__(self, size: Size) -> None:
        self._native = Native.new(size, 0)
        self._native.collect_replies(Replies(size))  # or the library would answer by itself

    def feed(self, data: bytes) -> None:
        self._native.write(data)

    def resize(self, size: Size) -> None:
        self._native.resize(size, 0)

    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        return self._native.number("CURSOR_X"), self._native.number("CURSOR_Y")

    def row(self, no_guess: str) -> str:
        """The row of the cursor, one character per column, blanks as spaces; a cell that is not
        one whole character by itself, or is a link, as `no_guess`."""
        _, y = self.cursor()
        rows, _ = self._native.visible_rows()
        cells = rows[y].cells
        return "".join(_char(cells[at : at + 8], no_guess) for at in range(0, len(cells), 8))

    def plain(self) -> bool:
        """Whether a character printed now would go to the cell of the cursor and do no more. (At
        the end of the row it may wrap; that the row is at its end, one sees by the row.)"""
        native = self._native
        return (
            native.get("ACTIVE_SCREEN", "int") == 0
            and bool(native.get("VT_GROUND", "bool"))
            and bool(native.get("CURSOR_VISIBLE", "bool"))
            and not any(native.mode(number) for number in _BENDING)
            and not native.mode(_INSERT, ansi=True)
            and _PEN.fullmatch(self._pen()) is not None
        )

    def pen(self) -> bytes:
        """What brings the pen back, where `plain`."""
        return self._pen()

    def cells(self, first: int, last: int) -> bytes:
        """What draws these columns of the cursor's row as they are, from the first on; `last` is
        included. Ends right of them, with some pen or other."""
        _, y = self.cursor()
        rows, _ = self._native.visible_rows()
        row = [rows[y].cells[at * 8 : at * 8 + 8] for at in range(first, last + 1)]
        parts, at = [], 0
        while at < len(row):
            end = at + 1
            blank = row[at] == _BLANK
            while end < len(row) and (row[end] == _BLANK) == blank:
                end += 1
            if blank:
                parts.append(b"\x1b[0m\x1b[%dX\x1b[%dC" % (end - at, end - at))
            else:
                area = self._native.area((first + at, y), (first + end - 1, y))
                parts.append(b"\x1b[0m" + self._native.format(area=area))
            at = end
        return b"".join(parts)

    def close(self) -> None:
        self._native.free()

    def _pen(self) -> bytes:
        """Colours, link, protection, character sets; as from a reset pen."""
        x, y = self.cursor()
        cell = self._native.area((x, y), (x, y))
        content = self._native.format(area=cell)
        pen = self._native.format(*_PEN_EXTRAS, area=cell).removeprefix(content)
        return _ASCII.sub(b"", pen)


def _char(cell: bytes, no_guess: str) -> str:
    if cell == _BLANK:
        return " "
    raw = int.from_bytes(cell, "little")
    code, wide = ffi.new("uint32_t*"), ffi.new("GhosttyCellWide*")
    tag, linked = ffi.new("GhosttyCellContentTag*"), ffi.new("bool*")
    lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_CODEPOINT, code)
    lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_WIDE, wide)
    lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_CONTENT_TAG, tag)
    lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_HAS_HYPERLINK, linked)
    whole = tag[0] == lib.GHOSTTY_CELL_CONTENT_CODEPOINT and wide[0] == lib.GHOSTTY_CELL_WIDE_NARROW
    return chr(code[0]) if whole and code[0] and not linked[0] else no_guess
