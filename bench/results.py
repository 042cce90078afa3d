"""What a measure gives: rows of numbers, what they must reach, and whether they do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

SYSTEMS = ("holdfast", "tmux", "dtach", "screen")
NOT_AVAILABLE = "n/a"


@dataclass(frozen=True)
class Target:
    """A bound on the ratio, or on holdfast's own value when there is nothing to compare with."""

    relation: Literal["<=", ">=", "<"]
    bound: float
    of: Literal["ratio", "value"] = "ratio"

    def met_by(self, number: float) -> bool:
        if self.relation == ">=":
            return number >= self.bound
        return number < self.bound if self.relation == "<" else number <= self.bound

    def text(self, unit: str) -> str:
        sign = {"<=": "≤", ">=": "≥", "<": "<"}[self.relation]
        return f"{sign} {self.bound:g}{'×' if self.of == 'ratio' else ' ' + unit}"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `values` is by system; a system that is missing there was not there to be measured. `ratio` is
    holdfast's value over that of `against`: a system, or `baseline` when that is what it names."""

    name: str
    unit: str
    values: Mapping[str, float]
    against: str = ""
    baseline: float | None = None
    target: Target | None = None
    note: str = ""
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """None when either side is missing: a peer that is not installed proves nothing."""
        if not self.against:
            return None
        other = self.values.get(self.against, self.baseline)
        own = self.values.get("holdfast")
        return own / other if own is not None and other else None

    @property
    def met(self) -> bool | None:
        """None when there is no target, or no number to hold against it."""
        if self.target is None:
            return None
        number = self.ratio if self.target.of == "ratio" else self.values.get("holdfast")
        return None if number is None else self.target.met_by(number)


def missed(rows: Sequence[Row]) -> list[Row]:
    """Rows whose target was not reached, or could not be judged: both are news under --strict."""
    return [row for row in rows if row.target is not None and row.met is not True]


def figure(value: float | None, unit: str) -> str:
    """A number for people: three significant digits."""
    if value is None:
        return NOT_AVAILABLE
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def cells(row: Row) -> list[str]:
    """A row as text: measure, one cell per system, ratio, target, met."""
    by_system = [
        figure(row.values[name], row.unit) if name in row.values else NOT_AVAILABLE
        for name in SYSTEMS
    ]
    if row.baseline is not None and row.against:
        by_system[0] += f" ({row.against}: {figure(row.baseline, row.unit)})"
    if row.target is not None and row.target.of == "value":
        ratio = "–"
    else:
        ratio = NOT_AVAILABLE if row.ratio is None else f"{row.ratio:.2f}×"
        if row.against in SYSTEMS:
            ratio += f" {row.against}"
    target = row.target.text(row.unit) if row.target else "–"
    verdict = (
        "–" if row.target is None else {True: "yes", False: "NO", None: NOT_AVAILABLE}[row.met]
    )
    return [row.name, *by_system, ratio if row.against or row.target else "–", target, verdict]


HEADINGS = ["measure", *SYSTEMS, "ratio", "must reach", "met"]


def plain_table(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]

    def laid_out(line: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join(
        [laid_out(HEADINGS), "  ".join("-" * width for width in widths)]
        + [laid_out(line) for line in lines[1:]]
    )


def markdown_table(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
