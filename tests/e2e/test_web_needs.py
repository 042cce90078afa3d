"""What needs somebody is settled where it is listed, and the session is not opened for it: an
answer, a secret, a request for the turn, a halt. That nothing is sent where something else is asked
by then is tested in web/test/errands.test.ts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway

if TYPE_CHECKING:
    from playwright.sync_api import Locator

_SMALL_TARGETS = """() => [...document.querySelectorAll('.needs button, .needs a, .needs input')]
    .filter((one) => one.checkVisibility())
    .map((one) => [one.ariaLabel || one.innerText, one.getBoundingClientRect()])
    .filter(([, box]) => box.width < 44 || box.height < 44)
    .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""


def need(visitor: Visitor, session: str, kind: str) -> Locator:
    return visitor.at("needs-you").locator(f'[data-session="{session}"][data-kind="{kind}"]')


def asks(box: Faraway, name: str, line: str) -> None:
    box.host.shell(name)
    box.host.ok("send", name, "--enter", line)


@pytest.mark.requirement("S7")
@pytest.mark.parametrize("kind", [DESK, PHONE], ids=["desk", "phone"])
def test_a_question_is_answered_in_the_list(
    box: Faraway, visit: Visit, tmp_path: Path, kind: dict[str, Any]
) -> None:
    name, said = f"deploys-{kind['viewport']['width']}", tmp_path / "said"
    asks(box, name, f"read -p 'Deploy to 14 hosts? [y/N] ' word; echo $word >> {said}")
    visitor = visit(f"{name}-by", **kind)
    visitor.overview()
    row = need(visitor, name, "question")
    row.wait_for()
    buttons = row.locator(".need-acts button").all_inner_texts()
    assert [" ".join(one.split()) for one in buttons] == ["Yes y", "No n, default", "Type…"]
    if kind is PHONE:
        assert visitor.page.evaluate(_SMALL_TARGETS) == []
    axe.check(visitor, "need-question")
    row.get_by_test_id("need-prompt-answer-y").click()
    visitor.until("it was answered", lambda: said.exists() and said.read_text() == "y\n")
    row.wait_for(state="detached")
    assert visitor.at("overview").is_visible(), "the session was not opened for it"
    log = box.host.ok("log", name)
    assert f"{name}-by" in log
    turn = box.host.json("turn", name)
    assert not turn["holder"], "who answered does not keep the turn"

    box.host.ok("send", name, "--enter", f"read -p 'Hostname: ' host; echo $host >> {said}")
    row.wait_for()
    assert row.locator(".need-acts button").all_inner_texts() == ["Answer…"]
    row.get_by_test_id("need-answer").click()
    row.get_by_test_id("need-input").fill("api-07")
    if kind is PHONE:
        assert visitor.page.evaluate(_SMALL_TARGETS) == []
    axe.check(visitor, "need-typed")
    row.get_by_test_id("need-input").press("Enter")
    visitor.until("it was answered", lambda: said.read_text() == "y\napi-07\n")
    row.wait_for(state="detached")


@pytest.mark.requirement("S7")
def test_a_secret_is_entered_in_the_list_and_recorded_nowhere(
    box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    asks(box, "vaulted", f"read -rsp 'Vault password: ' word; echo ${{#word}} > {known}")
    phone = visit("keyholder", **PHONE)
    phone.overview()
    row = need(phone, "vaulted", "secret")
    row.get_by_test_id("need-secret").click()
    row.get_by_test_id("need-input").fill("hunter2!")
    axe.check(phone, "need-secret")
    row.get_by_test_id("need-send").click()
    phone.until("it was entered", lambda: known.exists() and known.read_text() == "8\n")
    row.wait_for(state="detached")
    assert "hunter2!" not in box.host.ok("log", "vaulted", "--json")


def test_who_does_not_get_the_turn_sends_nothing_and_waits_for_nothing(
    box: Faraway, visit: Visit
) -> None:
    asks(box, "held-by-me", "read -p 'Go on? [y/n] ' word")
    box.host.ok("turn", "held-by-me", "request")
    visitor = visit("other")
    visitor.overview()
    row = need(visitor, "held-by-me", "question")
    row.get_by_test_id("need-prompt-answer-y").click()
    visitor.at("toast").filter(has_text="holds the turn: nothing was sent").wait_for()
    assert box.host.json("show", "held-by-me")["state"] == "input"
    assert box.host.json("turn", "held-by-me")["queue"] == []
    box.host.ok("end", "held-by-me")


@pytest.mark.requirement("A4")
def test_the_turn_is_given_in_the_list_or_kept(box: Faraway, visit: Visit) -> None:
    box.host.shell("wanted")
    holder, asker = visit("has-it"), visit("wants-it", **PHONE)
    for visitor in (holder, asker):
        visitor.open("wanted")
    holder.take_turn()
    asker.until("another holds it", lambda: asker.turn() == "other")
    holder.page.get_by_label("Back to the overview").click()

    def ask(why: str) -> None:
        asker.open_ask_sheet()
        asker.page.get_by_label("What for?").fill(why)
        asker.at("turn-request").click()

    ask("to restart the tail")
    row = need(holder, "wanted", "turn")
    row.filter(has_text="wants-it asks for the turn: “to restart the tail”").wait_for()
    axe.check(holder, "need-turn")
    row.get_by_test_id("need-not-now").click()
    row.wait_for(state="detached")
    assert box.host.json("turn", "wanted")["holder_name"] == "has-it"
    holder.page.reload()
    row.get_by_test_id("need-give").click()
    asker.until("the turn was not given", lambda: asker.turn() == "mine")
    row.wait_for(state="detached")


def test_what_was_halted_is_resumed_in_the_list_and_asked_about_first(
    box: Faraway, visit: Visit
) -> None:
    box.host.shell("frozen")
    box.host.ok("halt", "frozen")
    visitor = visit("thawing")
    visitor.overview()
    row = need(visitor, "frozen", "halted")
    resume = row.get_by_test_id("need-resume")
    resume.click()
    assert resume.inner_text() == "Yes, resume all of it"
    assert box.host.json("show", "frozen")["state"] == "halted"
    resume.click()
    row.wait_for(state="detached")
    assert box.host.json("show", "frozen")["state"] == "prompt"
