"""One terminal of libghostty-vt, as a handle: make, write, ask, format, copy, free.

This is the only file that knows the library's C interface (raw, through `ghostty_abi`: the
ergonomic wrapper of `pyghostty` has no VT export and no copy). It decides nothing: what a snapshot
consists of is in `ghostty_snapshot`, what a session's screen is in `ghostty`. It does no locking: a
handle is used by one thread at a time, which the caller sees to."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.adapters.ghostty.abi import check, ffi, lib, taking_point, with_sizes
from holdfast.model.size import Size

# The library drops scrollback by whole pages of some 400 kB. Over a limit in bytes it uses the
# dropped page again; over a limit in lines it frees it and makes a new one, which takes the speed
# down to a quarter (measured: 70 instead of 300 to 500 MB/s of plain text). So the limit in lines
# is put into bytes, with the one in lines a good way behind it: 2000 lines of 80 columns keep
# between 1,700 and 2,300. (Its own default, 10,000 bytes, keeps one page whatever lines are asked.)
SCROLLBACK_MAX_BYTES = 4 << 20  # per screen: 2000 lines of 200 columns; of wider ones, fewer
_BYTES_PER_CELL = 10  # 8, and what a page has for styles and rows
_LINES_BEHIND = 4
_UNLIMITED = 1 << 40
UNFINISHED_MAX_BYTES = 64 << 10  # of a sequence that has begun and not ended; see `copy`

# Answers to colour queries while no terminal is attached: a plain dark scheme, always the same.
_FOREGROUND, _BACKGROUND = (0xE5, 0xE5, 0xE5), (0, 0, 0)
_CELL_PX = (8, 16)

_grid_ref = taking_point(
    "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
)


_templates: dict[str, Any] = {}


def _sized(ctype: str) -> Any:
    """A struct with its size fields filled in. The library's helper walks the type each time,
    which was a third of a snapshot's time in Python."""
    if ctype not in _templates:
        _templates[ctype] = with_sizes(ctype)
    return ffi.new(ctype + "*", _templates[ctype][0])


class Replies:
    """What the terminal answered since the last look; the callbacks below find it by handle."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.parts: list[bytes] = []


# One callback for all terminals: each ffi.callback takes a page of executable memory.
@ffi.callback("GhosttyTerminalWritePtyFn")  # type: ignore[untyped-decorator]
def _on_reply(_terminal: Any, userdata: Any, data: Any, length: int) -> None:
    ffi.from_handle(userdata).parts.append(bytes(ffi.buffer(data, length)))


@ffi.callback("GhosttyTerminalSizeFn")  # type: ignore[untyped-decorator]
def _on_size(_terminal: Any, userdata: Any, out: Any) -> bool:
    size = ffi.from_handle(userdata).size
    out.columns, out.rows = size.cols, size.rows
    out.cell_width, out.cell_height = _CELL_PX
    return True


class RowCells(NamedTuple):
    """One visible row as the library holds it: `cells` is eight bytes a cell, all zero if blank."""

    linked: bool
    cells: bytes


class Native:
    """A terminal. Free it with `free`; nothing else does."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer
        self._keep: list[Any] = []  # what the library holds pointers to

    @classmethod
    def new(cls, size: Size, scrollback_lines: int | None) -> Native:
        """`scrollback_lines` is about how many are kept; None for all."""
        out = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(ffi.NULL, out, size.cols, size.rows), "terminal_new")
        native = cls(out[0])
        native._limit_scrollback(size, scrollback_lines)
        native._set("CONTINUATION_MAX_BYTES", ffi.new("size_t*", UNFINISHED_MAX_BYTES))
        # Pictures are not part of a snapshot, so they are not worth memory (or reading files for).
        native._set("KITTY_IMAGE_STORAGE_LIMIT", ffi.new("uint64_t*", 0))
        # No program can ask for a hollow cursor: so "hollow" means "as the operator likes it".
        hollow = lib.GHOSTTY_TERMINAL_CURSOR_STYLE_BLOCK_HOLLOW
        native._set("DEFAULT_CURSOR_STYLE", ffi.new("GhosttyTerminalCursorStyle*", hollow))
        return native

    def collect_replies(self, into: Replies) -> None:
        handle = ffi.new_handle(into)
        self._keep.append(handle)
        self._set("USERDATA", handle)
        self._set("WRITE_PTY", _on_reply)
        self._set("SIZE", _on_size)
        for option, rgb in (("COLOR_FOREGROUND", _FOREGROUND), ("COLOR_BACKGROUND", _BACKGROUND)):
            self._set(option, ffi.new("GhosttyColorRgb*", dict(zip("rgb", rgb, strict=True))))

    def copy(self) -> Native | None:
        """An independent terminal in the same state, both screens included; None if the library
        cannot, because a sequence longer than UNFINISHED_MAX_BYTES is under way."""
        data, length = ffi.new("uint8_t**"), ffi.new("size_t*")
        if lib.ghostty_snapshot_encode_alloc(self.pointer, ffi.NULL, data, length):
            return None
        decoder, out = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
        try:
            make = lib.ghostty_snapshot_decoder_new_buf
            check(make(ffi.NULL, decoder, data[0], length[0]), "snapshot_decoder_new")
            try:
                check(lib.ghostty_snapshot_decoder_decode(decoder[0], out), "snapshot_decode")
            finally:
                lib.ghostty_snapshot_decoder_free(decoder[0])
        finally:
            lib.ghostty_free(ffi.NULL, data[0], length[0])
        return Native(out[0])

    def write(self, data: bytes | memoryview) -> None:
        buffer = ffi.from_buffer("uint8_t[]", data)  # no copy, and cffi lets other threads run
        lib.ghostty_terminal_vt_write(self.pointer, buffer, len(buffer))

    def resize(self, size: Size, scrollback_lines: int | None) -> None:
        self._limit_scrollback(size, scrollback_lines)
        check(lib.ghostty_terminal_resize(self.pointer, size.cols, size.rows, *_CELL_PX), "resize")

    def free(self) -> None:
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            lib.ghostty_terminal_free(pointer)
            self._keep.clear()

    # -- questions ----------------------------------------------------------------------------

    def get(self, name: str, ctype: str) -> Any:
        out = ffi.new(ctype + "*")
        key = getattr(lib, "GHOSTTY_TERMINAL_DATA_" + name)
        check(lib.ghostty_terminal_get(self.pointer, key, out), "get " + name)
        return out[0]

    def number(self, name: str) -> int:
        return int(self.get(name, "size_t" if name.endswith("_ROWS") else "uint16_t"))

    def mode(self, number: int, *, ansi: bool = False) -> bool:
        config = ffi.new("GhosttyTerminalModeConfig*")
        config.mode = (number & 0x7FFF) | (ansi << 15)
        key = lib.GHOSTTY_TERMINAL_DATA_MODE
        return not lib.ghostty_terminal_get(self.pointer, key, config) and bool(config.value)

    def title(self) -> str:
        text = self.get("TITLE", "GhosttyString")
        return bytes(ffi.buffer(text.ptr, text.len)).decode(errors="replace") if text.len else ""

    def unfinished(self) -> bytes:
        """The beginning of an incomplete escape sequence or character."""
        data, length = ffi.new("uint8_t**"), ffi.new("size_t*")
        failed = lib.ghostty_terminal_continuation_alloc(self.pointer, ffi.NULL, data, length)
        return b"" if failed else _take(data, length)

    # -- formatting ---------------------------------------------------------------------------

    def format(
        self,
        *extras: str,
        plain: bool = False,
        unwrap: bool = False,
        trim: bool = False,
        area: Any = None,
    ) -> bytes:
        """The active screen (or an `area` of it) as VT or plain text, with the named extras."""
        options = _sized("GhosttyFormatterTerminalOptions")
        kind = "PLAIN" if plain else "VT"
        options.emit = getattr(lib, "GHOSTTY_FORMATTER_FORMAT_" + kind)
        options.unwrap, options.trim = unwrap, trim
        options.selection = ffi.NULL if area is None else area
        for extra in extras:
            place, _, field = extra.rpartition(".")
            setattr(options.extra.screen if place else options.extra, field, True)
        formatter = ffi.new("GhosttyFormatter*")
        make = lib.ghostty_formatter_terminal_new
        check(make(ffi.NULL, formatter, self.pointer, options[0]), "formatter_new")
        try:
            data, length = ffi.new("uint8_t**"), ffi.new("size_t*")
            write = lib.ghostty_formatter_format_alloc
            check(write(formatter[0], ffi.NULL, data, length), "format")
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return _take(data, length)

    def area(self, start: tuple[int, int], end: tuple[int, int]) -> Any:
        """Cells from `start` to `end` (column, row; both included) for `format`. Valid until the
        next write."""
        selection = _sized("GhosttySelection")
        selection.start, selection.end = self._ref(*start)[0], self._ref(*end)[0]
        return selection

    # -- cells --------------------------------------------------------------------------------

    def visible_rows(self) -> tuple[list[RowCells], tuple[int, bool]]:
        """Every visible row, and the cursor's shape (a library number) and whether it blinks."""
        state = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, state), "render_state_new")
        try:
            check(lib.ghostty_render_state_update(state[0], self.pointer), "render_state_update")
            cursor = _sized("GhosttyRenderStateCursor")
            key = lib.GHOSTTY_RENDER_STATE_DATA_CURSOR
            check(lib.ghostty_render_state_get(state[0], key, cursor), "render_state cursor")
            return _rows(state[0]), (int(cursor.visual_style), bool(cursor.blinking))
        finally:
            lib.ghostty_render_state_free(state[0])

    def link(self, x: int, y: int) -> bytes:
        """The hyperlink of a visible cell, or nothing."""
        ref, length = self._ref(x, y), ffi.new("size_t*")
        lib.ghostty_grid_ref_hyperlink_uri(ref, ffi.NULL, 0, length)  # asks for the length
        if not length[0]:
            return b""
        buffer = ffi.new("uint8_t[]", length[0])
        failed = lib.ghostty_grid_ref_hyperlink_uri(ref, buffer, length[0], length)
        return b"" if failed else bytes(ffi.buffer(buffer, length[0]))

    def is_tail(self, x: int, y: int) -> bool:
        """Whether a visible cell is the right half of a wide character."""
        cell, wide = ffi.new("GhosttyCell*"), ffi.new("GhosttyCellWide*")
        check(lib.ghostty_grid_ref_cell(self._ref(x, y), cell), "cell")
        check(lib.ghostty_cell_get(cell[0], lib.GHOSTTY_CELL_DATA_WIDE, wide), "cell width")
        return bool(wide[0] == lib.GHOSTTY_CELL_WIDE_SPACER_TAIL)

    def _ref(self, x: int, y: int) -> Any:
        point = ffi.new("GhosttyPointS*")
        point.tag, point.value.x, point.value.y = lib.GHOSTTY_POINT_TAG_ACTIVE, x, y
        ref = _sized("GhosttyGridRef")
        check(_grid_ref(self.pointer, point[0], ref), f"grid_ref {x},{y}")
        return ref

    def _limit_scrollback(self, size: Size, lines: int | None) -> None:
        limit = most = _UNLIMITED
        if lines is not None:
            limit = min(SCROLLBACK_MAX_BYTES, lines * size.cols * _BYTES_PER_CELL)
            most = lines * _LINES_BEHIND
        self._set("SCROLLBACK_MAX_BYTES", ffi.new("size_t*", limit))
        self._set("SCROLLBACK_MAX_LINES", ffi.new("size_t*", most))

    def _set(self, option: str, value: Any) -> None:
        key = getattr(lib, "GHOSTTY_TERMINAL_OPT_" + option)
        check(lib.ghostty_terminal_set(self.pointer, key, value), "set " + option)


def background(cell: bytes) -> bytes:
    """The SGR parameters of a blank coloured cell, or nothing if it is not one."""
    raw, tag = int.from_bytes(cell, "little"), ffi.new("GhosttyCellContentTag*")
    lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_CONTENT_TAG, tag)
    if tag[0] == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
        index = ffi.new("GhosttyColorPaletteIndex*")
        lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_COLOR_PALETTE, index)
        return b"48;5;%d" % index[0]
    if tag[0] == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
        rgb = ffi.new("GhosttyColorRgb*")
        lib.ghostty_cell_get(raw, lib.GHOSTTY_CELL_DATA_COLOR_RGB, rgb)
        return b"48;2;%d;%d;%d" % (rgb.r, rgb.g, rgb.b)
    return b""


def _rows(state: Any) -> list[RowCells]:
    iterator = ffi.new("GhosttyRenderStateRowIterator*")
    check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, iterator), "row_iterator_new")
    try:
        key = lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR
        check(lib.ghostty_render_state_get(state, key, iterator), "row_iterator")
        row, cells, linked = (
            ffi.new("GhosttyRow*"),
            ffi.new("GhosttyCellsView*"),
            ffi.new("bool*"),
        )
        raw, view = (
            lib.GHOSTTY_RENDER_STATE_ROW_DATA_RAW,
            lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW,
        )
        rows = []
        while lib.ghostty_render_state_row_iterator_next(iterator[0]):
            check(lib.ghostty_render_state_row_get(iterator[0], raw, row), "row")
            check(lib.ghostty_render_state_row_get(iterator[0], view, cells), "cells")
            check(lib.ghostty_row_get(row[0], lib.GHOSTTY_ROW_DATA_HYPERLINK, linked), "linked")
            rows.append(RowCells(bool(linked[0]), bytes(ffi.buffer(cells.ptr, cells.len * 8))))
        return rows
    finally:
        lib.ghostty_render_state_row_iterator_free(iterator[0])


def _take(data: Any, length: Any) -> bytes:
    """The bytes the library allocated for us, given back to it."""
    try:
        return bytes(ffi.buffer(data[0], length[0])) if length[0] else b""
    finally:
        lib.ghostty_free(ffi.NULL, data[0], length[0])
