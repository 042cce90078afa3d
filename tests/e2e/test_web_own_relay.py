"""One command, one scan: `hold up` on a machine in a network, and a phone that opens its link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from e2e.browsing import PHONE, Visitor
from holdfast.adapters.lan_address import lan_address
from process.own_relay import Relayed
from process.terminals import Terminal

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def host() -> Iterator[Relayed]:
    made = Relayed()
    yield made
    made.close()


@pytest.mark.requirement("R1", "R6", "S4")
@pytest.mark.parametrize("everywhere", [False, True], ids=["this machine", "its network"])
def test_the_link_that_up_prints_opens_a_session_on_a_phone(
    host: Relayed, browser: Browser, everywhere: bool
) -> None:
    """In a network the relay has a certificate of its own: a browser asks its user about it once,
    which is answered with yes here."""
    address = lan_address(ip6=False) if everywhere else "127.0.0.1"
    if not address:
        pytest.skip("this machine is in no network")
    terminal = Terminal(host, "up", *(("--listen", "0.0.0.0") if everywhere else ()))
    try:
        said = terminal.until(b"takes it back").decode()
    finally:
        terminal.close()
    found = re.search(r"hold join '(http\S+)'", said)
    assert found is not None, said
    link = found[1]
    origin = link.partition("/i#")[0]
    assert re.fullmatch(rf"http{'s' if everywhere else ''}://{re.escape(address)}:\d+", origin)
    host.shell("main")
    with closing(
        Visitor(browser, origin, name="scanned", ignore_https_errors=True, **PHONE)
    ) as phone:
        phone.join(link)
        if everywhere:  # phones notify by a service worker only, and it may have none
            phone.page.locator('[data-testid="notify"][data-why="untrusted"]').click()
            assert "certificate that it trusts" in phone.at("notify-why").inner_text()
            phone.page.keyboard.press("Escape")
        phone.open("main")
        phone.enter("echo from-$((40 + 2))-bed")
        phone.until_shown("from-42-bed")
        host.ok("seize", "main")
        phone.at("turn-ask").click()
        phone.at("turn-seize").wait_for()  # whose phone it is can stop an agent with it
        phone.page.keyboard.press("Escape")
        assert phone.at("session-halt").is_visible()
        assert phone.page.evaluate("isSecureContext") is True
        phone.dismiss()
        phone.shot("scanned")
    phone.quiet()
