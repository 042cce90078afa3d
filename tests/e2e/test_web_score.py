"""An actor's record in a browser: the figures and plots of real actions, where a name leads to it,
and what is said where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.acting import add_actor
from process.commanding import Hold
from process.reaching import Faraway

_PRESSED = "[data-testid=score] :is(button, a, summary)"
_TOO_SMALL = f"""() => [...document.querySelectorAll('{_PRESSED}')]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
    .map((one) => one.ariaLabel || one.innerText)"""


def figure(visitor: Visitor, measure: str) -> str:
    return visitor.at(f"figure-{measure}").inner_text().replace("\n", " / ")


def act(hold: Hold, actor: str, session: str, command: str) -> None:
    hold("--as", actor, "submit", session, "--intent", "try it", "--", command)


def shell_in(hold: Hold, name: str, *words: str) -> None:
    hold.ok("run", "-d", "--name", name, *words, "--", "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")


def told(hold: Hold, actor: str) -> dict[str, Any]:
    return dict(hold.json("score", actor))


@pytest.mark.requirement("G5")
def test_what_an_agent_did_is_plotted_where_its_name_leads(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    add_actor(box.host, "otto", "execute", "--all")
    shell_in(box.host, "scored", "--workspace", str(tmp_path))
    for command in ("true", "false", f"touch {tmp_path}/undeclared"):
        act(box.host, "otto", "scored", command)
    box.host("--as", "otto", "submit", "scored", "--", "echo without an intent")
    desk = visit("scoring", **DESK)
    desk.open("scored")
    desk.at("tab-operators").click()
    desk.page.get_by_role("link", name="otto").filter(has_text="score").first.click()
    desk.page.wait_for_url("**/score/otto")
    page = desk.at("score")
    page.wait_for()
    totals = told(box.host, "otto")["totals"]
    assert (totals["actions"], totals["valid"], totals["measured"]) == (4, 3, 3)
    assert "otto carried out 4 actions in 30 days" in page.inner_text()
    assert figure(desk, "valid") == "Valid / 75.0 % / 3 of 4 were well formed and allowed"
    assert figure(desk, "success").startswith("Succeeded / 66.7 % / 2 of 3")
    assert figure(desk, "clean").startswith("Clean / 66.7 % / 2 of 3")
    assert figure(desk, "side-effects").startswith("Side effects / 1")
    for plot in ("valid", "success", "clean", "actions"):
        assert desk.at(f"plot-{plot}").get_attribute("data-points") == "1", plot
    said = desk.at("plot-success").locator("svg").get_attribute("aria-label") or ""
    assert said.startswith("Succeeded: 66.7 % on 20")
    event = desk.at("unintended").inner_text()
    assert f"created {tmp_path}/undeclared" in event and "scored" in event
    desk.page.get_by_text("The same as a table").click()
    assert desk.page.locator(".score-table tbody tr").count() == 1
    axe.check(desk, "score")
    # What is done meanwhile shows without a reload.
    act(box.host, "otto", "scored", "true")
    desk.until("it is not counted", lambda: page.get_attribute("data-actions") == "5")
    desk.at("unintended").get_by_role("link").click()
    desk.ready()


def test_on_a_phone_a_record_fits_and_an_actor_without_one_is_told_how_to_get_one(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    add_actor(box.host, "novice", "execute", "--all")
    add_actor(box.host, "busy", "execute", "--all")
    shell_in(box.host, "handy", "--workspace", str(tmp_path))  # the files of nobody else
    for _ in range(2):
        act(box.host, "busy", "handy", "true")
    phone = visit("scoring-phone", **PHONE)
    machine = phone.at("machine").get_attribute("data-machine")
    phone.go(f"/m/{machine}/score/novice")
    page = phone.at("score")
    page.wait_for()
    assert "novice has carried out no actions in these days" in page.inner_text()
    assert "hold submit" in page.inner_text()
    assert phone.at("plot-valid").count() == 0
    axe.check(phone, "score-empty")
    phone.go(f"/m/{machine}/score/busy")
    phone.at("plot-actions").wait_for()
    phone.at("score-days-90").click()
    page.filter(has_text="in 90 days").wait_for()
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") == 390
    assert phone.page.evaluate(_TOO_SMALL) == []
    axe.check(phone, "score-phone")
    phone.go(f"/m/{machine}/score/nobody-at-all")
    phone.page.locator('[data-testid="error-page"][data-code="no_actor"]').wait_for()


def test_what_happened_in_a_session_that_may_not_be_seen_is_not_told(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    add_actor(box.host, "eager", "execute", "--all")
    shell_in(box.host, "private", "--workspace", str(tmp_path))
    shell_in(box.host, "open", "--label", "public")
    act(box.host, "eager", "private", f"touch {tmp_path}/secret-name")
    visitor = visit("outsider", join=False)
    visitor.join(box.link(role="read", more=("--label", "public")))
    visitor.card("open").wait_for()
    machine = visitor.at("machine").get_attribute("data-machine")
    visitor.go(f"/m/{machine}/score/eager")
    visitor.at("figure-clean").wait_for()
    assert figure(visitor, "side-effects").startswith("Side effects / 1")
    said = visitor.at("score").inner_text()
    assert "sessions that this device may not see" in said
    assert "secret-name" not in said and visitor.at("unintended").count() == 0
