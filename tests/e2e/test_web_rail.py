"""Who ran what, beside the terminal: a rail in the hue of whoever ran it, from a command to its
lines and back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from e2e import axe
from e2e.browsing import PHONE, Visitor
from e2e.conftest import Visit
from process.acting import add_actor
from process.reaching import Faraway

WIDE: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}

# The bars that are seen: whose they are, their colour, and the lines of text beside them.
_BARS = """() => {
    const term = __hold.terminal, { viewportY } = term.buffer.active
    const drawn = document.querySelector('.xterm-screen').getBoundingClientRect()
    const cell = drawn.height / term.rows
    return [...document.querySelectorAll('.rail-bar')].filter((bar) => !bar.hidden).map((bar) => {
        const { top, height } = bar.getBoundingClientRect()
        const first = Math.round((top - drawn.top) / cell)
        const lines = Array.from({ length: Math.round(height / cell) }, (_, row) =>
            term.buffer.active.getLine(viewportY + first + row)?.translateToString(true) ?? '')
        return {
            actor: bar.dataset.actor, command: Number(bar.dataset.command), lines,
            colour: getComputedStyle(bar).backgroundColor,
            chosen: bar.classList.contains('is-chosen'),
        }
    }).sort((one, other) => one.command - other.command)
}"""


def bars(visitor: Visitor) -> list[dict[str, Any]]:
    return list(visitor.page.evaluate(_BARS))


def until_beside(visitor: Visitor, *wanted: tuple[str, str]) -> list[dict[str, Any]]:
    """Each is an actor, and a word of the lines beside its bar."""

    def found() -> list[dict[str, Any]] | None:
        seen = bars(visitor)
        fits = len(seen) == len(wanted) and all(
            bar["actor"] == actor and any(word in line for line in bar["lines"])
            for bar, (actor, word) in zip(seen, wanted, strict=True)
        )
        return seen if fits else None

    visitor.until("the rail is another one", lambda: found() is not None)
    return bars(visitor)


def until_beside_the_top(visitor: Visitor, *wanted: tuple[str, str]) -> None:
    """Of all that is held; what is still printed may move the view to the end again."""

    def there() -> bool:
        visitor.page.evaluate("() => __hold.terminal.scrollToTop()")
        return all(
            any(
                bar["actor"] == actor and any(word in line for line in bar["lines"]) for bar in seen
            )
            for seen in [bars(visitor)]
            for actor, word in wanted
        )

    visitor.until("the rail at the top is another one", there)


@pytest.mark.requirement("A6")
def test_each_command_has_its_actors_hue_beside_its_lines_and_only_there(
    box: Faraway, visit: Visit
) -> None:
    for name in ("otto", "vera"):
        add_actor(box.host, name, "execute", "--all")
    box.host.shell("railed")
    box.host.ok("--as", "otto", "exec", "railed", "--", "seq 101 103")
    box.host.ok("--as", "vera", "exec", "railed", "--", "echo by-vera")
    visitor = visit("rail", **WIDE)
    visitor.open("railed")
    seen = until_beside(visitor, ("otto", "103"), ("vera", "by-vera"))
    assert seen[0]["lines"][-3:] == ["101", "102", "103"]
    assert seen[1]["lines"][-1] == "by-vera"
    assert seen[0]["colour"] != seen[1]["colour"]
    notes = visitor.at("rail-notes")
    visitor.until("no times", lambda: re.search(r"otto · \d\d:\d\d · ", notes.inner_text()))

    # What is run now joins them, and still has its lines when more is printed below.
    visitor.enter("echo by-me; seq 201 260")
    visitor.until_shown("260")
    until_beside_the_top(visitor, ("otto", "103"), ("vera", "by-vera"), ("rail", "by-me"))
    visitor.shot("railed")
    axe.check(visitor, "rail")

    # Every page that is opened later has the same.
    visitor.reload()
    visitor.until("no rail", lambda: bars(visitor))
    until_beside_the_top(visitor, ("otto", "103"), ("vera", "by-vera"), ("rail", "by-me"))


def test_a_command_leads_to_its_lines_and_a_selected_line_to_its_command(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("led")
    box.host.ok("exec", "led", "--", "echo first-one")
    box.host.ok("exec", "led", "--", "echo second-one")
    me = box.host.json("actor", "show")["name"]
    visitor = visit("leading", **WIDE)
    visitor.open("led")
    _, second = until_beside(visitor, (me, "first-one"), (me, "second-one"))
    entries = visitor.at("timeline-entry")
    visitor.until("no entries", lambda: entries.count() == 2)
    entries.nth(1).click()  # the newest is first
    visitor.until("not marked", lambda: [one["chosen"] for one in bars(visitor)] == [True, False])
    assert entries.nth(1).get_attribute("aria-current") == "true"

    row = visitor.page.evaluate(_PLACE, "second-one")
    visitor.page.mouse.dblclick(row["x"], row["y"])
    said = visitor.at("printed-by")
    said.wait_for()
    assert "echo second-one" in said.inner_text() and me in said.inner_text()
    axe.check(visitor, "printed-by")
    visitor.at("panel-toggle").click()  # it is opened for it
    visitor.at("printed-by-go").click()
    said.wait_for(state="detached")
    marked = visitor.page.locator('[data-testid="timeline-entry"][aria-current="true"]')
    marked.wait_for()
    assert marked.get_attribute("data-seq") == str(second["command"])
    visitor.until("not marked", lambda: [one["chosen"] for one in bars(visitor)] == [False, True])


def test_a_full_screen_program_has_no_rail_and_a_phone_has_one(box: Faraway, visit: Visit) -> None:
    box.host.shell("covered")
    box.host.ok("exec", "covered", "--", "echo under-it")
    phone = visit("rail-phone", **PHONE)
    phone.open("covered")
    me = box.host.json("actor", "show")["name"]
    until_beside(phone, (me, "under-it"))
    assert not phone.page.locator(".rail-note").first.is_visible(), "there is no room for words"
    phone.shot("rail")
    box.host.ok("send", "covered", "--enter", r"printf '\e[?1049h'; read x; printf '\e[?1049l'")
    phone.until("it is still there", lambda: bars(phone) == [])
    box.host.ok("send", "covered", "--enter", "")
    phone.until("it is not back", lambda: me in [one["actor"] for one in bars(phone)])


_PLACE = """(text) => {
    const term = __hold.terminal, { viewportY } = term.buffer.active
    const drawn = document.querySelector('.xterm-screen').getBoundingClientRect()
    for (let row = 0; row < term.rows; row++)
        if (term.buffer.active.getLine(viewportY + row).translateToString(true) === text)
            return {
                x: drawn.left + 3.5 * drawn.width / term.cols,
                y: drawn.top + (row + 0.5) * drawn.height / term.rows,
            }
}"""
