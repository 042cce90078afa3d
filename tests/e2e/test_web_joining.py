"""Coming in by a link in a browser, what there is then, and every way in which it does not work:
each ends on a page that says what happened and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import segno

from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def desk(browser: Browser, box: Faraway) -> Iterator[Visitor]:
    visitor = Visitor(browser, box.relay.url, name="join-desk", **DESK)
    yield visitor
    visitor.close()
    visitor.quiet()


@pytest.fixture(scope="module")
def phone(browser: Browser, box: Faraway) -> Iterator[Visitor]:
    visitor = Visitor(browser, box.relay.url, name="join-phone", **PHONE)
    yield visitor
    visitor.close()
    visitor.quiet()


_IN_VIEW = """() => {
    const terminal = __hold.terminal, buffer = terminal.buffer.active, lines = []
    for (let row = 0; row < terminal.rows; row++)
        lines.push(buffer.getLine(buffer.viewportY + row)?.translateToString(true))
    return lines.join('\\n')
}"""


# -- what there is ---------------------------------------------------------------------------------
# On the same two pages, each going on where the one before left it: a browser costs much.


@pytest.mark.requirement("R4", "R6", "S4")
@pytest.mark.parametrize("where", ["desk", "phone"])
def test_a_link_leads_to_the_overview_a_session_and_a_key_that_is_echoed(
    box: Faraway, request: pytest.FixtureRequest, where: str
) -> None:
    visitor: Visitor = request.getfixturevalue(where)
    name = visitor.name
    box.host.shell(name)
    visitor.join(box.link())
    visitor.at("overview").wait_for()
    visitor.card(name).wait_for()
    visitor.shot("overview")
    visitor.open(name)
    visitor.until_shown("$")
    visitor.enter("echo by-hand-$((40 + 2))")
    visitor.until_shown("by-hand-42")
    visitor.dismiss()
    visitor.shot("session")
    assert "by-hand-42" in box.host.ok("screen", name)
    assert name in box.host.ok("log", name), "who typed it is in the journal"


def test_a_command_in_the_timeline_leads_to_its_line_above(desk: Visitor) -> None:
    desk.enter("seq 1 150; echo all-$((150))")
    desk.until_shown("all-150")
    assert "by-hand-42" not in desk.screen()
    desk.at("tab-timeline").click()
    desk.at("timeline-entry").filter(has_text="by-hand").click()
    desk.until("it is not in view", lambda: "by-hand-42" in desk.page.evaluate(_IN_VIEW))
    desk.page.evaluate("() => __hold.terminal.scrollToBottom()")


def test_keys_that_a_phone_lacks_are_sent_by_its_key_bar(phone: Visitor) -> None:
    phone.enter("echo reads-$((5)); read -rn5 keys; printf '<%q>\\n' \"$keys\"")
    phone.until_shown("reads-5")
    for key in ("key-esc", "key-tab", "key-left"):
        phone.at(key).click()
    phone.until_shown(r"<$'\E\t\E[D'>")
    phone.enter("sleep 1000")
    phone.until_shown("sleep 1000")
    phone.at("key-ctrl-c").click()
    phone.until_shown("^C")
    phone.enter("echo on-$((4))")
    phone.until_shown("on-4")


def test_the_overview_follows_what_a_session_does_and_finds_it(
    box: Faraway, phone: Visitor
) -> None:
    phone.at("turn-give").click()
    phone.at("turn-yield").click()
    phone.overview()
    card = phone.card("join-phone")
    last = card.get_by_test_id("session-card-last-line")
    box.host.ok("send", "join-phone", "--enter", 'read -p "Really-$((9))? " x')
    phone.until("it asks", lambda: card.get_attribute("data-state") == "waiting")
    phone.until("what it asks", lambda: "Really-9?" in last.inner_text())
    need = phone.at("needs-you").locator('[data-kind="question"][data-session="join-phone"]')
    assert "Really-9?" in need.inner_text()
    phone.shot("needs-you")
    box.host.ok("send", "join-phone", "--enter", "yes")
    phone.until("it goes on", lambda: card.get_attribute("data-state") == "idle")
    need.wait_for(state="detached")
    box.host.ok("send", "join-phone", "--enter", "less /etc/passwd")
    phone.until("a pager is in use", lambda: card.get_attribute("data-state") == "in-use")
    assert need.count() == 0
    box.host.ok("send", "join-phone", "q")
    phone.until("it is closed", lambda: card.get_attribute("data-state") == "idle")
    assert phone.card("join-desk").is_visible()
    phone.at("overview-search").fill("JOIN-ph")
    phone.card("join-desk").wait_for(state="detached")
    assert card.is_visible()
    phone.at("overview-search").fill("")
    phone.card("join-desk").wait_for()


def test_a_link_made_in_the_page_lets_another_in_and_its_code_is_that_link(
    desk: Visitor, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.at("invite-open").click()
    desk.at("invite-make").click()
    link = desk.at("invite-link").input_value()
    runs = desk.at("invite-qr").locator("path").get_attribute("d") or ""
    desk.shot("invite")
    # It pads a whole byte by one more, which readers do not mind.
    monkeypatch.setattr("segno.encoder.write_padding_bits", _pad)
    assert modules(runs) in [code_of(link, mask) for mask in range(8)]
    desk.page.keyboard.press("Escape")
    guest = visit("guest", join=False)
    guest.join(link)
    guest.open("join-desk")
    guest.until_shown("all-150")
    assert guest.at("turn-request").count() == 0, "it may only watch"


def modules(path: str) -> set[tuple[int, int]]:
    """The dark ones, of a path that is made of runs."""
    runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path)
    return {(int(row), int(first) + at) for first, row, count in runs for at in range(int(count))}


def code_of(text: str, mask: int) -> set[tuple[int, int]]:
    code = segno.make_qr(text, error="m", boost_error=False, mode="byte", mask=mask)
    rows = enumerate(code.matrix_iter(border=4))
    return {(row, at) for row, cells in rows for at, dark in enumerate(cells) if dark}


def _pad(bits: bytearray, version: int, length: int) -> None:
    bits.extend([0] * (-length % 8))


def test_the_page_can_be_installed_and_has_the_colours_of_its_system(desk: Visitor) -> None:
    scope = desk.page.evaluate("async () => (await navigator.serviceWorker.ready).scope")
    assert scope == f"{desk.origin}/"
    found = desk.context.new_cdp_session(desk.page).send("Page.getAppManifest")
    assert found["errors"] == [] and '"display": "standalone"' in found["data"]
    grounds = set()
    for scheme in ("dark", "light"):
        desk.page.emulate_media(color_scheme=scheme)
        desk.page.locator(f'html[data-theme="{scheme}"]').wait_for()
        grounds.add(desk.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


# -- ways in which it does not work ----------------------------------------------------------------


def test_a_page_that_is_no_secure_context_comes_in_with_keys_of_its_own(
    box: Faraway, visit: Visit
) -> None:
    """In a LAN without TLS a browser has no WebCrypto to offer."""
    box.host.shell("insecure")
    origin = box.relay.url.replace("127.0.0.1", "relay.test")
    visitor = visit("insecure", origin=origin)
    assert visitor.page.evaluate("isSecureContext") is False
    visitor.open("insecure")
    visitor.enter("echo plain-$((40 + 2))")
    visitor.until_shown("plain-42")
    visitor.page.reload()
    visitor.until_shown("plain-42")


def test_the_secret_of_a_link_does_not_stay_in_the_address(box: Faraway, visit: Visit) -> None:
    visitor = visit("address", join=False)
    link = box.link()
    visitor.go(f"/i#{link.partition('#')[2]}")
    visitor.at("join").wait_for()
    secret = link.rpartition(".")[2]
    assert secret not in visitor.page.url
    assert secret not in str(visitor.page.evaluate("history.state"))


def test_the_page_of_a_link_says_who_invites_to_what_with_which_role(
    box: Faraway, visit: Visit
) -> None:
    visitor = visit("guest", join=False)
    inviter = box.host.json("actor", "show")["name"]
    box.host.ok("run", "-d", "--name", "for-guests", "--", "cat")
    link = box.link(role="read", more=("--session", "for-guests"))
    visitor.go(f"/i#{link.partition('#')[2]}")
    visitor.at("join").wait_for()
    visitor.shot("join-page")
    title, what = visitor.page.locator("h1").inner_text(), visitor.at("join-what").inner_text()
    assert title == f"{inviter} invites you to for-guests"
    assert "watch, and read what happened before" in what and "not write" in what
    assert "read" in what and "30 days" in what and "works once" in what


def test_another_link_in_the_same_tab_takes_the_place_of_the_first(
    box: Faraway, visit: Visit
) -> None:
    """Only the fragment is another one: the browser loads no page for it."""
    visitor = visit("another", join=False)
    visitor.go("/i#half.a")
    told(visitor, "bad_link")
    link = box.link()
    visitor.page.evaluate("window.before = true")
    visitor.join(link)
    assert visitor.page.evaluate("window.before"), "it was loaded again"
    assert link.rpartition(".")[2] not in visitor.page.url


def refused(visitor: Visitor, link: str, code: str) -> None:
    """The link does not lead in, and the page says why."""
    visitor.go(f"/i#{link.partition('#')[2]}")
    told(visitor, code)


def told(visitor: Visitor, code: str) -> None:
    visitor.page.locator(f'[data-testid="error-page"][data-code="{code}"]').wait_for()
    assert visitor.at("error-title").inner_text().strip()
    assert visitor.at("error-hint").inner_text().strip()
    visitor.shot(f"told-{code}")


def test_a_link_that_is_not_whole_is_told_so(box: Faraway, visit: Visit) -> None:
    visitor = visit("bad-link", join=False)
    for fragment in ("", "#", "#half.a", "#" + "A" * 80, "#..", "#ü"):
        visitor.page.goto("about:blank")  # another fragment alone would load no page
        visitor.go(f"/i{fragment}")
        told(visitor, "bad_link")
        assert visitor.at("join-error").get_attribute("data-code") == "bad_link", fragment


def test_a_link_that_was_used_is_told_so(box: Faraway, visit: Visit) -> None:
    link = box.link()
    first = visit("first-one", join=False)
    first.join(link)
    refused(visit("second-one", join=False), link, "used_up")


def test_a_link_that_has_expired_is_told_so(box: Faraway, visit: Visit) -> None:
    link = box.link(more=("--all", "--expires", "1s"))
    visitor = visit("too-late", join=False)
    visitor.page.wait_for_timeout(1200)  # its time is the host's clock: there is no event for it
    refused(visitor, link, "expired")
    assert "expired" in visitor.page.inner_text("main")


def test_a_link_that_was_taken_back_is_told_so(box: Faraway, visit: Visit) -> None:
    made = box.host.json("invite", "--all", "--role", "read")
    box.host.ok("invite", "revoke", made["invite"])
    refused(visit("taken-back", join=False), made["link"], "invalid")


def test_a_session_there_is_not_and_a_machine_nobody_knows_are_told_so(
    box: Faraway, visit: Visit
) -> None:
    visitor = visit("wanderer")
    machine = visitor.at("machine").get_attribute("data-machine")
    visitor.go(f"/m/{machine}/s/there-is-none")
    told(visitor, "not_found")
    visitor.go("/m/nowhere/s/main")
    told(visitor, "no_machine")
    visitor.go("/m/nowhere")
    told(visitor, "lost")
    visitor.at("error-action").first.click()
    visitor.at("overview").wait_for()


def test_a_device_that_nobody_invited_is_told_what_to_do(box: Faraway, visit: Visit) -> None:
    visitor = visit("stranger", join=False)
    visitor.go("/")
    visitor.at("overview-empty").wait_for()
    assert "hold" in visitor.at("overview-empty").inner_text()
    visitor.shot("empty")
