"""What happened in an acceptance run, when, and to whom: written down as it happens, and afterwards
drawn as a picture and told as a report."""

from __future__ import annotations

import time
from pathlib import Path
from xml.sax.saxutils import escape

_WIDTH = 860
_LEFT, _RIGHT, _TOP = 96, 16, 20
_LANE = 46
_BAR = 14
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.quiet { fill: #57606a; font-size: 11px; }
.lane { stroke: #d0d7de; stroke-width: 1; }
.span { fill: #1f7a8c; fill-opacity: .55; }
.work { fill: #1f7a8c; }
.mark { fill: #24292f; }
.killed { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .lane { stroke: #3d444d; }
  .span { fill: #39a9c0; fill-opacity: .55; }
  .work { fill: #39a9c0; }
  .mark { fill: #e6edf3; }
  .killed { fill: #ff7b72; }
}
"""


class Happened:
    """One thing, at one moment, to one who took part."""

    def __init__(self, at: float, lane: str, what: str, shot: str = "") -> None:
        self.at, self.lane, self.what, self.shot = at, lane, what, shot

    @property
    def killed(self) -> bool:
        return "kill -9" in self.what


class Chronicle:
    """Lanes are listed in the order in which they are first spoken of."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._began = time.monotonic()
        self.lanes: list[str] = []
        self.happened: list[Happened] = []
        self._here: dict[str, float] = {}
        self._spans: list[tuple[str, float, float]] = []

    def says(self, lane: str, what: str, shot: str = "") -> None:
        if lane not in self.lanes:
            self.lanes.append(lane)
        self.happened.append(Happened(self._now(), lane, what, shot))

    def comes(self, lane: str, what: str) -> None:
        """It is there from now on."""
        self.says(lane, what)
        self._here[lane] = self._now()

    def goes(self, lane: str, what: str) -> None:
        self._spans.append((lane, self._here.pop(lane), self._now()))
        self.says(lane, what)

    def over(self) -> None:
        """Everybody who is still there was there until now."""
        self._spans += [(lane, since, self._now()) for lane, since in self._here.items()]
        self._here.clear()

    def _now(self) -> float:
        return time.monotonic() - self._began

    # -- afterwards ---------------------------------------------------------------------------

    def write(self, findings: list[str]) -> None:
        (self.directory / "timeline.svg").write_text(self.picture(), encoding="utf-8")
        lines = ["# One execution, every modality", "", "![timeline](timeline.svg)", ""]
        lines += [f"- {finding}" for finding in findings]
        lines += ["", "| at | who | what happened |", "|---|---|---|"]
        for each in self.happened:
            shown = f" [picture]({each.shot})" if each.shot else ""
            lines.append(f"| {each.at:.1f} s | {each.lane} | {each.what}{shown} |")
        (self.directory / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def picture(self) -> str:
        end = max(each.at for each in self.happened) or 1.0
        scale = (_WIDTH - _LEFT - _RIGHT) / end
        row = {lane: _TOP + number * _LANE for number, lane in enumerate(self.lanes)}
        parts = [self._lane(lane, row[lane]) for lane in self.lanes]
        for lane, since, until in self._spans:
            kind = "work" if lane == self.lanes[0] else "span"
            parts.append(
                f'<rect class="{kind}" x="{_LEFT + since * scale:.1f}" y="{row[lane]}" '
                f'width="{max(2.0, (until - since) * scale):.1f}" height="{_BAR}" rx="3"/>'
            )
        parts += self._marks(row, scale)
        height = _TOP + len(self.lanes) * _LANE + 26
        parts.append(
            f'<text class="quiet" x="{_LEFT}" y="{height - 10}">0 s</text>'
            f'<text class="quiet" x="{_WIDTH - _RIGHT}" y="{height - 10}" text-anchor="end">'
            f"{end:.0f} s</text>"
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" role="img" '
            'aria-label="One build, and who was attached to it when">'
        )
        return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"

    def _lane(self, lane: str, y: int) -> str:
        middle = y + _BAR / 2
        return (
            f'<text x="{_LEFT - 10}" y="{y + 11}" text-anchor="end">{escape(lane)}</text>'
            f'<line class="lane" x1="{_LEFT}" y1="{middle}" x2="{_WIDTH - _RIGHT}" y2="{middle}"/>'
        )

    def _marks(self, row: dict[str, int], scale: float) -> list[str]:
        """A dot for each thing, and its words below or above it, where there is room for them."""
        parts: list[str] = []
        free = {(lane, above): 0.0 for lane in self.lanes for above in (False, True)}
        for each in self.happened:
            x, y = _LEFT + each.at * scale, row[each.lane]
            css = "killed" if each.killed else "mark"
            title = f"<title>{each.at:.1f} s: {escape(each.what)}</title>"
            parts.append(
                f'<circle class="{css}" cx="{x:.1f}" cy="{y + _BAR / 2}" r="3">{title}</circle>'
            )
            width = 6.0 * len(each.what)
            for above in (False, True):
                if x >= free[each.lane, above] and x + width <= _WIDTH:
                    at = y - 4 if above else y + _BAR + 11
                    colour = "killed quiet" if each.killed else "quiet"
                    words = escape(each.what)
                    parts.append(f'<text class="{colour}" x="{x:.1f}" y="{at}">{words}</text>')
                    free[each.lane, above] = x + width + 8
                    break
        return parts
