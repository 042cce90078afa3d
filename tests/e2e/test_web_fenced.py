"""A session whose host lost its lease, in a browser: it is said, nothing is typed meanwhile, and it
goes on when the host has it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import axe
from e2e.browsing import DESK
from e2e.conftest import Visit
from privileged.leasing import LEASE_S, locked, needs_contained
from process.reaching import Faraway

pytestmark = pytest.mark.skipif(bool(needs_contained()), reason=needs_contained())


@pytest.fixture(scope="module")
def box() -> Iterator[Faraway]:
    made = Faraway()
    settings = Path(made.host.home, "config.toml")
    settings.write_text(f"{settings.read_text()}lease_s = {LEASE_S}\n")
    made.host.ok("daemon", "restart")
    made.until_reached(2)
    yield made
    made.close()


@pytest.mark.requirement("F1", "F2")
def test_a_fenced_session_is_said_to_be_and_goes_on_when_its_lease_is_back(
    box: Faraway, visit: Visit
) -> None:
    box.host.ok("run", "-d", "--name", "leased", "--rehomeable", "--", "cat")
    visitor = visit("fenced", **DESK)
    visitor.open("leased")
    visitor.enter("before")
    visitor.until_shown("before\nbefore")
    session = visitor.at("session")
    with locked(Path(box.host.home, "registry.sqlite")):
        banner = visitor.page.locator('[data-testid="session-banner"][data-code="fenced"]')
        banner.wait_for()
        assert "lease" in banner.inner_text()
        assert "nothing runs twice" in banner.inner_text()
        visitor.until_shown("before")  # what was there is still there
        state, holder = visitor.at("link-state"), visitor.at("turn-holder")
        visitor.until("its host answers", lambda: state.get_attribute("data-state") == "online")
        visitor.until("nobody can write", lambda: "fenced" in holder.inner_text())
        visitor.until("nor since when", lambda: re.search(r"for \d+s", holder.inner_text()))
        visitor.until("nor has the turn", lambda: session.get_attribute("data-turn") == "free")
        for act in ("session-resume", "session-halt", "turn-yield", "turn-request"):
            visitor.at(act).wait_for(state="detached")
        visitor.page.get_by_label("More", exact=True).click()
        visitor.at("session-more").wait_for()
        assert visitor.at("session-end").count(), "it can still be ended"
        assert not visitor.page.get_by_text("Seize and halt").count()
        visitor.page.keyboard.press("Escape")
        axe.check(visitor, "fenced")
    visitor.until("it is not back", lambda: session.get_attribute("data-link") == "online")
    visitor.enter("after")
    visitor.until_shown("after\nafter")
