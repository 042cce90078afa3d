"""Coming in by a link in a browser, and every way in which that does not work: each ends on a page
that says what happened and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway


@pytest.mark.requirement("R4", "R6", "S4")
@pytest.mark.parametrize(("kind", "name"), [(DESK, "join-desk"), (PHONE, "join-phone")])
def test_a_link_leads_to_the_overview_a_session_and_a_key_that_is_echoed(
    box: Faraway, visit: Visit, kind: dict[str, Any], name: str
) -> None:
    box.host.shell(name)
    visitor = visit(name, **kind)
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
    visitor.at("join-name").fill(visitor.name)
    visitor.at("join-submit").click()
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
