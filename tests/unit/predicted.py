"""A line being typed far away: what the operator types, what comes back, what is drawn."""

from __future__ import annotations

from holdfast.sdk.prediction.machine import PredictedLine, Prediction

COLS = 20


def line(text: str, col: int | None = None, *, row: int = 0, plain: bool = True) -> PredictedLine:
    """With the cursor behind the text, or at a column."""
    return PredictedLine(row, len(text) if col is None else col, text.ljust(COLS), plain)


class Far:
    """One prediction, with the numbers counted: each input has the next, each output one byte."""

    def __init__(self, shown: str = "$ ") -> None:
        self.guess = Prediction()
        self.now = 0.0
        self.seq = 0
        self.offset = 100
        self.line = line(shown)

    def type(self, text: str) -> Far:
        self.seq += 1
        self.guess.typed(self.seq, text.encode(), self.line)
        return self

    def print(self, shown: PredictedLine | str) -> Far:
        """Something was printed; now the line is this."""
        self.offset += 1
        self.line = line(shown) if isinstance(shown, str) else shown
        self.guess.printed(self.offset, self.line)
        return self

    def accept(self, seq: int | None = None) -> Far:
        self.guess.accepted(seq or self.seq, self.offset, self.now)
        return self

    def wait(self, seconds: float) -> Far:
        self.now += seconds
        self.guess.tick(self.now)
        return self

    @property
    def drawn(self) -> str | None:
        """The line with what is drawn over it, the cursor as `|`; None when nothing is."""
        overlay = self.guess.overlay()
        if overlay is None:
            return None
        cells = list(self.line.text)
        for cell in overlay.cells:
            cells[cell.col] = cell.char
        cells.insert(overlay.cursor, "|")
        return "".join(cells).rstrip()


def trusted(shown: str = "$ ") -> Far:
    """After a first letter that came back."""
    far = Far(shown).type("l").accept().print(shown + "l")
    assert far.drawn is None
    return far
