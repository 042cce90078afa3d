"""Checkpoints of a program that offers its own state, in a browser: what is in the way is said
before one is asked for, how far it is while it is made, and what certifies the session later."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from process.reaching import Faraway

# Gives its state when it is told to, and at a restore begins with it.
_HESITATES = """
cd "$HOLDFAST_SNAPSHOT_DIR"
[ -f restore ] && echo "goes on with $(cat restore)"
give() {{ while [ ! -e {go} ]; do sleep 0.02; done; echo 7 > .new; mv .new state; }}
trap give $HOLDFAST_SNAPSHOT_SIGNAL
echo $$ > offer
echo offered
while :; do sleep 0.05; done
"""


@pytest.fixture
def go(box: Faraway, tmp_path: Path) -> Iterator[Path]:
    """A session called slow gives its state once this exists."""
    go = tmp_path / "go"
    command = ("bash", "-c", _HESITATES.format(go=go))
    box.host.ok("run", "-d", "--name", "slow", "--level", "plain", "--", *command)
    box.host.ok("wait", "slow", "--for", "text:offered", "--timeout", "20")
    yield go
    go.touch()
    box.host("end", "slow")


def open_act(visitor: Visitor, testid: str) -> None:
    visitor.at("session-menu").click()
    visitor.at(testid).click()


@pytest.mark.requirement("M2")
def test_how_far_a_checkpoint_is_stands_in_the_dialog_the_state_line_and_the_list(
    box: Faraway, visit: Visit, go: Path
) -> None:
    desk, phone = visit("making", **DESK), visit("looking", **PHONE)
    desk.open("slow")
    phone.overview()
    open_act(desk, "checkpoints-open")
    verdict = desk.at("can-move")
    verdict.wait_for()
    assert verdict.get_attribute("data-movable") == "false", "its processes are not what is saved"
    assert "To do:" in desk.at("can-move-finding").first.inner_text()
    axe.check(desk, "can-move")
    desk.at("checkpoint-make").click()
    progress = desk.at("checkpoint-progress")
    desk.until("no phase", lambda: "its program writes its state" in progress.inner_text())
    axe.check(desk, "progress")
    line = desk.at("turn-holder")
    assert line.get_attribute("data-state") == "checkpointing"
    assert "Checkpointing: its program writes its state" in line.inner_text()
    listed = phone.card("slow").get_by_test_id("session-progress")
    listed.wait_for()
    assert listed.inner_text() == "Checkpointing"
    axe.check(phone, "progress-listed")
    go.touch()
    desk.until("it is not done", lambda: "Done" in progress.inner_text())
    listed.wait_for(state="detached")
    desk.until("still said", lambda: line.get_attribute("data-state") != "checkpointing")


@pytest.mark.requirement("M2")
def test_what_came_back_says_which_life_it_is_and_has_its_certificate(
    box: Faraway, visit: Visit, go: Path, tmp_path: Path
) -> None:
    visitor = visit("certified", **DESK)
    visitor.open("slow")
    assert not visitor.at("lineage").count(), "it was never away"
    go.touch()
    box.host.ok("checkpoint", "slow", "--end")
    visitor.at("session-restore").wait_for()
    visitor.at("session-restore").click()
    visitor.until(
        "it is not back", lambda: visitor.at("session").get_attribute("data-link") == "online"
    )
    visitor.ready()
    visitor.until_shown("goes on with 7")
    lineage = visitor.at("lineage")
    lineage.filter(has_text="by certified, with the state its program had saved").wait_for()
    assert lineage.inner_text().startswith("Epoch 2 · restored")
    assert "epoch 2" in visitor.page.locator(".foot").inner_text()
    axe.check(visitor, "lineage")
    visitor.at("lineage-certificate").click()
    page = visitor.at("certificate")
    page.get_by_text("Its program went on with the state it had saved").wait_for()
    axe.check(visitor, "certificate")
    with visitor.page.expect_download() as coming:
        visitor.at("certificate-download").click()
    kept = tmp_path / "slow.json"
    coming.value.save_as(kept)
    assert coming.value.suggested_filename == "slow.certificate.json"
    checked = box.client.json("certificate", "check", str(kept))
    assert checked["valid"], checked
    assert json.loads(kept.read_text())["session"] == box.host.json("show", "slow")["id"]


def test_what_follows_a_lost_session_leads_to_it(box: Faraway, visit: Visit) -> None:
    lost = box.host.shell("forebear")
    os.kill(box.host.json("show", "forebear")["keeper_pid"], signal.SIGKILL)
    phone = visit("following", **PHONE)
    phone.until("it is not lost", lambda: box.host.json("show", lost)["state"] == "lost")
    box.host.ok("revive", lost)
    phone.overview()
    lives = '[data-testid="session-card"][data-session="forebear"][data-state="idle"]'
    phone.page.locator(lives).click()
    phone.ready()
    phone.at("panel-toggle").click()
    follows = phone.at("lineage-follows")
    follows.wait_for()
    size = follows.bounding_box()
    assert size and size["height"] >= 44
    follows.click()
    phone.page.locator('[data-testid="error-page"][data-code="session_lost"]').wait_for()
