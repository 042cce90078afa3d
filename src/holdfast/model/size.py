"""The size of a terminal, within what terminals can be."""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import SIZE_MAX_CELLS_PER_SIDE
from holdfast.model.record import Record


class Size(Record):
    """Columns and rows of a terminal, each 1 to 1000."""

    cols: int  # columns
    rows: int  # rows

    def __str__(self) -> str:
        return f"{self.cols}x{self.rows}"

    def checked(self) -> Size:
        for side in (self.cols, self.rows):
            if not 1 <= side <= SIZE_MAX_CELLS_PER_SIDE:
                raise InvalidArgument(
                    f"size {self} is out of range",
                    hint=f"columns and rows must be 1 to {SIZE_MAX_CELLS_PER_SIDE}",
                )
        return self

    @classmethod
    def parse(cls, text: str) -> Size:
        cols, x, rows = text.lower().partition("x")
        if not (x and cols.isdecimal() and rows.isdecimal() and len(text) < 16):
            raise InvalidArgument(f"not a size: {text[:40]!r}", hint="write COLSxROWS, as 120x40")
        return cls(int(cols), int(rows)).checked()


DEFAULT_SIZE = Size(80, 24)
