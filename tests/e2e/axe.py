"""axe-core at a page that a visitor has open: what people with a screen reader, a keyboard or weak
eyes could not use there.

All of its findings count, whatever it calls them. What the terminal draws is a program's own: its
colours are looked at by web/test/ui/tokens.test.ts."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from e2e.browsing import Visitor
from e2e.probing import WEB
from e2e.requiring import missing

_SOURCE = WEB / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
    const found = await axe.run(
        { exclude: [['.xterm-rows']] }, { resultTypes: ['violations'] },
    )
    return found.violations.map((one) => ({
        id: one.id,
        impact: one.impact,
        nodes: one.nodes.map((node) => `${node.target}: ${node.failureSummary}`),
    }))
}"""
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@cache
def _source() -> str:
    if not _SOURCE.is_file():
        missing("axe-core is not installed (`npm ci` in web/)")
    return _SOURCE.read_text(encoding="utf-8")


def violations(visitor: Visitor) -> list[str]:
    """One line for each, in both themes."""
    page = visitor.page
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())
    found = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.locator(f'html[data-theme="{theme}"]').wait_for()
        found += [_line(theme, one) for one in page.evaluate(_RUN)]
    return found


def _line(theme: str, one: dict[str, Any]) -> str:
    return f"{theme}: {one['impact']} {one['id']}: " + "; ".join(one["nodes"])


def check(visitor: Visitor, where: str) -> None:
    visitor.shot(f"axe-{where}")
    assert violations(visitor) == [], where
