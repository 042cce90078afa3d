"""A browser whose network goes away, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e import axe
from e2e.browsing import PHONE
from e2e.conftest import Visit
from e2e.cutting import Network
from process.reaching import Faraway

CUT_S = 40.0  # two of the relay's heartbeats: by then it has let go of who does not answer


@pytest.mark.requirement("M1", "S4", "R6")
@pytest.mark.timeout(240)
def test_a_network_that_is_gone_for_forty_seconds_loses_nothing_and_doubles_nothing(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    """The session goes on meanwhile. The page says that it is cut off; what is typed then arrives
    once, when it is back, but what is older than half a minute: that is said, and not typed."""
    box.host.shell("tunnel")
    gate, taken = tmp_path / "gate", tmp_path / "taken"
    with Network(box.relay.port) as network:
        phone = visit("tunnel", origin=f"http://127.0.0.1:{network.port}", **PHONE)
        phone.open("tunnel")
        phone.enter(
            f"echo off-$((0)); until [ -e {gate} ]; do sleep 0.1; done; "
            f"echo on-$((1))-meanwhile; cat > {taken}"
        )
        phone.until_shown("off-0")
        with phone.cut_off():
            network.cut()
            gate.touch()
            phone.type("too old by then")  # into a connection that is dead and does not know it
            phone.page.wait_for_timeout(CUT_S * 1000)  # the length of the cut is what is tested
            link = phone.at("session").get_attribute("data-link")
            phone.shot("cut-off")
            assert link == "offline", "the page does not say that it is cut off"
            assert "on-1-meanwhile" not in phone.screen()
            phone.type("typed in the dark")
            network.mend()
            phone.until(
                "it is not back", lambda: phone.at("session").get_attribute("data-link") == "online"
            )
        phone.until_shown("on-1-meanwhile")
        phone.page.get_by_text("They are not sent again").wait_for()
        phone.press("Enter", "Control+d")
        box.host.ok("wait", "tunnel", "--for", "prompt", "--timeout", "20")
        assert taken.read_text() == "typed in the dark\n"
        phone.shot("back")


@pytest.mark.requirement("F5")
def test_a_relay_that_dies_and_comes_again_is_found_again(box: Faraway, visit: Visit) -> None:
    box.host.shell("relay-dies")
    visitor = visit("relay-dies")
    visitor.open("relay-dies")
    visitor.enter("echo before-$((1))")
    visitor.until_shown("before-1")
    visitor.at("timeline-entry").filter(has_text="before-").wait_for()
    with visitor.cut_off():
        box.relay.process.kill()
        link = visitor.at("session")
        visitor.until("it does not say so", lambda: link.get_attribute("data-link") == "offline")
        visitor.shot("offline")
        box.host.ok("exec", "relay-dies", "--", "echo by-another-$((1))")
        box.relay_again()
        visitor.until("it is not back", lambda: link.get_attribute("data-link") == "online")
        visitor.at("catch-up").wait_for()
        axe.check(visitor, "catch-up")
        assert "by-another" in visitor.at("catch-up").inner_text(), "what others did meanwhile"
        assert "before-" not in visitor.at("catch-up").inner_text(), "what it did itself"
        visitor.at("timeline-since").wait_for()
        order = visitor.page.locator(".timeline").inner_text()
        assert (
            order.index("by-another") < order.index("New since you left") < order.index("before-")
        )
        visitor.at("catch-up-close").click()
        visitor.enter("echo after-$((2))")
        visitor.until_shown("after-2")
    assert "before-1" in visitor.everything()
