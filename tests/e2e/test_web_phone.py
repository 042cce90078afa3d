"""The web app under a finger: a phone held either way, and a tablet."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.browsing import DESK, PHONE
from e2e.conftest import Visit
from process.reaching import Faraway

LANDSCAPE: dict[str, Any] = {**PHONE, "viewport": {"width": 844, "height": 390}}
TABLET: dict[str, Any] = {**PHONE, "viewport": {"width": 1024, "height": 768}}

_SMALL_TARGETS = """() => [...document.querySelectorAll('button, a, [role=tab], summary')]
    .filter((one) => one.checkVisibility() && !one.closest('.xterm'))
    .map((one) => [one.ariaLabel || one.innerText, one.getBoundingClientRect()])
    .filter(([, box]) => box.width < 44 || box.height < 44)
    .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""


def test_the_key_bar_follows_the_pointer_and_not_the_width(box: Faraway, visit: Visit) -> None:
    box.host.shell("pointer")
    for name, kind in (("upright", PHONE), ("landscape", LANDSCAPE), ("tablet", TABLET)):
        visitor = visit(f"pointer-{name}", **kind)
        visitor.open("pointer")
        visitor.at("key-bar").wait_for()
        visitor.shot("keys")
        visitor.close()
    narrow = visit("pointer-narrow", viewport={"width": 400, "height": 800})
    narrow.open("pointer")
    assert not narrow.at("key-bar").is_visible(), "a mouse in a narrow window has a keyboard"
    desk = visit("pointer-desk", **DESK)
    desk.open("pointer")
    assert not desk.at("key-bar").is_visible()


@pytest.mark.parametrize("kind", [PHONE, LANDSCAPE], ids=["upright", "landscape"])
def test_nothing_that_a_finger_presses_is_smaller_than_44_pixels(
    box: Faraway, visit: Visit, kind: dict[str, Any]
) -> None:
    name = f"targets-{kind['viewport']['width']}"
    box.host.shell(name)
    phone = visit(name, **kind)
    phone.open(name)
    assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.at("panel-toggle").click()
    for tab in ("timeline", "processes", "operators", "inbox"):
        phone.at(f"tab-{tab}").click()
        phone.shot(tab)
        assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.page.get_by_label("Close the panel").click()
    phone.at("session-menu").click()
    assert phone.page.evaluate(_SMALL_TARGETS) == []
    phone.shot("menu")


def test_halt_has_its_word_on_a_phone_and_a_short_tap_on_seize_says_how(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("tapped")
    phone = visit("tapping", **PHONE)
    phone.open("tapped")
    box.host.ok("turn", "tapped", "request")
    phone.until("another holds the turn", lambda: phone.turn() == "other")
    assert phone.at("session-halt").inner_text().strip() == "Halt"
    phone.dismiss()
    phone.at("turn-seize").tap()
    hint = phone.at("toast").filter(has_text="press and hold for a second")
    hint.wait_for()
    phone.shot("short-tap")
    assert phone.turn() == "other"
    # The whole bar fits: no word is cut and nothing lies beside the page.
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") == 390


_SHARED = """() => {
    globalThis.shared = []
    Object.defineProperty(Navigator.prototype, 'share', {
        configurable: true,
        value: async (what) => void globalThis.shared.push(what.url),
    })
}"""


def test_an_invite_is_shared_by_the_system_where_the_browser_can(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("passed-on")
    phone = visit("sharing", join=False, **PHONE)
    phone.context.add_init_script(f"({_SHARED})()")
    phone.join(box.link())
    phone.open("passed-on")
    phone.at("session-menu").click()
    phone.at("invite-open").click()
    phone.at("invite-make").click()
    link = phone.at("invite-link").input_value()
    phone.page.get_by_role("button", name="Share…").click()
    phone.until("nothing was shared", lambda: phone.page.evaluate("() => shared"))
    assert phone.page.evaluate("() => shared") == [link]
    phone.shot("invite")
