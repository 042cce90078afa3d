"""Rows as a bar chart in SVG, one group per measure, each on its own scale.

Written by hand: a chart of twenty bars is no reason for a plotting library. The colours follow the
reader's light or dark theme, and are in the middle where a viewer does not know of themes."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from bench.results import NOT_AVAILABLE, SYSTEMS, Row, figure

_WIDTH = 760
_LABEL_WIDTH = 130
_BAR_WIDTH = 420
_BAR_HEIGHT = 16
_LINE = 22
_TITLE = 30
_GAP = 14

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.quiet { fill: #57606a; }
.other { fill: #8c959f; }
.holdfast { fill: #1f7a8c; }
.bound { stroke: #bf3989; stroke-width: 2; stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .other { fill: #656c76; }
  .holdfast { fill: #39a9c0; }
  .bound { stroke: #f778ba; }
}
"""


def svg(rows: Sequence[Row]) -> str:
    """The whole picture."""
    parts: list[str] = []
    y = _GAP
    for row in rows:
        group, height = _group(row, y)
        parts += group
        y += height + _GAP
    parts.append(
        f'<text class="quiet" x="{_GAP}" y="{y + 4}">dashed: what holdfast must reach</text>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + 2 * _GAP}" '
        f'viewBox="0 0 {_WIDTH} {y + 2 * _GAP}" role="img" aria-label="Benchmarks">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"


def _group(row: Row, y: int) -> tuple[list[str], int]:
    bars = [(name, row.values.get(name), name) for name in SYSTEMS if name in row.values]
    if row.baseline is not None:
        bars.insert(1, (row.against, row.baseline, "other"))
    bound = bound_of(row)
    scale = max([value or 0 for _, value, _ in bars] + [bound or 0]) or 1.0
    ratio = f", {row.ratio:.2f}× {row.against}" if row.ratio is not None else ""
    target = f" (must be {row.target.text(row.unit)})" if row.target else ""
    parts = [
        f'<text class="title" x="{_GAP}" y="{y + 14}">{escape(row.name + ratio + target)}</text>'
    ]
    at = y + _TITLE - 4
    for label, value, kind in bars:
        css = "holdfast" if kind == "holdfast" else "other"
        width = round((value or 0) / scale * _BAR_WIDTH, 1)
        middle = at + _BAR_HEIGHT - 4
        text = figure(value, row.unit) if value is not None else NOT_AVAILABLE
        parts += [
            f'<text class="quiet" x="{_LABEL_WIDTH - 8}" y="{middle}" text-anchor="end">'
            f"{escape(label)}</text>",
            f'<rect class="{css}" x="{_LABEL_WIDTH}" y="{at}" width="{width}" '
            f'height="{_BAR_HEIGHT}" rx="2"/>',
            f'<text x="{_LABEL_WIDTH + width + 6}" y="{middle}">{escape(text)}</text>',
        ]
        at += _LINE
    if bound is not None:
        x = round(_LABEL_WIDTH + bound / scale * _BAR_WIDTH, 1)
        top = y + _TITLE - 7
        parts.append(f'<line class="bound" x1="{x}" x2="{x}" y1="{top}" y2="{top + _LINE}"/>')
    return parts, _TITLE + _LINE * len(bars) - 6


def bound_of(row: Row) -> float | None:
    """The value holdfast must reach, on the row's own scale."""
    if row.target is None:
        return None
    if row.target.of == "value":
        return row.target.bound
    other = row.values.get(row.against, row.baseline)
    return None if other is None else row.target.bound * other
