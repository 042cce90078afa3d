"""Abandoned sessions are reclaimed, and those in use are left alone (M9). What is evicted and wakes
again needs checkpoints: privileged/test_evicting.py."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from process.commanding import Hold
from process.recorded import add_actor, log
from process.terminals import Terminal
from process.waiting import until

SOON = "idle_plain_s = 1\nidle_contained_s = 1\nidle_movable_s = 1\nidle_warning_s = 1\n"


def host(home: Hold, *settings: str) -> Hold:
    Path(home.home, "config.toml").write_text("\n".join(['level = "plain"', *settings]) + "\n")
    home.ok("up", "-d")
    return home


@pytest.fixture
def hold(fresh_home: Hold) -> Hold:
    """Sessions are idle after a second, and nothing is done about it."""
    return host(fresh_home, SOON)


@pytest.fixture
def ending(fresh_home: Hold) -> Hold:
    """And ended after another one."""
    return host(fresh_home, SOON, "idle_end = true")


def dry_run(hold: Hold) -> dict[str, dict[str, Any]]:
    answer = hold.json("reap", "--dry-run")
    assert answer["dry_run"] is True and not any(each["reaped"] for each in answer["sessions"])
    return {each["name"]: each for each in answer["sessions"]}


@pytest.mark.requirement("M9")
def test_a_dry_run_names_idle_sessions_and_leaves_them_alone(hold: Hold) -> None:
    session = hold.shell("forgotten")
    found = until("it is never idle", lambda: dry_run(hold).get("forgotten"))
    assert (found["id"], found["level"], found["action"]) == (session, "plain", "keep")
    assert "idle for" in found["why"] and "`idle_end` in config.toml" in found["why"]
    assert found["idle_since"] <= time.time() - 1
    assert hold.json("reap")["sessions"][0]["reaped"] is False
    assert hold.json("show", session)["state"] == "prompt"
    said = hold.ok("reap", "--dry-run")
    assert "forgotten" in said and "none" in said
    assert not [each for each in log(hold, session) if each["kind"].startswith("reap")]


@pytest.mark.requirement("M9")
def test_what_is_in_use_is_not_idle(hold: Hold, tmp_path: Path) -> None:
    hold.shell("forgotten")
    hold.shell("background")
    hold.ok("exec", "background", "--", "sleep 999 &")
    hold.shell("foreground")
    hold.ok("send", "foreground", "--enter", "sleep 999")
    hold.shell("server")
    script = "import socket; s = socket.create_server(('127.0.0.1', 0)); input('serving ')"
    (tmp_path / "server.py").write_text(script)
    hold.ok("send", "server", "--enter", f"python3 {tmp_path}/server.py")
    hold.ok("wait", "server", "--for", "text:serving", "--timeout", "20")
    hold.shell("waiting")
    hold.ok("send", "waiting", "--enter", "read answer")
    hold.shell("attached")
    with closing(Terminal(hold, "attach", "--observe", "attached")):
        hold.attached("attached")
        hold.ok("wait", "waiting", "--for", "input", "--timeout", "20")
        hold.shell("halted")
        hold.ok("halt", "halted")
        until("nothing is idle", lambda: {"forgotten", "waiting"} <= set(dry_run(hold)))
        # As old as these two, and in use: each was there before them.
        hold.shell("last")
        until("the last is not idle", lambda: "last" in dry_run(hold))
        assert set(dry_run(hold)) == {"forgotten", "waiting", "last"}
    until("nobody is attached", lambda: "attached" in dry_run(hold))
    hold.ok("exec", "background", "--", "kill %1; wait")
    until("nothing works there", lambda: "background" in dry_run(hold))


@pytest.mark.requirement("M9")
def test_a_pinned_session_stays_and_the_record_says_who_pinned_it(hold: Hold) -> None:
    add_actor(hold, "bot")
    add_actor(hold, "reader", "read")
    session = hold.shell("kept")
    hold.shell("other")
    hold.fails("not_permitted", "--as", "reader", "pin", "kept")
    assert hold.json("--as", "bot", "pin", "kept")["pinned"] is True
    assert hold.json("show", "kept")["pinned"] is True
    assert "is pinned" in hold.ok("pin", "kept"), "again is no change"
    hold.ok("daemon", "restart")
    assert hold.json("show", "kept")["pinned"] is True, "whoever serves it"
    until("the other is not idle", lambda: "other" in dry_run(hold))
    assert "kept" not in dry_run(hold)
    assert hold.json("unpin", "kept")["pinned"] is False
    until("it is pinned still", lambda: "kept" in dry_run(hold))
    pinned = [each for each in log(hold, session) if each["kind"] == "pinned"]
    assert [each["body"]["pinned"] for each in pinned] == [True, False]
    assert pinned[0]["actor"] == hold.json("actor", "show", "bot")["id"]


@pytest.mark.requirement("M9")
def test_where_a_setting_says_so_it_warns_then_ends_and_says_by_whom(ending: Hold) -> None:
    hold = ending
    session = hold.shell("forgotten")
    watching = hold.start("watch", "forgotten", "--json")
    assert watching.stdout is not None
    try:
        told = [json.loads(line) for line in watching.stdout]
    finally:
        watching.kill()
        watching.communicate()
    steps = [each for each in told if "due_at" in each]
    assert [each["step"] for each in steps] == ["warned", "reaping"]
    assert steps[0]["due_at"] > steps[0]["at"] and steps[0]["action"] == "end"
    assert hold.json("show", session)["state"] == "ended"
    kinds = [each["kind"] for each in log(hold, session)]
    order = [kinds.index(kind) for kind in ("reap_warned", "reaped", "end_asked", "ended")]
    assert order == sorted(order)
    by = {each["kind"]: each["actor"] for each in log(hold, session)}
    assert by["reaped"] == by["reap_warned"] == by["end_asked"] == ""
    assert "had it ended: idle for" in hold.ok("log", session)
    assert 'holdfast_reaped_total{action="end"} 1' in hold.ok("metrics")
    assert hold.json("verify", session)["verdict"] == "intact"


@pytest.mark.requirement("M9")
def test_coming_back_after_the_warning_keeps_it(fresh_home: Hold) -> None:
    settings = SOON.replace("idle_warning_s = 1", "idle_warning_s = 6")
    hold = host(fresh_home, settings, "idle_end = true")
    session = hold.shell("work")
    until("no warning", lambda: "reap_warned" in _kinds(hold, session))
    hold.ok("pin", "work")
    deadline = time.monotonic() + 8
    hold.shell("other")
    until("the other is not ended", lambda: hold.json("show", "other")["state"] == "ended")
    assert time.monotonic() > deadline - 8
    assert hold.json("show", "work")["state"] == "prompt"
    assert "reaped" not in _kinds(hold, session)


@pytest.mark.requirement("M9")
def test_hold_reap_ends_at_once_for_whoever_asks_and_needs_the_host(fresh_home: Hold) -> None:
    settings = SOON.replace("idle_warning_s = 1", "idle_warning_s = 3600")
    hold = host(fresh_home, settings, "idle_end = true")
    add_actor(hold, "bot")
    session = hold.shell("forgotten")
    hold.fails("not_permitted", "--as", "bot", "reap")
    until("it is never idle", lambda: "forgotten" in dry_run(hold))
    (done,) = hold.json("reap")["sessions"]
    assert (done["id"], done["action"], done["reaped"]) == (session, "end", True)
    until("it did not end", lambda: hold.json("show", session)["state"] == "ended")
    (entry,) = [each for each in log(hold, session) if each["kind"] == "reaped"]
    assert entry["actor"] not in ("", None)


@pytest.mark.requirement("M9")
def test_metrics_have_the_population(hold: Hold) -> None:
    hold.shell("one")
    hold.shell("two")
    hold.ok("pin", "two")

    def populated() -> bool:
        text = hold.ok("metrics")
        return (
            'holdfast_resident_sessions{kind="idle"} 2' in text
            and 'holdfast_resident_sessions{kind="due"} 1' in text
            and 'holdfast_resident_sessions{kind="pinned"} 1' in text
        )

    until("the population is another", populated)


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("setting", ["idle_plain_s = -1", "idle_resident_max = -1"])
def test_a_setting_that_makes_no_sense_is_refused(fresh_home: Hold, setting: str) -> None:
    Path(fresh_home.home, "config.toml").write_text(setting + "\n")
    assert "0 or more" in fresh_home("up", "-d").stderr


def _kinds(hold: Hold, session: str) -> Iterator[str]:
    return iter([each["kind"] for each in log(hold, session)])
