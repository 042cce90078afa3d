"""A terminal's state as VT text for another terminal: the operator's own, or a fresh emulator.

The library exports cells and most extras, of the active screen only and in an order that does not
always replay (origin mode before the cursor is placed, the pen lost under a pending wrap). So the
pieces are taken one by one and put in the order in which they hold. What can only be learned by
changing a terminal (the saved cursor, the keyboard stack, the screen not shown) is learned from a
copy: the live terminal is read, never written.

Lines that were soft-wrapped are sent joined, so that they wrap again. That is first tried on a
spare terminal; if it does not give the same rows there, the rows are sent one by one instead.

It does not clear the operator's scrollback (no RIS, no `CSI 3 J`), set colours of the palette, or
send what a terminal would answer. What does not come back is listed in `ghostty`."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.adapters.ghostty.terminal_handle import Native, background
from holdfast.model import terminal_reset
from holdfast.model.size import Size

ALTERNATE = 1  # as the library numbers the screens

_HOLD, _RELEASE = b"\x1b[?2026h", b"\x1b[?2026l"  # one repaint instead of a flicker
_BLANK = b"\x1b[0m\x1b[H\x1b[2J"
_RESET = terminal_reset.ALL + _BLANK  # erases no scrollback

_MODE = re.compile(rb"\x1b\[(\??)(\d+)([hl])")
_MARGINS = re.compile(rb"\x1b\[(\d+);(\d+)([rs])")
_ASCII = re.compile(rb"\x1b[()*+]B")  # the reset says so already
_SGR = re.compile(rb"\x1b\[([\d;]*[34]8;5;[\d;]*)m")
_SCREEN_MODES = (1049, 1047, 47)
# Not modes to switch on by themselves: 132 columns clears the screen, the screen modes and 1048
# are acts, 6 and 7 and insert (ANSI 4) would bend the painting and come last, 12 is the cursor's.
_NOT_NOW = {b"?3", b"?40", b"?6", b"?7", b"?12", b"?47", b"?1047", b"?1048", b"?1049", b"?2026"}
_INSERT = b"4"
_KEYPAD = b"?66"  # tmux knows it by its older name only, DECKPAM
_SHAPES = {0: 5, 1: 1, 2: 3}  # library's bar, block, underline -> DECSCUSR, blinking; +1 is steady
_KITTY_DEPTH = 8  # entries of a keyboard stack


class _Cursor(NamedTuple):
    x: int
    y: int
    pen: bytes  # SGR, hyperlink, protection, character sets
    wrap: bytes  # the cell to print again to have a wrap pending, with the way to it; or nothing
    origin: bool

    def place(self, top: int = 0, left: int = 0) -> bytes:
        """Go there, from a reset pen, counting from the margins if in origin mode."""
        go = _go(self.x - left, self.y - top)
        return go + self.wrap + self.pen


class _Screen(NamedTuple):
    """What belongs to one of the two screens."""

    body: bytes
    cursor: _Cursor
    saved: _Cursor
    keys: bytes


def compose(live: Native, size: Size, *, scrollback: bool = True) -> bytes:
    """The whole snapshot; see `holdfast.ports.screen`."""
    copy = live.copy()
    if copy is None:
        return _reduced(live, size, scrollback=scrollback)
    try:
        on_alternate = live.get("ACTIVE_SCREEN", "int") == ALTERNATE
        clusters = b"\x1b[?2027h" if live.mode(2027) else b""
        parts = [_HOLD, _RESET, clusters]
        shown = _screen(copy, size, scrollback=scrollback)
        if on_alternate:
            # 47 switches without clearing; that it carries the cursor along does not matter, as
            # every way back to the primary screen either restores the saved one or does the same.
            copy.write(b"\x1b[?47l")
            primary = _screen(copy, size, scrollback=scrollback)
            parts += [primary.body, primary.keys, _save(primary.saved, then=_enter(live)), _BLANK]
        parts += [shown.body, _save(shown.saved), shown.keys, _state(live, shown.cursor)]
        parts.append(b"" if live.mode(2026) else _RELEASE)
        return basic_colours(b"".join(parts)) + live.unfinished()
    finally:
        copy.free()


def _reduced(live: Native, size: Size, *, scrollback: bool) -> bytes:
    """Without a copy (an endless sequence is under way): the shown screen and no saved cursor."""
    body, cursor = _paint(live, size, scrollback=scrollback), _cursor(live)
    enter = _enter(live) + _BLANK if live.get("ACTIVE_SCREEN", "int") == ALTERNATE else b""
    parts = (_HOLD, _RESET, enter, body, _state(live, cursor), _RELEASE)
    return basic_colours(b"".join(parts))


def _screen(copy: Native, size: Size, *, scrollback: bool) -> _Screen:
    """The shown screen of a copy. Changes the copy: keyboard stack and cursor are consumed."""
    body, cursor = _paint(copy, size, scrollback=scrollback), _cursor(copy)
    stack = []
    for _ in range(_KITTY_DEPTH):
        stack.append(copy.get("KITTY_KEYBOARD_FLAGS", "uint8_t"))
        copy.write(b"\x1b[<u")
    while stack and not stack[-1]:
        stack.pop()
    keys = b"".join(b"\x1b[>%du" % flags for flags in reversed(stack))
    copy.write(b"\x1b8")
    return _Screen(body, cursor, _cursor(copy), keys)


# -- colours ----------------------------------------------------------------------------------


def basic_colours(data: bytes) -> bytes:
    """The first 16 colours by their own codes. The library knows a colour's number and not how it
    was set, and exports `38;5;1` for `31`: a terminal without 256 colours shows nothing then, and
    one that shows bold text in bright colours does so for `31` only."""
    return _SGR.sub(_basic, data)


def _basic(match: re.Match[bytes]) -> bytes:
    given, made, at = match[1].split(b";"), [], 0
    while at < len(given):
        kind, how = given[at], given[at + 1 : at + 2]
        if kind not in (b"38", b"48", b"58") or how not in ([b"5"], [b"2"]):
            made.append(kind)
            at += 1
            continue
        taken = given[at : at + (3 if how == [b"5"] else 5)]
        at += len(taken)
        number = int(taken[2]) if len(taken) == 3 and taken[2] else 16
        if kind == b"58" or number > 15:
            made += taken
        else:
            base = (30 if kind == b"38" else 40) + (60 if number > 7 else 0)
            made.append(b"%d" % (base + number % 8))
    return b"\x1b[" + b";".join(made) + b"m"


# -- cells ------------------------------------------------------------------------------------


def _paint(native: Native, size: Size, *, scrollback: bool) -> bytes:
    """Every row from the top left corner of a blank screen, so that just as many scroll off."""
    area = None if scrollback else native.area((0, 0), (size.cols - 1, size.rows - 1))
    rows = native.number("TOTAL_ROWS") if scrollback else size.rows
    # The export ends with the last row that has text; the blank ones after it scroll as well. When
    # nothing is to scroll they are left out, so that a smaller terminal sees the rows with text.
    plain, joined = native.format(plain=True, area=area), native.format(unwrap=True, area=area)
    blank = rows - plain.count(b"\n") - 1 if rows > size.rows else 0
    missing = b"\x1b[0m" + b"\r\n" * blank
    wrapped = native.format(plain=True, unwrap=True, area=area).count(b"\n") < plain.count(b"\n")
    if wrapped and not _replays(native, joined + missing, size, (plain, joined)):
        joined = native.format(area=area)
    return joined + missing + _overlay(native, size)


def _replays(native: Native, body: bytes, size: Size, exports: tuple[bytes, bytes]) -> bool:
    """Whether joined lines break where they did, and with nothing coloured by the breaking."""
    spare = Native.new(size, None)
    try:
        spare.write(b"\x1b[?2027h" * native.mode(2027) + body)
        return exports == (spare.format(plain=True), spare.format(unwrap=True))
    finally:
        spare.free()


def _overlay(native: Native, size: Size) -> bytes:
    """What the export leaves out of the visible rows: coloured rows without text, hyperlinks."""
    rows, _ = native.visible_rows()
    parts = []
    for y, row in enumerate(rows):
        if row.linked:
            parts += _links(native, y, size.cols)
        elif any(row.cells):
            parts += _colours(native, y, row.cells)
    return b"".join(parts)


def _links(native: Native, y: int, cols: int) -> list[bytes]:
    links = [native.link(x, y) for x in range(cols)]
    parts = []
    for start, end in _runs(links):
        if links[start]:
            text = native.format(area=native.area((start, y), (end - 1, y)))
            parts += [_go(start, y), _linked(links[start], text)]
    return parts


def _linked(link: bytes, text: bytes) -> bytes:
    return b"\x1b]8;;" + link + b"\x1b\\" + text + b"\x1b]8;;\x1b\\" if link else text


def _colours(native: Native, y: int, cells: bytes) -> list[bytes]:
    if native.format(plain=True, area=native.area((0, y), (len(cells) // 8 - 1, y))):
        return []  # a row with text: its coloured blanks are in the export, as spaces
    row = [cells[i : i + 8] for i in range(0, len(cells), 8)]
    parts = []
    for start, end in _runs(row):
        if colour := background(row[start]):
            parts += [_go(start, y), b"\x1b[%sm\x1b[%dX\x1b[0m" % (colour, end - start)]
    return parts


def _runs(values: list[bytes]) -> list[tuple[int, int]]:
    """Where equal neighbours begin and end."""
    edges = [i for i in range(1, len(values)) if values[i] != values[i - 1]]
    return list(zip([0, *edges], [*edges, len(values)], strict=True))


# -- the cursor and everything after it ---------------------------------------------------------


def _cursor(native: Native) -> _Cursor:
    x, y = native.number("CURSOR_X"), native.number("CURSOR_Y")
    cell = native.area((x, y), (x, y))
    content = native.format(area=cell)
    extras = ("screen.style", "screen.hyperlink", "screen.protection", "screen.charsets")
    pen = native.format(*extras, area=cell).removeprefix(content)
    wrap = _last_cell(native, x, y) if native.get("CURSOR_PENDING_WRAP", "bool") else b""
    return _Cursor(x, y, _ASCII.sub(b"", pen), wrap, native.mode(6))


def _last_cell(native: Native, x: int, y: int) -> bytes:
    """Printing the last cell of the line again is the only way to have a wrap pending."""
    tail = native.is_tail(x, y)
    cell = native.format(area=native.area((x - tail, y), (x, y))) or b" "
    return b"\b" * tail + _linked(native.link(x, y), cell)


def _save(cursor: _Cursor, then: bytes = b"") -> bytes:
    """As the saved cursor. In origin mode with no margins set, rows count as always. What comes
    `then` may save it once more (1049 does)."""
    origin, normal = (b"\x1b[?6h", b"\x1b[?6l") if cursor.origin else (b"", b"")
    return origin + cursor.place() + b"\x1b7" + then + normal + terminal_reset.PEN


def _enter(live: Native) -> bytes:
    used = [number for number in _SCREEN_MODES if live.mode(number)] or [1049]
    return b"".join(b"\x1b[?%dh" % number for number in used) + terminal_reset.KEYS


def _state(live: Native, cursor: _Cursor) -> bytes:
    """Whatever is not cells: in the order in which nothing undoes what came before."""
    last = [b"\x1b[?7l"] if not live.mode(7) else []
    parts = [_tabs(live)]
    for private, number, value in _MODE.findall(_extra(live, "modes")):
        if private + number == _INSERT:
            last.append(b"\x1b[4" + value)
        elif private + number == _KEYPAD:
            parts.append(b"\x1b=" if value == b"h" else b"\x1b>")
        elif private + number not in _NOT_NOW:
            parts.append(b"\x1b[" + private + number + value)
    margins = _extra(live, "scrolling_region")
    top = left = 0
    for low, _, kind in _MARGINS.findall(margins):
        top, left = (int(low) - 1, left) if kind == b"r" else (top, int(low) - 1)
    parts += [margins, _extra(live, "keyboard"), _shape(live), _title(live)]
    if cursor.origin:
        parts += [b"\x1b[?6h", cursor.place(top, left)]
    else:
        parts.append(cursor.place())
    return b"".join(parts + last)


def _extra(live: Native, name: str) -> bytes:
    """One extra by itself: an export of one cell with it, less the same without it."""
    cell = live.area((0, 0), (0, 0))
    content = live.format(area=cell)
    return live.format(name, area=cell).removeprefix(content).removesuffix(content)


def _tabs(live: Native) -> bytes:
    tabs = _extra(live, "tabstops")
    usual = (b"\x1b[%dG\x1bH" % (x + 1) for x in range(8, live.number("COLS"), 8))
    return b"" if tabs.startswith(b"\x1b[3g" + b"".join(usual) + b"\x1b[H") else tabs


def _shape(live: Native) -> bytes:
    _, (shape, blinks) = live.visible_rows()
    if shape in _SHAPES:
        return b"\x1b[%d q" % (_SHAPES[shape] + (not blinks))
    return b"\x1b[?12h" if blinks else b""  # as the operator likes it, but blinking


def _title(live: Native) -> bytes:
    # A title that was never set leaves the operator's own in place.
    text = "".join(c for c in live.title() if c.isprintable())
    return b"\x1b]2;" + text.encode() + b"\x1b\\" if text else b""


def _go(x: int, y: int) -> bytes:
    return b"\x1b[%d;%dH" % (y + 1, x + 1)
