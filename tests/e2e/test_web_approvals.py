"""What a policy holds, in a browser: it needs somebody, is read exactly as it is, and approved or
denied by whoever had no part in it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.acting import add_actor
from process.gating import GatedHold
from process.reaching import Faraway
from process.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_HIDDEN = "\u200b"


@pytest.fixture(scope="module")
def hold() -> GatedHold:
    return GatedHold()


@pytest.fixture(scope="module")
def box(hold: GatedHold) -> Iterator[Faraway]:
    made = Faraway(host=hold)
    add_actor(hold, "otto", "admin", "--all")
    yield made
    made.close()


_AWAY = "() => Object.defineProperty(document, 'hidden', { get: () => true })"


def sent(hold: GatedHold, session: str, line: str) -> dict[str, Any]:
    """What waits, once the agent's line is held."""
    with hold.acting("otto"):
        hold("send", session, "--enter", line)
    (held,) = until("it is held", lambda: pending(hold, session))
    return dict(held)


def pending(hold: GatedHold, session: str) -> list[dict[str, Any]]:
    return [each for each in hold.json("approvals", session) if each["status"] == "pending"]


def need(visitor: Visitor, session: str) -> Any:
    return visitor.page.locator(f'[data-kind="approval"][data-session="{session}"]')


def settled(visitor: Visitor) -> str:
    return visitor.at("approval-settled").inner_text()


@pytest.mark.parametrize("kind", [DESK, PHONE], ids=["desk", "phone"])
def test_a_held_line_needs_you_is_read_as_it_is_and_runs_once_when_you_approve(
    hold: GatedHold, box: Faraway, visit: Visit, tmp_path: Path, kind: dict[str, Any]
) -> None:
    name, ran = f"migrate-{kind['viewport']['width']}", tmp_path / "ran"
    hold.rules(hold=["drop"])
    hold.shell(name)
    visitor = visit(f"maria-{name}", **kind)
    held = sent(hold, name, f"echo  drop{_HIDDEN} >> {ran}")
    row = need(visitor, name)
    row.wait_for()
    assert "otto wants to run" in row.inner_text() and "expires in" in row.inner_text()
    visitor.shot("needs-approval")
    row.get_by_test_id("need-review").click()
    page = visitor.at("approval")
    page.wait_for()
    assert page.get_attribute("data-approval") == held["id"]
    drawn = visitor.at("approval-text").inner_text()
    assert drawn == f"echo··dropU+200B·>>·{ran}⏎"
    assert "1 invisible character: zero-width space" in visitor.at("approval-hidden").inner_text()
    assert "two must agree" in visitor.at("approval-reason").inner_text()
    assert "the policy of this host" in visitor.at("approval-policy").inner_text()
    for fact in ("cwd", "user", "workspace"):
        assert visitor.at(f"approval-{fact}").inner_text() == held[fact], fact
    assert "files that others wrote" in visitor.at("approval-no-changes").inner_text()
    who = visitor.at("contributor")
    assert who.count() == 1
    assert who.inner_text().split("\n")[1:] == ["otto agent", "sets it off, typed some of it"]
    assert "left, then refused" in visitor.at("approval-expiry").inner_text()
    axe.check(visitor, "approval")
    deny, approve = (visitor.at(f"approval-{one}").bounding_box() for one in ("deny", "approve"))
    assert deny and approve
    assert (deny["width"], deny["height"], deny["y"]) == (
        approve["width"],
        approve["height"],
        approve["y"],
    )
    visitor.at("approval-note").fill("after the backup")
    visitor.at("approval-approve").click()
    visitor.at("toast").filter(has_text="press and hold").wait_for()
    assert not ran.exists(), "what has something to read closely is not approved by a slip"
    visitor.at("approval-approve").click(delay=1500)
    visitor.until("it is settled", lambda: page.get_attribute("data-status") == "approved")
    assert settled(visitor).startswith("Approved by you")
    until("it ran", lambda: ran.exists() and ran.read_text() == f"drop{_HIDDEN}\n")
    axe.check(visitor, "approved")
    visitor.at("approval").get_by_label("Back to the overview").click()
    row.wait_for(state="detached")
    record = hold.ok("log", name, "--json")
    assert "after the backup" in record and f"maria-{name}" in record


def test_after_a_restart_it_is_said_that_nobody_knows_what_changed_and_it_is_read_again(
    hold: GatedHold, box: Faraway, visit: Visit
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("restarted")
    visitor = visit("after-restart")
    sent(hold, "restarted", "echo drop-$((1))")
    need(visitor, "restarted").get_by_test_id("need-review").click()
    visitor.at("approval-no-changes").wait_for()
    hold.ok("daemon", "restart")
    visitor.at("approval-changes-unknown").wait_for()
    assert visitor.at("approval-no-changes").count() == 0
    visitor.at("approval-again").wait_for()
    visitor.shot("restarted")
    visitor.at("approval-read").click()
    visitor.at("approval-approve").click(delay=1500)
    visitor.at("approval-settled").wait_for()
    assert '\\"changes_known\\": false' in hold.ok("log", "restarted", "--json")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_what_changed_since_the_page_last_looked_is_not_approved_but_shown(
    hold: GatedHold, box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("stale", "zsh", "-f")
    pid = hold.json("show", "stale")["pid"]
    hold.ok("exec", "stale", "--", f"trap 'cd {tmp_path}' USR1")
    visitor = visit("not-looking")
    held = sent(hold, "stale", "echo drop-$((2))")
    need(visitor, "stale").get_by_test_id("need-review").click()
    visitor.at("approval-no-changes").wait_for()
    visitor.page.evaluate(_AWAY)  # so that it does not look by itself
    os.kill(pid, signal.SIGUSR1)
    until(
        "it moved", lambda: any("directory" in one for one in pending(hold, "stale")[0]["changed"])
    )
    assert visitor.at("approval-again").count() == 0
    visitor.at("approval-approve").click(delay=1500)
    visitor.at("approval-again").wait_for()
    assert [each["id"] for each in pending(hold, "stale")] == [held["id"]]
    hold.ok("end", "stale")


def test_denying_needs_no_look_and_the_session_tells_of_it(
    hold: GatedHold, box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("denied")
    visitor = visit("denying")
    sent(hold, "denied", f"touch {tmp_path}/drop")
    row = need(visitor, "denied")
    row.wait_for()
    visitor.open("denied")
    card = visitor.at("held-card")
    card.wait_for()
    assert "otto wants to run" in card.inner_text() and "/drop" in card.inner_text()
    assert visitor.at("turn-holder").get_attribute("data-state") == "held"
    visitor.at("tab-inbox").click()
    visitor.at("inbox-approval").wait_for()
    axe.check(visitor, "held")
    visitor.shot("held")
    card.get_by_test_id("need-deny").click()
    card.wait_for(state="detached")
    visitor.at("tab-timeline").click()
    visitor.page.locator(".happening", has_text="denying denied it").wait_for()
    assert pending(hold, "denied") == [] and not (tmp_path / "drop").exists()
    visitor.overview()
    row.wait_for(state="detached")


def test_with_a_quorum_one_approval_counts_and_another_settles_it_for_both(
    hold: GatedHold, box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    ran = tmp_path / "drop"
    hold.rules(hold=["drop"], quorum=2)
    hold.shell("both")
    first, second = visit("first"), visit("second", **PHONE)
    sent(hold, "both", f"touch {ran}")
    for visitor in (first, second):
        need(visitor, "both").get_by_test_id("need-review").click()
        visitor.at("approval-approve").wait_for()
    assert first.at("approval-quorum").inner_text() == "0 of 2 approved"
    first.at("approval-approve").click()  # nothing to read closely: one press
    first.at("approval-why-not").filter(has_text="You approved it: 1 of 2 approved").wait_for()
    second.until(
        "it is counted", lambda: second.at("approval-quorum").inner_text() == "1 of 2 approved"
    )
    assert not ran.exists()
    second.at("approval-approve").click()
    for visitor in (first, second):
        visitor.at("approval-settled").wait_for()
        visitor.shot("settled")
    assert settled(first) == "Approved by you and second"
    assert settled(second) == "Approved by first and you"
    until("it ran", ran.exists)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_what_changed_while_you_looked_must_be_read_again_before_it_is_approved(
    hold: GatedHold, box: Faraway, visit: Visit, tmp_path: Path
) -> None:
    """A shell whose directory another moves while its line waits: a trap does it, which zsh runs
    at its prompt too."""
    (tmp_path / "elsewhere").mkdir()
    hold.rules(hold=["drop"])
    hold.shell("moved", "zsh", "-f")
    pid = hold.json("show", "moved")["pid"]
    hold.ok("exec", "moved", "--", f"trap 'cd {tmp_path}/elsewhere' USR1; cd {tmp_path}")
    visitor = visit("reading-again")
    sent(hold, "moved", "touch drop")
    need(visitor, "moved").get_by_test_id("need-review").click()
    visitor.at("approval-approve").wait_for()
    os.kill(pid, signal.SIGUSR1)
    visitor.at("approval-again").wait_for()
    assert "elsewhere" in visitor.at("approval-changes").inner_text()
    assert visitor.at("approval-approve").is_disabled()
    assert visitor.at("approval-deny").is_enabled(), "stopping is never harder than going on"
    axe.check(visitor, "changed")
    visitor.shot("changed")
    visitor.at("approval-read").click()
    visitor.at("approval-approve").click(delay=1500)
    visitor.at("approval-settled").wait_for()


def test_your_own_line_is_said_to_wait_and_is_not_yours_to_approve(
    hold: GatedHold, box: Faraway, visit: Visit
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("own")
    visitor = visit("owner")
    visitor.open("own")
    visitor.enter("echo drop-$((1))")
    card = visitor.at("held-card")
    card.filter(has_text="Your line waits for approval").wait_for()
    assert card.get_by_test_id("need-deny").count() == 0
    assert "Your line waits" in visitor.at("turn-holder").inner_text()
    visitor.shot("own-line")
    card.get_by_role("link", name="Look").click()
    visitor.at("approval-why-not").filter(has_text="nobody approves their own").wait_for()
    assert visitor.at("approval-approve").count() == 0
    visitor.page.go_back()
    visitor.ready()
    visitor.press("Control+c")
    card.wait_for(state="detached")
    assert "drop-1" not in visitor.screen()
    visitor.overview()
    assert need(visitor, "own").count() == 0


def test_who_may_only_watch_reads_it_and_is_told_why_no_more(
    hold: GatedHold, box: Faraway, visit: Visit
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("watched")
    visitor = visit("watching", join=False)
    visitor.join(box.link(role="read"))
    held = sent(hold, "watched", "echo drop")
    visitor.card("watched").wait_for()
    assert need(visitor, "watched").count() == 0
    machine = visitor.at("machine").get_attribute("data-machine")
    visitor.go(f"/m/{machine}/a/{held['id']}")
    visitor.at("approval-why-not").filter(has_text="does not include approving").wait_for()
    visitor.go(f"/m/{machine}/a/00000000")
    visitor.page.locator('[data-testid="error-page"][data-code="no_approval"]').wait_for()


_NOTIFIED = """() => {
    globalThis.notified = []
    Object.defineProperty(document, 'hidden', { get: () => globalThis.away === true })
    ServiceWorkerRegistration.prototype.showNotification = async (title, { body, data }) =>
        void notified.push([title, body, data.path])
}"""


def test_a_browser_in_the_background_is_notified_with_the_exact_command(
    hold: GatedHold, box: Faraway, visit: Visit
) -> None:
    hold.rules(hold=["drop"])
    hold.shell("noticed")
    visitor = visit("noticing", join=False)
    visitor.context.grant_permissions(["notifications"])
    visitor.context.add_init_script(f"({_NOTIFIED})()")
    visitor.join(box.link())
    visitor.card("noticed").wait_for()  # what waited before is known by then
    visitor.page.evaluate("async () => { await navigator.serviceWorker.ready; away = true }")
    held = sent(hold, "noticed", "psql -f drop.sql")
    visitor.until("nobody was notified", lambda: visitor.page.evaluate("() => notified.length"))
    machine = visitor.at("machine").get_attribute("data-machine")
    assert visitor.page.evaluate("() => notified") == [
        [
            f"otto wants to run this in noticed on {machine}",
            "psql -f drop.sql",
            f"/m/{machine}/a/{held['id']}",
        ]
    ]


def test_a_phone_approves_what_a_starter_leaves_to_people_and_reads_whose_variable_it_uses(
    browser: Browser, tmp_path: Path
) -> None:
    """With the project's own policy, and its own knowledge of who is behind a line."""
    (tmp_path / "old").mkdir()
    far = Faraway()
    phone = Visitor(browser, far.relay.url, name="marias-phone", **PHONE)
    try:
        for name, kind in (("otto", "agent"), ("jonas", "human")):
            far.host.ok("actor", "add", name, "--kind", kind)
            far.host.ok("grant", name, "admin", "--all")
        far.host.shell("cleanup")
        far.host.ok("policy", "set", "starter:hold-destructive", "--session", "cleanup")
        far.host.ok("--as", "jonas", "exec", "cleanup", "--", f"export RELEASES={tmp_path}")
        far.host("--as", "otto", "send", "cleanup", "--enter", 'rm -rf "$RELEASES"/old')
        phone.join(far.link())
        need(phone, "cleanup").get_by_test_id("need-review").click()
        jonas = phone.page.locator('[data-testid="contributor"][data-actor="jonas"]')
        assert "set the variable RELEASES" in jonas.inner_text()
        assert phone.at("approval-risk").all_inner_texts() == ["another had a part in it"]
        phone.at("approval-approve").click(delay=1500)
        phone.at("approval-settled").wait_for()
        # The line goes on. Where execs are judged, its program is a question of its own.
        until("the line goes on", lambda: "command 2 began" in far.host.ok("log", "cleanup"))
        phone.open("cleanup")
        phone.at("panel-toggle").click()
        phone.at("originators").filter(has_text="from jonas").wait_for()
        phone.shot("originators")
    finally:
        phone.close()
        far.close()
    phone.quiet()
