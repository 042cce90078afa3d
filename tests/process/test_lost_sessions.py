"""What is lost is said: which session, why, what was in flight, who follows it (A9, M6, N9)."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.mcp.refusing import refused
from holdfast.model.errors import SessionLost
from holdfast.sdk import blocking
from holdfast.sdk import events as sdk_events
from process.commanding import PATIENCE_S, Hold, keepers
from process.recorded import add_actor, host_dies, journal_of
from process.terminals import Terminal


def keepers_die(hold: Hold) -> None:
    """Those of all sessions, beside a daemon that lives and hears of it."""
    for pid in keepers(hold.home):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while {each["state"] for each in hold.json("ls")} != {"lost"}:
        assert time.monotonic() < deadline, "a session whose keeper died is not lost"


def running(hold: Hold, name: str, command: str) -> None:
    """The session's shell has begun this command."""
    hold.ok("send", name, "--enter", command)
    deadline = time.monotonic() + PATIENCE_S
    while (hold.json("show", name)["last_command"] or {}).get("text") != command:
        assert time.monotonic() < deadline, f"{command} does not begin"


def one_lost(hold: Hold, *words: str) -> dict[str, Any]:
    (found,) = [each for each in hold.json(*words, "ls") if each["state"] == "lost"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def hold(fresh_home: Hold) -> Hold:
    fresh_home.ok("up", "-d")
    return fresh_home


@pytest.mark.requirement("M6", "A9")
@pytest.mark.parametrize("daemon_too", [False, True])
def test_a_lost_session_is_listed_with_what_was_in_flight_until_acknowledged(
    hold: Hold, daemon_too: bool
) -> None:
    add_actor(hold, "bot")
    session = hold.shell("work")
    hold.shell("other")
    hold.ok("exec", "work", "--", "true")
    running(hold, "work", "sleep 999")
    hold.ok("--as", "bot", "send", "other", "rm -rf half")
    if daemon_too:
        host_dies(hold)
        hold.ok("up", "-d")
    else:
        keepers_die(hold)

    lost = {each["name"]: each for each in hold.json("ls")}
    assert {each["state"] for each in lost.values()} == {"lost"}
    work, other = lost["work"], lost["other"]
    assert work["ending"]["cause"]["kind"] == "keeper_lost"
    assert (work["ending"]["code"], work["ending"]["signal"]) == (None, None)
    assert work["in_flight"]["command"]["text"] == "sleep 999"
    assert work["in_flight"]["command"]["status"] is None
    who = work["in_flight"]["command"]["actor"]
    assert [(each["actor"], each["text"]) for each in work["in_flight"]["inputs"]] == [
        (who, "sleep 999\r")
    ]
    assert other["in_flight"]["command"] is None
    assert other["in_flight"]["unsubmitted"] == "rm -rf half"
    assert other["in_flight"]["unsubmitted_by"] == ["bot"]
    said = hold.ok("ls")
    assert f"running: sleep 999 by {who}" in said
    assert 'typed and not submitted, by bot: "rm -rf half"' in said
    assert said.count("whether any of this took effect is not known") == 2
    shown = hold.ok("show", "work")
    assert "state     lost: its keeper died" in shown and "running: sleep 999" in shown

    # It stays listed whoever starts or asks, until somebody that could end it has acknowledged it.
    hold.fails("not_permitted", "--as", "bot", "acknowledge", "work")
    assert hold.json("--as", "bot", "acknowledge", "--all") == []
    hold.ok("daemon", "restart")
    assert {each["name"] for each in hold.json("ls")} == {"work", "other"}
    (known,) = hold.json("acknowledge", "work")
    assert (known["id"], known["acknowledged_by"]) == (session, who)
    first = known["acknowledged_at"]
    assert hold.json("acknowledge", session)[0]["acknowledged_at"] == first
    assert one_lost(hold)["name"] == "other"
    hold.ok("daemon", "restart")
    assert one_lost(hold)["name"] == "other"
    assert hold.ok("acknowledge", "--all") == "acknowledged 1 lost session\n"
    assert hold.json("ls") == []
    everything = {each["name"]: each for each in hold.json("ls", "--all")}
    assert everything["work"]["acknowledged_by"] == who
    assert everything["work"]["state"] == "lost"
    assert f"acknowledged by {who}" in hold.ok("show", "work")


@pytest.mark.requirement("A9")
def test_only_what_was_lost_can_be_acknowledged(hold: Hold) -> None:
    hold.shell("living")
    hold.ok("run", "-d", "--name", "short", "--", "true")
    hold.ok("wait", "short", "--for", "exit")
    hold.fails("invalid_argument", "acknowledge", "living")
    hold.fails("invalid_argument", "acknowledge", "short")
    hold.fails("invalid_argument", "acknowledge")
    hold.fails("invalid_argument", "acknowledge", "living", "--all")


@pytest.mark.requirement("N9", "A9", "M2")
def test_after_a_reboot_the_host_is_what_was_lost(hold: Hold) -> None:
    session = hold.shell("work")
    add_actor(hold, "bot")
    hold.ok("exec", "work", "--", "true")
    host_key = Path(hold.home, "host.key").read_bytes()
    host_dies(hold)
    spec = journal_of(hold, session) / "spec.json"
    stored = json.loads(spec.read_text())
    assert stored["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    stored["boot_id"] = "the-boot-before"  # as this one will be after a reboot
    spec.write_text(json.dumps(stored))
    hold.ok("up", "-d")
    cause = one_lost(hold)["ending"]["cause"]
    assert (cause["kind"], cause["boot_id"], cause["checkpoint"]) == (
        "host_lost",
        "the-boot-before",
        "",
    )
    assert hold.json("status", "work")["cause"] == cause, "and the journal has it signed"
    assert "(host_lost, in boot the-boot-before, without a checkpoint)" in hold.ok("status", "work")
    # Identity, record and rights are what they were.
    assert Path(hold.home, "host.key").read_bytes() == host_key
    assert hold.json("show", session)["id"] == session
    assert hold.json("verify", session)["verdict"] == "intact"
    assert "true" in hold.ok("log", session)
    assert hold.json("actor", "show", "bot")["envelopes"][0]["role"] == "execute"


@pytest.mark.requirement("A9")
def test_a_tombstone_of_an_older_version_is_of_a_lost_session_too(hold: Hold) -> None:
    session = hold.shell("work")
    host_dies(hold)
    hold.ok("up", "-d")
    path = journal_of(hold, session) / "tombstone.json"
    stored = json.loads(path.read_text())
    stored["info"]["state"] = "ended"
    stored["info"]["ending"] = {"code": None, "signal": None, "lost": "its host died"}
    path.write_text(json.dumps(stored))
    hold.ok("daemon", "restart")
    shown = hold.json("show", session)
    assert (shown["state"], shown["ending"]["cause"]["kind"]) == ("lost", "host_lost")


@pytest.mark.requirement("N9", "A9")
def test_whoever_watches_is_attached_or_waits_learns_that_it_was_lost(hold: Hold) -> None:
    hold.shell("work")
    watching = hold.start("watch", "work", "--json")
    waiting = hold.start("wait", "work", "--for", "exit", "--status")
    terminal = Terminal(hold, "attach", "work")
    try:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["state"] == "prompt"
        terminal.until_shown("attached to")
        running_there = hold.start("exec", "work", "--", "sleep 999")
        deadline = time.monotonic() + PATIENCE_S
        while (hold.json("show", "work")["last_command"] or {}).get("text") != "sleep 999":
            assert time.monotonic() < deadline
        keepers_die(hold)
        told = [json.loads(line) for line in watching.stdout][-1]
        assert (told["state"], told["ending"]["cause"]["kind"]) == ("lost", "keeper_lost")
        terminal.until(b"[work lost: its keeper died]")
        assert terminal.wait() == 72
        _, said = waiting.communicate(timeout=PATIENCE_S)
        assert (waiting.returncode, b"(session_lost)" in said) == (72, True), said
        _, said = running_there.communicate(timeout=PATIENCE_S)
        assert (running_there.returncode, b"(session_lost)" in said) == (72, True), said
    finally:
        terminal.close()
        for process in (watching, waiting):
            process.kill()
            process.communicate()


@pytest.mark.requirement("A9")
def test_every_verb_for_a_live_session_says_that_it_was_lost(hold: Hold) -> None:
    hold.shell("work")
    host_dies(hold)
    hold.ok("up", "-d")
    for words in (
        ("send", "work", "x"),
        ("exec", "work", "--", "true"),
        ("keys", "work", "Enter"),
        ("end", "work"),
        ("halt", "work"),
        ("seize", "work"),
        ("graph", "work"),
        ("wait", "work", "--for", "exit"),
        ("wait", "work", "--for", "prompt"),
        ("wait", "work", "--for", "text:x"),
    ):
        assert "was lost" in hold.fails("session_lost", *words), words
        assert hold(*words).returncode == 72, words


@pytest.mark.requirement("A9")
def test_the_sdk_and_an_agents_tools_tell_a_loss_from_an_end(hold: Hold) -> None:
    old = hold.shell("work")
    with blocking.connect(f"{hold.home}/run/hold.sock") as before:
        session = before.session("work")
        events = session.events()
        assert isinstance(next(events), sdk_events.StateChanged)
        host_dies(hold)
        hold.ok("up", "-d")
        told = next(each for each in events if isinstance(each, sdk_events.Ended))
        assert isinstance(told, sdk_events.Lost)
    new = hold.ok("run", "-d", "--name", "next", "--after", old, "--", "cat").strip()
    with blocking.connect(f"{hold.home}/run/hold.sock") as host:
        assert {str(each.id): each.state for each in host.sessions(lost=True)}[old] == "lost"
        assert old not in {each.id for each in host.sessions()}
        with pytest.raises(SessionLost) as waited:
            host.session(old).wait_for(ended=True)
        with pytest.raises(SessionLost) as typed:
            host.session(old).type("x")
        for raised in (waited.value, typed.value):
            assert raised.ending is not None and raised.ending.cause is not None
            assert (raised.ending.cause.kind, raised.ending.successor) == ("keeper_lost", new)
        answer = refused(typed.value)["refused"]
        assert (answer["code"], answer["ending"]["successor"]) == ("session_lost", new)
        assert [each.id for each in host.acknowledge(old)] == [old]


@pytest.mark.requirement("A9", "N9")
def test_the_old_id_of_a_lost_session_leads_to_its_successor(hold: Hold) -> None:
    old = hold.shell("work")
    host_dies(hold)
    hold.ok("up", "-d")
    new = hold.ok("run", "-d", "--name", "next", "--after", old, "--", "cat").strip()
    hold.ok("run", "-d", "--name", "third", "--after", old, "--", "cat")
    assert hold.json("show", old)["id"] == old, "the record is still its own"
    assert hold.json("show", old)["ending"]["successor"] == new, "the first one is"
    assert new in hold.fails("session_lost", "send", old, "not for another session")
    with closing(Terminal(hold, "attach", old)) as terminal:
        terminal.until(f"was lost: its keeper died; attaching to its successor, {new}".encode())
        terminal.until_shown("attached to next")
    hold.ok("daemon", "restart")
    assert hold.json("show", old)["ending"]["successor"] == new


@pytest.mark.requirement("A9")
def test_the_id_of_an_ended_session_leads_nowhere_else(hold: Hold) -> None:
    old = hold.ok("run", "-d", "--name", "short", "--", "true").strip()
    hold.ok("wait", "short", "--for", "exit")
    hold.ok("run", "-d", "--name", "next", "--after", old, "--", "cat")
    assert hold.json("show", old)["ending"] == {
        "code": 0,
        "signal": None,
        "lost": None,
        "cause": None,
        "successor": "",
        "checkpoint": "",
        "moved_to": "",
    }
    hold.fails("session_ended", "send", old, "x")


@pytest.mark.requirement("M9")
def test_a_lost_session_is_pruned_only_after_it_was_acknowledged(hold: Hold) -> None:
    session = hold.shell("work")
    host_dies(hold)
    Path(hold.home, "config.toml").write_text("retention_days = 2\n")
    hold.ok("up", "-d")
    path = journal_of(hold, session) / "tombstone.json"
    stored = json.loads(path.read_text())
    stored["info"]["ended_at"] -= 10 * 86400
    path.write_text(json.dumps(stored))
    assert hold.json("prune")["sessions"] == []
    hold.ok("daemon", "restart")  # it reads the time again
    hold.ok("acknowledge", "work")
    assert [each["id"] for each in hold.json("prune")["sessions"]] == [session]
    assert sorted(os.listdir(path.parent)) == ["pruned.json", "tombstone.json"]
    shown = hold.json("show", session)
    assert (shown["state"], shown["pruned_at"] is not None) == ("lost", True)


@pytest.mark.requirement("M6", "A9")
def test_a_restarted_machine_says_that_sessions_were_lost_before_its_host_is_up(
    hold: Hold,
) -> None:
    hold.shell("work")
    hold.ok("run", "-d", "--name", "short", "--", "true")
    hold.ok("wait", "short", "--for", "exit")
    host_dies(hold)
    for socket in Path(hold.home, "run", "keepers").iterdir():  # a tmpfs, in general
        socket.unlink()
    said = hold.fails("host_down", "ls")
    assert "1 session was lost with the last one" in said and "`hold up -d`" in said
    hold.ok("up", "-d")
    assert one_lost(hold)["name"] == "work"
