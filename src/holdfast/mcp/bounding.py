"""Text cut to what a model can read. What was cut is counted and can be asked for by its offset; a
session is never held back because its reader is small."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from holdfast.mcp.answers import RowsAnswer
from holdfast.sdk.plain_text import page
from holdfast.sdk.settled_text import Settled, settled

T = TypeVar("T")

TEXT_MAX_CHARS = 16_000  # of one answer, as far as it is text or rows
TEXT_MIN_CHARS = 100  # a caller may not ask for less: a page must take something
LINE_MAX_CHARS = 1_000
CELL_MAX_CHARS = 400  # of one text in a row
ROWS_MAX = 100  # in one answer
_CLOSE = 0.9  # a page this full is not made fuller

MaxChars = Annotated[
    int,
    Field(description="of text in the answer", ge=TEXT_MIN_CHARS, le=TEXT_MAX_CHARS),
]


FirstRow = Annotated[
    int, Field(description="the `next` of an earlier answer: goes on behind its rows", ge=0)
]


class Rows(NamedTuple, Generic[T]):
    """The rows of one answer: as many as it has room for."""

    rows: list[T]
    end: int  # of them, counted from the first row there is
    left_out: int  # behind them

    @property
    def behind(self) -> RowsAnswer:
        """What an answer says of the rows that it leaves out."""
        return {"left_out": self.left_out, "next": self.end} if self.left_out else {"left_out": 0}


def rows_from(rows: Iterable[T], first: int = 0, room: int = TEXT_MAX_CHARS) -> Rows[T]:
    """Those from `first` on that fit; at least one, or a caller would not get on."""
    every = list(rows)
    taken: list[T] = []
    for row in every[first : first + ROWS_MAX]:
        room -= len(json.dumps(row, ensure_ascii=False, separators=(",", ":"))) + 1
        if taken and room < 0:
            break
        taken.append(row)
    end = min(first, len(every)) + len(taken)
    return Rows(taken, end, len(every) - end)


def rows_of(kind: str, rows: Iterable[tuple[str, Any]]) -> list[Any]:
    """Of rows that are of several lists, those of one."""
    return [row for each, row in rows if each == kind]


def tail(text: str, limit: int = TEXT_MAX_CHARS) -> tuple[str, int]:
    """The end of it, from the beginning of a line where there is one, and how much was left out."""
    if len(text) <= limit:
        return text, 0
    cut = len(text) - limit
    newline = text.find("\n", cut)
    start = newline + 1 if 0 <= newline < cut + min(LINE_MAX_CHARS, limit // 2) else cut
    return text[start:], start


def first_page(data: bytes, limit: int, *, last: bool) -> tuple[Settled, int]:
    """The beginning of a longer output that fits, and how many of its bytes that is. `last`: no
    more has been printed yet."""
    text, taken = _page(data, last=last)
    fits, too_long = limit, len(data)  # so many bytes are never more characters
    if len(text.text) <= limit:
        return text, taken
    best: tuple[Settled, int] | None = None
    while too_long - fits > 1 and (best is None or len(best[0].text) < _CLOSE * limit):
        tried = (fits + too_long) // 2
        text, taken = _page(data[:tried], last=False)
        if len(text.text) <= limit:
            best, fits = (text, taken), tried
        else:
            too_long = tried
    text, taken = best or _page(data[:fits], last=False)
    newline = data.rfind(b"\n", taken // 2, taken) + 1  # pages meet between two lines
    return _page(data[:newline], last=False) if newline else (text, taken)


def _page(data: bytes, *, last: bool) -> tuple[Settled, int]:
    _, taken = page(data, last=last)
    return settled(data[:taken]), taken


def one_line(text: str, limit: int = LINE_MAX_CHARS) -> str:
    """On one line, and nothing in it that is not for reading."""
    return "".join(c if c.isprintable() else " " for c in text[:limit])
