"""Text cut to what a model can read. What was cut is counted and can be asked for by its offset; a
session is never held back because its reader is small."""

from __future__ import annotations

TEXT_MAX_CHARS = 16_000  # of one text in one answer
LINE_MAX_CHARS = 1_000
ROWS_MAX = 100  # of one list in one answer


def tail(text: str, limit: int = TEXT_MAX_CHARS) -> tuple[str, int]:
    """The end of it, from the beginning of a line where there is one, and how much was left out."""
    if len(text) <= limit:
        return text, 0
    cut = len(text) - limit
    newline = text.find("\n", cut)
    start = newline + 1 if 0 <= newline < cut + LINE_MAX_CHARS else cut
    return text[start:], start


def one_line(text: str, limit: int = LINE_MAX_CHARS) -> str:
    """On one line, and nothing in it that is not for reading."""
    return "".join(c if c.isprintable() else " " for c in text[:limit])
