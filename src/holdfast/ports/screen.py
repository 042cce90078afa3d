"""The screen state of one session: fed with output, read as views."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.size import Size


class ScreenPort(Protocol):
    """A terminal emulator's state. `feed` is the only way in; nothing here reads a clock."""

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take output. The caller must split it only between escape sequences.

        Returns what a real terminal would answer to queries in it; the caller decides whether the
        emulator answers."""

    def resize(self, size: Size) -> None: ...

    def snapshot(self, *, scrollback: bool = True) -> bytes:
        """VT text that brings a new terminal of the same size to this state: both screens,
        scrollback, modes, scrolling region, cursor, keyboard and mouse modes, title."""

    def text(self, *, scrollback: bool = False) -> str:
        """The visible lines (and those above them) as plain text, trailing blanks removed."""

    def scrolled(self) -> int:
        """The number of lines above the visible ones."""

    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""

    @property
    def title(self) -> str: ...

    def mode(self, number: int) -> bool:
        """Whether a DEC private mode is set (1 application cursor keys, 2004 bracketed paste)."""

    def close(self) -> None: ...
