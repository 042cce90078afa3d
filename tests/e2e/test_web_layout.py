"""Where things are on a page: a desk of 1440 by 900, a phone upright and on its side; and what
a page offers as an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.commanding import Hold
from process.reaching import Faraway

WIDE: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
LANDSCAPE: dict[str, Any] = {**PHONE, "viewport": {"width": 844, "height": 390}}
SHORTEST_PATIENCE_S = 60.0  # a machine that went away is noticed by its relay

_BOX = """(selector) => {
    const { left, top, right, bottom } = document.querySelector(selector).getBoundingClientRect()
    return { left, top, right, bottom, width: right - left, height: bottom - top }
}"""
# Pairs of things to press that lie over one another.
_OVERLAPS = """() => {
    const all = [...document.querySelectorAll('.session-page button, .session-page a')]
        .filter((one) => one.checkVisibility() && !one.closest('.pane'))
        .map((one) => [one.ariaLabel || one.innerText, one.getBoundingClientRect()])
    return all.flatMap(([name, a], at) => all.slice(at + 1)
        .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        .map(([other]) => `${name} / ${other}`))
}"""


def edges(visitor: Visitor, selector: str) -> dict[str, float]:
    return dict(visitor.page.evaluate(_BOX, selector))


def test_on_a_desk_the_terminal_is_framed_fills_its_pane_and_has_its_scrollbar_at_the_edge(
    box: Faraway, visit: Visit
) -> None:
    words = ("--name", "framed", "--size", "100x30")
    box.host.ok("run", "-d", *words, "--", "bash", "--norc")
    visitor = visit("framing", **WIDE)
    visitor.open("framed")
    visitor.enter("seq 1 200; echo end-$((1))")
    visitor.until_shown("end-1")
    visitor.shot("framed")
    assert visitor.page.locator("header").count() == 1, "the two header bars are one"
    view, panel = edges(visitor, ".view"), edges(visitor, ".panel")
    assert (view["left"], view["bottom"]) == (16, 900 - 16)
    assert (panel["left"] - view["right"], 1440 - panel["right"]) == (16, 16)
    pane, screen = edges(visitor, ".pane"), edges(visitor, ".xterm-screen")
    # The columns take the whole width, but for less than two of them and the scrollbar.
    assert pane["width"] - screen["width"] < 14 + 2 * screen["width"] / 100
    assert abs(edges(visitor, ".xterm .scrollbar.vertical")["right"] - pane["right"]) <= 1


def test_on_a_phone_that_lies_on_its_side_the_keys_stand_at_the_right_and_no_bar_takes_height(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("lying")
    phone = visit("lying-phone", **LANDSCAPE)
    phone.open("lying")
    phone.dismiss()
    box.host.ok("turn", "lying", "request")  # the state line has most to press then
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    phone.shot("lying")
    assert phone.page.evaluate(_OVERLAPS) == []
    state, pane, keys = (edges(phone, one) for one in (".turn-bar", ".pane-box", ".key-bar"))
    assert state["top"] <= 4 and state["bottom"] <= pane["top"] + 1
    assert pane["height"] > 0.8 * 390
    assert keys["right"] == 844 and keys["top"] <= 4 and keys["bottom"] == 390
    assert abs(pane["right"] - keys["left"]) <= 1
    assert "lying" in phone.at("turn-holder").inner_text(), "the bar's name is in the state line"
    phone.at("panel-toggle").click()
    phone.at("tab-processes").click()
    phone.shot("lying-panel")
    assert edges(phone, ".pane-box") == pane, "the panel lies over the rest and moves nothing"
    phone.page.get_by_label("Close the panel").click()
    phone.page.get_by_label("Back to the overview").click()
    phone.at("overview").wait_for()


def test_long_names_are_cut_with_an_ellipsis_and_the_page_is_never_wider_than_the_screen(
    box: Faraway, visit: Visit
) -> None:
    name = "a-session-with-a-name-that-is-longer-than-any-row-has-room-for"
    box.host.shell(name)
    box.host.ok("send", name, "--enter", f"read -p '{'Really? ' * 30}' x")
    for kind in (WIDE, PHONE):
        visitor = visit(f"long-{kind['viewport']['width']}", **kind)
        need = visitor.at("needs-you").locator(f'[data-session="{name}"]')
        need.wait_for()
        shown = visitor.card(name).locator(".row-name strong")
        style = shown.evaluate("one => getComputedStyle(one).textOverflow")
        assert style == "ellipsis"
        visitor.shot("long")
        wide = visitor.page.evaluate("() => document.documentElement.scrollWidth")
        assert wide == kind["viewport"]["width"]
        assert need.evaluate("one => one.scrollWidth <= one.clientWidth")
    box.host.ok("end", name)


def test_at_320_pixels_only_the_terminal_scrolls_sideways(box: Faraway, visit: Visit) -> None:
    box.host.shell("narrowest")
    box.host.ok("send", "narrowest", "--enter", "read -p 'Deploy to 14 hosts? [y/N] ' x")
    small = visit("narrow", **{**PHONE, "viewport": {"width": 320, "height": 640}})
    small.overview()
    small.at("need").first.wait_for()
    wide = "() => document.documentElement.scrollWidth"
    assert small.page.evaluate(wide) == 320
    small.shot("overview-320")
    small.open("narrowest")
    small.at("prompt-card").wait_for()
    assert small.page.evaluate(wide) == 320
    small.shot("session-320")
    assert small.page.evaluate(_OVERLAPS) == []
    box.host.ok("end", "narrowest")


def test_only_what_a_question_offers_has_a_button(box: Faraway, visit: Visit) -> None:
    box.host.shell("offers")
    visitor = visit("offered", **DESK)
    visitor.open("offers")
    card = visitor.at("prompt-card")
    buttons = card.locator('[data-testid^="prompt-answer"]')

    def offered(line: str, text: str) -> list[str]:
        visitor.enter(line)
        card.filter(has_text=text).wait_for()
        return [" ".join(one.split()) for one in buttons.all_inner_texts()]

    assert offered("read -p 'Hostname? ' x", "Hostname?") == []
    visitor.at("prompt-input").fill("box-7")
    visitor.at("prompt-send").click()
    card.wait_for(state="detached")
    assert offered("echo $x; read -p 'Port [8080]: ' x", "Port [8080]:") == []
    assert "box-7" in visitor.screen()
    visitor.press("Enter")
    card.wait_for(state="detached")
    assert offered("read -p 'Really? [y/N] ' x", "Really?") == ["Yes y", "No n, default"]
    visitor.at("prompt-answer-n").click()
    card.wait_for(state="detached")
    menu = "PS3='Where to? '; select to in staging production; do echo to-$to; break; done"
    visitor.enter(menu)  # its answers are there once the page knows which command asks
    visitor.at("prompt-answer-2").wait_for()
    assert buttons.all_inner_texts() == ["1 staging", "2 production"]
    visitor.shot("menu")
    visitor.at("prompt-answer-2").click()
    visitor.until_shown("to-production")
    card.wait_for(state="detached")
    printed = "printf '1) alpha\\n2) beta\\n'; read -p 'Hostname: ' x"
    assert offered(printed, "Hostname:") == [], "a list over a question is no menu"
    visitor.press("Enter")


def test_online_means_every_machine_that_was_joined(box: Faraway, visit: Visit) -> None:
    visitor = visit("of-two")
    state = visitor.at("link-state")
    visitor.until("one is online", lambda: state.inner_text() == "online")
    with Hold() as other:
        (Path(other.home) / "config.toml").write_text(f'relays = ["{box.relay.url}"]\n')
        other.ok("up", "-d", "--no-relay")
        visitor.until("it is at its relay", lambda: "connected" in other.ok("host"))
        visitor.join(other.json("invite", "--all", "--role", "read")["link"])
        visitor.overview()
        visitor.until("both are online", lambda: state.inner_text() == "online")
        assert visitor.at("machine").count() == 2
        other.ok("down")
        visitor.until(
            "it is still online", lambda: state.inner_text() == "1 of 2 online", SHORTEST_PATIENCE_S
        )
        assert state.get_attribute("data-state") == "offline"
        visitor.shot("one-of-two")
