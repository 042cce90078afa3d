"""Idle sessions are evicted to disk and wake when somebody needs them (M9)."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    said,
    skip_unless_possible,
    started,
    until_screen,
)
from process.commanding import Hold
from process.forwarding import Forward
from process.reaching import Faraway
from process.recorded import add_actor
from process.terminals import Terminal
from process.waiting import until

SOON = "idle_movable_s = 1\nidle_contained_s = 1\nidle_warning_s = 1\n"


@pytest.fixture
def fresh_home() -> Iterator[Hold]:
    skip_unless_possible()
    with Hold() as hold:
        yield hold


@pytest.fixture
def hold(fresh_home: Hold) -> Hold:
    Path(fresh_home.home, "config.toml").write_text(SOON)
    fresh_home.ok("up", "-d")
    return fresh_home


def asleep(hold: Hold, name: str) -> bool:
    return bool(hold.json("show", name)["state"] == "asleep")


@pytest.mark.requirement("M9")
def test_an_idle_session_is_evicted_stays_listed_and_wakes_on_exec(hold: Hold) -> None:
    session = started(hold, "work")
    assert said(hold, "work", "export KEPT=yes; echo $$") != ""
    pid = said(hold, "work", "echo $$")
    until("it is never evicted", lambda: asleep(hold, "work"))
    (listed,) = hold.json("ls")
    assert (listed["id"], listed["state"], listed["pid"]) == (session, "asleep", 0)
    assert "asleep" in hold.ok("ls")
    assert 'holdfast_reaped_total{action="evict"} 1' in hold.ok("metrics")
    (entry,) = entries(hold, "work", "reaped")
    assert (entry["actor"], entry["body"]["action"]) == ("", "evict")

    assert said(hold, "work", "echo $KEPT $$") == f"yes {pid}"
    woken = hold.json("show", "work")
    assert (woken["id"], woken["epoch"]) == (session, 2)
    assert hold.json("verify", session)["verdict"] == "intact"


@pytest.mark.requirement("M9")
def test_attaching_wakes_it_and_whoever_is_attached_keeps_it(hold: Hold) -> None:
    started(hold, "work")
    said(hold, "work", "echo before-it-slept")
    until("it is never evicted", lambda: asleep(hold, "work"))
    with contextlib.closing(Terminal(hold, "attach", "--scrollback", "work")) as terminal:
        terminal.until_shown("attached to")
        terminal.until_shown("before-it-slept")
        idle_until = time.monotonic() + 4
        started(hold, "other")
        until("the other is not evicted", lambda: asleep(hold, "other"))
        until("time stands still", lambda: time.monotonic() > idle_until)
        assert not asleep(hold, "work")
    until("it does not sleep again", lambda: asleep(hold, "work"))


@pytest.mark.requirement("M9")
@pytest.mark.parametrize(
    "words",
    [
        ("send", "work", "--enter", "echo w''oken"),
        ("keys", "work", *"echo", "Space", *"w''oken", "Enter"),
        ("submit", "work", "--intent", "see whether it wakes", "--", "echo w''oken"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_sent_to_it_wakes_it(hold: Hold, words: tuple[str, ...]) -> None:
    started(hold, "work")
    said(hold, "work", "true")
    until("it is never evicted", lambda: asleep(hold, "work"))
    done = hold(*words)
    assert done.returncode == 0, done
    until_screen(hold, "work", r"(?m)^woken")
    assert len(entries(hold, "work", "restored")) == 1


@pytest.mark.requirement("M9")
def test_it_wakes_through_a_relay(tmp_path: Path) -> None:
    """By its name on a machine that was joined, and by nothing but its id."""
    skip_unless_possible()
    faraway = Faraway(more=("--all", "--delegations", "2"))
    stranger = Hold()
    try:
        with Path(faraway.host.home, "config.toml").open("a") as settings:
            settings.write(SOON)
        faraway.host.ok("daemon", "restart")
        faraway.until_reached(2)
        session = started(faraway.host, "work")
        key = stranger.ok("actor", "key", "bot").strip()
        chain = faraway.client.ok("--on", "box", "delegate", key, "--role", "execute").strip()
        stranger.env |= {"HOLDFAST_AS": "bot", "HOLDFAST_GRANT": chain}
        address = f"{session}@{faraway.relay.url}"
        stranger.ok("screen", address)
        until("it is never evicted", lambda: asleep(faraway.host, session))
        assert faraway.client.ok("exec", "box/work", "--", "echo near").strip() == "near"
        until("it is not evicted again", lambda: asleep(faraway.host, session))
        assert stranger.ok("exec", address, "--", "echo far").strip() == "far"
        until("it is not evicted for the third time", lambda: asleep(faraway.host, session))
        stranger.ok("send", address, "--enter", "echo f''arther")
        until_screen(faraway.host, session, r"(?m)^farther")
    finally:
        stranger.close()
        faraway.close()


@pytest.mark.requirement("M9")
def test_what_somebody_put_to_sleep_does_not_wake_by_itself(hold: Hold) -> None:
    started(hold, "work")
    hold.ok("checkpoint", "work", "--end")
    hold.fails("session_asleep", "exec", "work", "--", "true")
    hold.ok("restore", "work")


@pytest.mark.requirement("M9")
def test_who_may_not_see_it_does_not_wake_it(hold: Hold) -> None:
    add_actor(hold, "stranger", "read")
    started(hold, "work")
    hold.ok("revoke", "stranger", "--all")
    until("it is never evicted", lambda: asleep(hold, "work"))
    hold("--as", "stranger", "exec", "work", "--", "true")
    assert asleep(hold, "work")


@pytest.mark.requirement("M9")
def test_beyond_the_bound_the_one_used_longest_ago_sleeps(fresh_home: Hold) -> None:
    settings = "idle_movable_s = 3600\nidle_warning_s = 1\nidle_resident_max = 1\n"
    Path(fresh_home.home, "config.toml").write_text(settings)
    fresh_home.ok("up", "-d")
    started(fresh_home, "first")
    started(fresh_home, "second")
    until("none is evicted", lambda: asleep(fresh_home, "first"))
    assert not asleep(fresh_home, "second")
    (entry,) = entries(fresh_home, "first", "reaped")
    assert "more than 1 idle sessions are resident" in entry["body"]["why"]


@pytest.mark.requirement("M2", "M9")
def test_whoever_watches_hears_that_it_lives_again_and_the_numbers_have_it(hold: Hold) -> None:
    session = started(hold, "work")
    said(hold, "work", "true")
    until("it is never evicted", lambda: asleep(hold, "work"))
    watching = hold.start("watch", "--json")
    assert watching.stdout is not None
    try:
        started(hold, "other")
        said(hold, "work", "true")
        told = next(each for line in watching.stdout if "restore_ms" in (each := json.loads(line)))
    finally:
        watching.kill()
        watching.communicate()
    assert (told["session"], told["epoch_before"], told["epoch"]) == (session, 1, 2)
    assert told["bytes"] > 0 and told["restore_ms"] > 0 and told["downtime_s"] > 0
    (entry,) = entries(hold, "work", "restored")
    assert entry["body"]["size"] == told["bytes"]
    numbers = hold.ok("metrics")
    assert 'holdfast_restores_total{kind="memory"} 1' in numbers
    assert f"holdfast_restored_bytes_total {told['bytes']}" in numbers


@pytest.mark.requirement("M9")
def test_a_connection_to_its_forwarded_port_wakes_it(hold: Hold) -> None:
    """Whether a program of it serves that port is found when it is awake."""
    started(hold, "work")
    # It listens before the session is asleep: on a slow machine that takes a program longer than
    # idleness takes here.
    with Forward(hold, "work", "9:0") as forward:
        until("it is never evicted", lambda: asleep(hold, "work"))
        woken = len(entries(hold, "work", "restored"))
        assert forward.process.poll() is None, "it goes on"
        with contextlib.suppress(OSError), forward.connect() as to:
            to.settimeout(20)
            to.recv(1)
        until("it does not wake", lambda: len(entries(hold, "work", "restored")) > woken)
