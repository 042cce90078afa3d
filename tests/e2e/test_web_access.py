"""Every page can be used by everybody: with a screen reader, by keyboard alone, with weak eyes; on
a desk and in a hand, in the light and in the dark theme."""

from __future__ import annotations

from typing import Any

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway

KINDS = pytest.mark.parametrize("kind", [DESK, PHONE], ids=["desk", "phone"])


def width(kind: dict[str, Any]) -> int:
    return int(kind["viewport"]["width"])


@KINDS
def test_the_overview_has_no_violation(box: Faraway, visit: Visit, kind: dict[str, Any]) -> None:
    of = width(kind)
    names = [f"{what}-{of}" for what in ("asks", "hush", "stopped", "works", "gone")]
    for name in names:
        box.host.shell(name)
    asks, hush, stopped, works, gone = names
    box.host.ok("send", asks, "--enter", 'read -p "Really? [y/N] " x')
    box.host.ok("send", hush, "--enter", 'read -sp "Password: " x')
    box.host.ok("send", works, "--enter", "sleep 500")
    box.host.ok("halt", stopped)
    box.host.ok("send", gone, "--enter", "exit 3")
    visitor = visit(f"lists-{of}", **kind)
    needs = visitor.at("need")
    visitor.until("not all needs are there", lambda: needs.count() >= 3)
    axe.check(visitor, "overview")
    visitor.at("machine").get_by_label("About").click()
    axe.check(visitor, "machine")
    visitor.page.keyboard.press("Escape")
    visitor.page.get_by_role("button", name="New session").click()
    axe.check(visitor, "start")
    visitor.page.keyboard.press("Escape")
    visitor.page.locator('[data-show="ended"]').click()
    visitor.card(gone).wait_for()
    axe.check(visitor, "ended-list")
    visitor.card(gone).click()
    visitor.page.locator('[data-testid="error-page"][data-code="ended"]').wait_for()
    axe.check(visitor, "ended")
    box.host.ok("resume", stopped)
    for name in names[:4]:
        box.host.ok("end", name)


@KINDS
def test_a_session_has_no_violation_for_its_writer(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    name = f"written-{width(kind)}"
    box.host.shell(name)
    visitor = visit(f"writes-{width(kind)}", **kind)
    visitor.open(name)
    visitor.enter("echo one-$((1)); false")
    visitor.until_shown("one-1")
    axe.check(visitor, "writer")
    if visitor.at("panel-toggle").get_attribute("aria-expanded") != "true":
        visitor.at("panel-toggle").click()
    for tab in ("timeline", "processes", "operators", "inbox"):
        visitor.at(f"tab-{tab}").click()
        axe.check(visitor, tab)
    visitor.page.get_by_label("Close the panel").click()
    visitor.at("session-menu").click()
    axe.check(visitor, "menu")
    if kind is PHONE:
        visitor.at("invite-open").click()
    else:
        visitor.page.keyboard.press("Escape")
        visitor.at("invite-open").click()
    axe.check(visitor, "invite")
    visitor.at("invite-make").click()
    visitor.at("invite-link").wait_for()
    axe.check(visitor, "invite-made")
    visitor.page.keyboard.press("Escape")
    visitor.enter('read -p "Go on? [y/n] " word')
    visitor.at("prompt-card").wait_for()
    axe.check(visitor, "question")
    visitor.at("prompt-answer-y").click()
    visitor.enter('read -sp "Password: " word')
    visitor.at("secret-card").wait_for()
    axe.check(visitor, "secret")
    visitor.at("secret-input").fill("x")
    visitor.at("secret-send").click()
    visitor.at("secret-card").wait_for(state="detached")
    visitor.at("session-halt").click()
    visitor.at("receipt").wait_for()
    axe.check(visitor, "halted")
    visitor.at("session-resume").click()
    visitor.at("session-halt").wait_for()
    visitor.enter("exit 3")
    visitor.page.locator('[data-testid="session-banner"][data-code="ended"]').wait_for()
    axe.check(visitor, "ends")


@KINDS
def test_a_session_has_no_violation_for_who_watches_and_who_waits(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    name = f"watched-{width(kind)}"
    box.host.shell(name)
    watcher = visit(f"watches-{width(kind)}", join=False, **kind)
    watcher.join(box.link(role="read"))
    watcher.open(name)
    axe.check(watcher, "observer")
    waiter = visit(f"waits-{width(kind)}", **kind)
    waiter.open(name)
    box.host.ok("turn", name, "request")
    waiter.until("another holds the turn", lambda: waiter.turn() == "other")
    waiter.open_ask_sheet()
    axe.check(waiter, "asks")
    waiter.at("turn-request").click()
    if kind is PHONE:
        waiter.at("turn-ask").filter(has_text="Asked").click()
    waiter.at("turn-withdraw").wait_for()
    axe.check(waiter, "waits")


@KINDS
def test_joining_and_errors_have_no_violation(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    guest = visit(f"comes-{width(kind)}", join=False, **kind)
    guest.go("/")
    guest.at("overview-empty").wait_for()
    axe.check(guest, "empty")
    guest.go("/i#half.a")
    error = guest.at("error-page")
    error.wait_for()
    axe.check(guest, "bad-link")
    link = box.link()
    guest.go(f"/i#{link.partition('#')[2]}")
    guest.at("join-name").wait_for()
    axe.check(guest, "join")
    guest.at("join-name").fill(guest.name)
    guest.at("join-submit").click()
    guest.at("overview").wait_for()
    machine = guest.at("machine").get_attribute("data-machine")
    for path, code in ((f"/m/{machine}/s/none", "not_found"), ("/m/nowhere/s/main", "no_machine")):
        guest.go(path)
        guest.page.locator(f'[data-testid="error-page"][data-code="{code}"]').wait_for()
        axe.check(guest, code)


_FOCUSED = """() => {
    const one = document.activeElement
    return one.closest('[data-testid=terminal]') ? 'terminal'
        : one.closest('.foot') ? 'foot'
        : one.closest('.turn-bar') ? 'state'
        : one.tagName
}"""


def focused(visitor: Visitor) -> str:
    return str(visitor.page.evaluate(_FOCUSED))


def test_a_key_leaves_the_terminal_and_the_page_says_which(box: Faraway, visit: Visit) -> None:
    box.host.shell("left")
    visitor = visit("leaving")
    visitor.open("left")
    assert "Ctrl+Shift+\u2193 leaves the terminal" in visitor.page.inner_text("footer")
    label = visitor.at("terminal").get_attribute("aria-label") or ""
    assert "Control, Shift and Down leave it" in label
    visitor.press("Tab")
    assert focused(visitor) == "terminal", "it keeps Tab, which programs need"
    visitor.press("Control+Shift+ArrowDown")
    assert focused(visitor) == "foot"
    visitor.page.keyboard.press("Shift+Tab")
    assert focused(visitor) == "terminal"
    visitor.page.keyboard.press("Control+Shift+ArrowUp")
    assert focused(visitor) == "state"
    visitor.enter("echo no-key-of-these-$((1))-arrived; history | tail -2 | cat -A")
    visitor.until_shown("no-key-of-these-1-arrived")
    assert "\\E[" not in visitor.screen() and "^[" not in visitor.screen()
    box.host.ok("turn", "left", "revoke")
    visitor.until("the turn is not free", lambda: visitor.turn() == "free")
    visitor.at("turn-request").focus()
    visitor.page.keyboard.press("Enter")
    visitor.at("turn-request").wait_for(state="detached")
    assert focused(visitor) == "state", "the button is gone, and the keyboard's place is not"


def test_landmarks_and_tabs_are_what_a_screen_reader_expects(box: Faraway, visit: Visit) -> None:
    box.host.shell("marked")
    visitor = visit("marking")
    visitor.open("marked")
    page = visitor.page
    for role in ("banner", "main", "complementary"):
        assert page.get_by_role(role).count() == 1, role
    assert page.get_by_role("heading", level=1).inner_text().startswith("marked")
    assert page.get_by_role("status").count() >= 1
    tabs = page.get_by_role("tablist").get_by_role("tab")
    assert [tab.inner_text() for tab in tabs.all()] == [
        "Timeline",
        "Processes",
        "Operators",
        "Inbox",
    ]
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    processes = page.get_by_role("tab", name="Processes", selected=True)
    visitor.until("it has no focus", lambda: processes.evaluate("one => one.matches(':focus')"))
    assert page.get_by_role("tabpanel", name="Processes").is_visible()
    page.keyboard.press("Escape")
    page.get_by_role("complementary").wait_for(state="detached")
    assert focused(visitor) == "terminal", "what was closed gives the focus back"


_READ_OUT = "() => document.querySelector('.xterm-accessibility')?.textContent ?? ''"


def test_a_screen_reader_is_given_the_lines_of_the_terminal_when_somebody_asks_for_it(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("read-out")
    visitor = visit("reading-out")
    visitor.open("read-out")
    visitor.enter("echo heard-$((1))")
    visitor.until_shown("heard-1")
    assert visitor.page.evaluate(_READ_OUT) == ""
    visitor.at("session-menu").click()
    visitor.at("screen-reader").click()
    visitor.until("no lines", lambda: "heard-1" in visitor.page.evaluate(_READ_OUT))
    axe.check(visitor, "screen-reader")
    visitor.reload()
    visitor.until("it is forgotten", lambda: "heard-1" in visitor.page.evaluate(_READ_OUT))
    visitor.enter("echo heard-$((2))")
    visitor.until("nor what comes", lambda: "heard-2" in visitor.page.evaluate(_READ_OUT))
    visitor.at("session-menu").click()
    visitor.at("screen-reader").click()
    visitor.until("it goes on", lambda: visitor.page.evaluate(_READ_OUT) == "")
