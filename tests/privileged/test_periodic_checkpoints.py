"""Checkpoints that nobody asks for one by one: in an interval, when a session falls idle, and
before the host stops (M2)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from privileged.checkpointing import entries, movable_host, said, started
from process.commanding import Hold
from process.recorded import add_actor
from process.waiting import until


@pytest.fixture
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def checkpointed(hold: Hold, name: str) -> int:
    return len(entries(hold, name, "checkpointed"))


@pytest.mark.requirement("M2")
def test_it_is_checkpointed_in_its_interval_while_something_happens(hold: Hold) -> None:
    words = ("--level", "movable", "--checkpoint-every", "5s", "--", "bash", "--norc")
    hold.ok("run", "-d", "--name", "work", *words)
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    until("there is no first one", lambda: checkpointed(hold, "work") == 1)
    (entry,) = entries(hold, "work", "checkpointed")
    assert (entry["actor"], entry["body"]["note"]) == ("", "periodic")
    for count in (2, 3, 4):
        said(hold, "work", f"SEEN={count}")
        until(f"there is no number {count}", lambda: checkpointed(hold, "work") == count)  # noqa: B023
    assert len(hold.json("checkpoints", "work")) == 2, "the latest two are kept"
    # Nothing happens any longer, for more than two intervals.
    over = time.monotonic() + 12
    until("time stands still", lambda: time.monotonic() > over)
    assert checkpointed(hold, "work") == 4
    assert said(hold, "work", "echo $SEEN") == "4"


@pytest.mark.requirement("M2")
def test_falling_idle_is_a_reason_for_one(hold: Hold) -> None:
    words = ("--level", "movable", "--checkpoint-every", "1h", "--", "bash", "--norc")
    hold.ok("run", "-d", "--name", "work", *words)
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    said(hold, "work", "KEPT=yes")
    until("it fell idle, and there is none", lambda: checkpointed(hold, "work") == 1)


def test_an_interval_needs_a_movable_session_and_some_seconds(hold: Hold) -> None:
    hold.fails("level_unavailable", "run", "-d", "--level", "plain", "--checkpoint-every", "5m")
    hold.fails("invalid_argument", "run", "-d", "--level", "movable", "--checkpoint-every", "1s")


@pytest.mark.requirement("M2")
def test_a_host_that_is_stopped_for_a_shutdown_brings_its_sessions_back(hold: Hold) -> None:
    session = started(hold, "work")
    pid = said(hold, "work", "export KEPT=yes; echo $$")
    hold.ok("run", "-d", "--name", "plain", "--level", "plain", "--", "sleep", "999")
    done = hold("down", "--checkpoint")
    assert "asleep until `hold up`: work" in done.stdout
    assert "still running: plain" in done.stdout
    assert done.returncode != 0 and "plain was not checkpointed" in done.stderr

    hold.ok("up", "-d")
    until("it does not come back", lambda: hold.json("show", "work")["state"] == "prompt")
    woken = hold.json("show", "work")
    assert (woken["id"], woken["epoch"]) == (session, 2)
    assert said(hold, "work", "echo $KEPT $$") == f"yes {pid}"
    assert hold.json("show", "plain")["state"] == "working"


def test_ending_and_checkpointing_exclude_each_other(hold: Hold) -> None:
    add_actor(hold, "bot")
    hold.fails("invalid_argument", "down", "--checkpoint", "--end-sessions")
    hold.fails("not_permitted", "--as", "bot", "down", "--checkpoint")
