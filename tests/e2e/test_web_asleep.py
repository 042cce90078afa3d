"""Checkpoints in a browser: made with a note and listed; a session that is put to sleep says so, is
woken from its page, and the page follows it. All of it through a relay, by a device."""

from __future__ import annotations

import re
import time
from functools import partial

import pytest

from e2e import axe
from e2e.browsing import DESK, PHONE, Visitor
from e2e.conftest import Visit
from holdfast.host.reach.relay_presence import LAST_WORDS_S
from privileged.checkpointing import (
    put_to_sleep,
    restored,
    skip_unless_possible,
    started,
    there_and_back,
)
from process.reaching import Faraway


@pytest.fixture(autouse=True)
def possible() -> None:
    skip_unless_possible()


def open_checkpoints(visitor: Visitor) -> None:
    visitor.at("session-menu").click()
    visitor.at("checkpoints-open").click()
    visitor.at("checkpoints").wait_for()


def until_asleep(visitor: Visitor) -> None:
    holder = visitor.at("turn-holder")
    visitor.until("it is not asleep", lambda: holder.get_attribute("data-state") == "asleep")
    visitor.at("session-restore").wait_for()


def pinned(box: Faraway, wanted: bool) -> bool:
    return box.host.json("show", "kept")["pinned"] is wanted


def until_back(visitor: Visitor) -> None:
    session = visitor.at("session")
    visitor.until("it is not back", lambda: session.get_attribute("data-link") == "online")
    visitor.ready()


@pytest.mark.requirement("M2")
def test_a_checkpoint_puts_it_to_sleep_and_waking_it_gives_the_same_shell(
    box: Faraway, visit: Visit
) -> None:
    session = started(box.host, "napping")
    visitor = visit("desk", **DESK)
    visitor.open("napping")
    visitor.enter("kept=still-here; echo be''fore")
    visitor.until_shown("before")

    open_checkpoints(visitor)
    verdict = visitor.at("can-move")
    verdict.wait_for()
    assert verdict.get_attribute("data-movable") == "true", verdict.inner_text()
    assert re.search(r"stands still for about \d+ ms", verdict.inner_text())
    visitor.at("checkpoint-note").fill("before the upgrade")
    axe.check(visitor, "checkpoints")
    visitor.at("checkpoint-make").click()
    progress = visitor.at("checkpoint-progress")
    failed = visitor.at("checkpoint-failed")
    visitor.until("no end", lambda: "Done" in progress.inner_text() or failed.count())
    assert not failed.count(), failed.inner_text()
    assert re.search(r"Done: .* stood still for \d+ ms", progress.inner_text())
    (made,) = box.host.json("checkpoints", "napping")
    assert (made["note"], made["actor"]) == ("before the upgrade", "desk")
    listed = visitor.at("checkpoint")
    assert "before the upgrade" in listed.inner_text() and "by desk" in listed.inner_text()
    visitor.shot("checkpointed")

    visitor.at("checkpoint-end").check()
    visitor.at("checkpoint-make").click()
    until_asleep(visitor)
    visitor.dismiss()
    assert box.host.json("show", "napping")["state"] == "asleep"
    facts = visitor.page.locator(".facts")
    visitor.until("no checkpoint", lambda: "by desk" in facts.inner_text())
    assert "before" in visitor.screen(), "its last screen is still there"
    axe.check(visitor, "asleep")
    visitor.at("session-restore").click()
    until_back(visitor)
    notices = visitor.at("toast")
    visitor.until("not said", lambda: "napping is awake" in " ".join(notices.all_inner_texts()))
    assert notices.count() == 1, notices.all_inner_texts()
    visitor.until_shown("before")
    visitor.enter("echo $kept in $((1 + 1))")
    visitor.until_shown("still-here in 2")
    woken = box.host.json("show", "napping")
    assert (woken["id"], woken["epoch"]) == (session, 2)
    timeline = visitor.at("tab-timeline")
    timeline.click()
    visitor.until(
        "the timeline has no restore",
        lambda: "restored the session" in visitor.page.locator("#panel-body").inner_text(),
    )
    visitor.shot("awake")


@pytest.mark.requirement("M2")
def test_a_page_opened_while_it_sleeps_follows_whoever_wakes_it(box: Faraway, visit: Visit) -> None:
    started(box.host, "dozing")
    put_to_sleep(box.host, "dozing")
    visitor = visit("hand", **PHONE)
    visitor.overview()
    card = visitor.card("dozing")
    visitor.until("it is not listed", lambda: card.get_attribute("data-state") == "asleep")
    axe.check(visitor, "overview-asleep")
    card.click()
    until_asleep(visitor)
    axe.check(visitor, "asleep-opened")
    restored(box.host, "dozing")
    until_back(visitor)
    put_to_sleep(box.host, "dozing")
    until_asleep(visitor)
    shown = visitor.at("session-restore").bounding_box()
    dock = visitor.page.locator(".dock").bounding_box()
    assert shown and dock, "both are drawn"
    assert shown["y"] + shown["height"] <= dock["y"] + dock["height"], "what wakes it is in view"
    visitor.shot("asleep-in-view")


@pytest.mark.requirement("M2")
def test_what_is_woken_at_once_is_still_found_at_its_relay(box: Faraway, visit: Visit) -> None:
    """A session that ended is withdrawn from its relays a little later; by then this one lives."""
    started(box.host, "hasty")
    there_and_back(box.host, "hasty")
    withdrawn = time.monotonic() + LAST_WORDS_S + 1
    visitor = visit("hasty", **DESK)
    visitor.overview()
    visitor.until("time stands still", lambda: time.monotonic() > withdrawn)
    visitor.open("hasty")
    visitor.enter("echo i''s here")
    visitor.until_shown("is here")


@pytest.mark.requirement("M9")
def test_a_session_is_kept_and_no_longer_from_its_menu(box: Faraway, visit: Visit) -> None:
    box.host.shell("kept")
    visitor = visit("keeper", **DESK)
    visitor.open("kept")
    for wanted in (True, False):
        visitor.at("session-menu").click()
        act = visitor.at("session-pin")
        assert act.inner_text().startswith("Keep it" if wanted else "Stop keeping it")
        visitor.shot("menu")
        act.click()
        visitor.until("not so", partial(pinned, box, wanted))


def test_a_device_that_may_only_watch_is_offered_nothing_that_it_may_not(
    box: Faraway, visit: Visit
) -> None:
    started(box.host, "resting")
    put_to_sleep(box.host, "resting")
    visitor = visit("watcher", join=False, **DESK)
    visitor.join(box.link(role="read"))
    visitor.overview()
    visitor.card("resting").click()
    facts = visitor.page.locator(".facts")
    visitor.until("not how", lambda: "hold restore resting" in facts.inner_text())
    assert not visitor.at("session-restore").count()
