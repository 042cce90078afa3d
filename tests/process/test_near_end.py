"""A host dies without a checkpoint: what its disk still knows of each session, and the successor
that begins with it (M2, M6, A9)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.sdk import blocking
from process.commanding import PATIENCE_S, Hold
from process.recorded import add_actor, journal_of, log, near_end, reboots
from process.terminals import Terminal

HOLDS_TOUCH = '[[rule]]\nname = "two"\ncommands = "touch"\nthen = "hold"\nreason = "two people"\n'
SECRET = "correct-horse-battery"  # of one variable; nobody else knows it


@pytest.fixture
def hold(fresh_home: Hold) -> Iterator[Hold]:
    fresh_home.env["STAGE"] = SECRET
    fresh_home.ok("up", "-d")
    yield fresh_home


def moved_shell(hold: Hold, tmp_path: Path, *run: str) -> str:
    """A shell that is somewhere else than at its start, in another environment, with a job."""
    started, there = tmp_path / "started", tmp_path / "there"
    started.mkdir()
    there.mkdir()
    words = ("run", "-d", "--name", "work", "--cwd", str(started), *run, "--", "bash", "--norc")
    session = hold.ok(*words).strip()
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    hold.ok("exec", "work", "--", f"cd {there}")
    hold.ok("exec", "work", "--", "export TARGET=prod; unset STAGE; NOT_EXPORTED=1")
    hold.ok("exec", "work", "--", "sleep 888 &")
    return session


def runs(hold: Hold, name: str, command: str) -> None:
    hold.ok("send", name, "--enter", command)
    deadline = time.monotonic() + PATIENCE_S
    while (hold.json("show", name)["last_command"] or {}).get("text") != command:
        assert time.monotonic() < deadline, f"{command} does not begin"


@pytest.mark.requirement("M2", "M6")
def test_after_a_reboot_a_session_shows_how_it_last_was(hold: Hold, tmp_path: Path) -> None:
    session = moved_shell(hold, tmp_path)
    there = str(tmp_path / "there")
    add_actor(hold, "bot")
    with closing(Terminal(hold, "attach", "work")) as terminal:
        terminal.until_shown("attached to")
        marker = "printf 'last-%s\\n' words; sleep 999"
        runs(hold, "work", marker)
        known = near_end(
            hold, session, lambda near: b"last-words" in near.output and len(near.known.present) > 0
        )
        assert known.known.cwd == there
        reboots(hold)

    (lost,) = hold.json("ls")
    assert (lost["state"], lost["ending"]["cause"]["kind"]) == ("lost", "host_lost")
    assert lost["in_flight"]["command"]["text"] == marker
    assert lost["in_flight"]["command"]["status"] is None
    last = lost["last_known"]
    assert (last["cwd"], lost["cwd"], last["state"]) == (there, there, "working")
    assert {"STAGE", "TARGET"} <= set(last["environment"])
    assert "NOT_EXPORTED" not in last["environment"]
    assert not [name for name in last["environment"] if name.startswith("HOLDFAST")]
    assert last["jobs"] == ["running sleep 888 &"]
    assert [each["client"] for each in last["present"]] == ["hold attach"]
    assert last["holder"] == lost["in_flight"]["command"]["actor"]

    said = hold.ok("ls")
    assert "lost with its host" in said and f"running: {marker}"[:60] in said
    assert "whether any of this took effect is not known" in said
    shown = hold.ok("show", "work")
    for part in ("lost with its host", f"working in {there}", "TARGET", "running sleep 888"):
        assert part in shown, shown
    assert "last-words" in hold.ok("tail", "work")
    assert "last-words" in hold.ok("screen", "work")
    assert "export TARGET=prod" in hold.ok("log", "work")


@pytest.mark.requirement("M6")
def test_what_waited_for_approval_is_named_and_was_not_done(hold: Hold, tmp_path: Path) -> None:
    hold.shell("work")
    rule = tmp_path / "two.toml"
    rule.write_text(HOLDS_TOUCH)
    hold.ok("policy", "set", "--session", "work", str(rule))
    made = tmp_path / "made"
    assert "waits for approval" in hold("send", "work", "--enter", f"touch {made}").stderr
    session = hold.json("show", "work")["id"]
    deadline = time.monotonic() + PATIENCE_S
    while not (waiting := hold.json("approvals")):
        assert time.monotonic() < deadline
    near_end(hold, session, lambda near: bool(near.known.held))
    reboots(hold)

    (lost,) = hold.json("ls")
    (held,) = lost["last_known"]["held"]
    assert (held["id"], held["text"]) == (waiting[0]["id"], f"touch {made}")
    assert f"waited for approval {held['id']}" in hold.ok("ls")
    revived = hold.json("revive", "work")
    assert any("it was not done" in each for each in revived["left_behind"])
    # The policy for that session alone holds in its successor.
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    assert "waits for approval" in hold("send", "work", "--enter", f"touch {made}").stderr
    while not hold.json("approvals"):
        assert time.monotonic() < deadline
    assert not made.exists()


@pytest.mark.requirement("M2", "A9")
def test_a_revived_session_begins_where_the_lost_one_was_and_runs_nothing_again(
    hold: Hold, tmp_path: Path
) -> None:
    old = moved_shell(hold, tmp_path, "--label", "blue", "--size", "91x27")
    there, ran = tmp_path / "there", tmp_path / "ran"
    add_actor(hold, "bot")
    hold.ok("revoke", "bot", "--all")
    hold.ok("grant", "bot", "read", "work")
    line = f"echo once >> {ran}; sleep 999"
    runs(hold, "work", line)
    near_end(hold, old, lambda near: near.environment is not None and "TARGET" in near.environment)
    reboots(hold)

    revived = hold.json("revive", "work")
    new = revived["id"]
    assert new != old and revived["predecessor"] == old and revived["name"] == "work"
    assert (revived["labels"], revived["cwd"]) == (["blue"], str(there))
    assert (revived["size"], revived["epoch"]) == ({"cols": 91, "rows": 27}, 1)
    assert (revived["running"], revived["run_again"]) == (line, False)
    left = "\n".join(revived["left_behind"])
    assert f"the command that ran: {line}"[:60] in left and "running sleep 888" in left
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    said = hold.ok("exec", "work", "--", "echo $TARGET/${STAGE-unset}/${NOT_EXPORTED-unset}; pwd")
    assert said.split() == ["prod/unset/unset", str(there)]
    assert hold.ok("exec", "work", "--", "echo $HOLDFAST_SESSION").strip() == new
    assert ran.read_text() == "once\n", "nothing is run again"

    # Lineage: the old id leads to it, its journal names it, both verify.
    assert hold.json("show", old)["ending"]["successor"] == new
    assert [each["id"] for each in hold.json("ls")] == [new], "the loss is acknowledged by it"
    assert hold.json("status", new)["predecessor"] == old
    assert hold.json("verify", new)["verdict"] == hold.json("verify", old)["verdict"] == "intact"
    (entry,) = [each for each in log(hold, new) if each["kind"] == "revived"]
    assert entry["body"]["predecessor"] == old and entry["body"]["envelopes"] == 1
    # What was granted for that session alone is granted here, and no more than that.
    assert hold.json("--as", "bot", "show", "work")["id"] == new
    hold.fails("not_permitted", "--as", "bot", "send", "work", "x")
    hold.fails("invalid_argument", "revive", old)
    hold.fails("invalid_argument", "revive", "work")


@pytest.mark.requirement("M6")
def test_run_again_enters_the_line_as_the_asker(hold: Hold, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    old = hold.shell("work")
    line = f"echo more >> {ran}; sleep 999"
    runs(hold, "work", line)
    near_end(
        hold, old, lambda near: near.last_command is not None and near.last_command.text == line
    )
    reboots(hold)
    helper = add_actor(hold, "helper", "admin")
    revived = hold.json("--as", "helper", "revive", "work", "--run-again")
    assert revived["run_again"] is True
    deadline = time.monotonic() + PATIENCE_S
    while ran.read_text() != "more\nmore\n":
        assert time.monotonic() < deadline, ran.read_text()
    (typed,) = [each for each in log(hold, "work") if each["kind"] == "input"]
    assert typed["actor"] == helper


@pytest.mark.requirement("M2")
def test_a_session_without_a_shell_is_started_anew_in_its_own_directory(
    hold: Hold, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = ("sh", "-c", "echo began in $PWD with $STAGE; exec sleep 999")
    old = hold.ok("run", "-d", "--name", "server", "--cwd", str(gone), "--", *words).strip()
    near_end(hold, old, lambda near: SECRET.encode() in near.output)
    reboots(hold)
    gone.rmdir()
    revived = hold.json("revive", "server")
    assert any(str(gone) in each and "is gone" in each for each in revived["left_behind"])
    hold.ok("wait", "server", "--for", f"text:began in .* with {SECRET}", "--timeout", "20")
    assert revived["argv"] == list(words)


@pytest.mark.requirement("A9")
def test_only_who_may_end_it_revives_a_session_and_only_a_lost_one(hold: Hold) -> None:
    add_actor(hold, "bot")  # execute: it may not end sessions
    hold.shell("work")
    hold.fails("invalid_argument", "revive", "work")
    hold.ok("run", "-d", "--name", "short", "--", "true")
    hold.ok("wait", "short", "--for", "exit")
    hold.fails("session_ended", "revive", "short")
    reboots(hold)
    hold.fails("not_permitted", "--as", "bot", "revive", "work")
    assert hold.json("show", "work")["ending"]["successor"] == ""
    hold.shell("work-2")
    hold.ok("rename", "work-2", "work")
    lost = hold.json("ls")
    (old,) = [each["id"] for each in lost if each["state"] == "lost"]
    hold.fails("name_taken", "revive", old)
    hold.ok("rename", "work", "other")
    hold.ok("revive", old)


@pytest.mark.requirement("M2", "M6")
def test_a_keepers_death_leaves_the_same_to_be_revived(hold: Hold, tmp_path: Path) -> None:
    old = moved_shell(hold, tmp_path)
    near_end(hold, old, lambda near: near.known.jobs != ())
    os.kill(hold.json("show", "work")["keeper_pid"], 9)
    deadline = time.monotonic() + PATIENCE_S
    while hold.json("show", old)["state"] != "lost":
        assert time.monotonic() < deadline
    shown = hold.json("show", old)
    assert shown["last_known"]["cwd"] == str(tmp_path / "there")
    revived = hold.json("revive", "work")
    assert revived["cwd"] == str(tmp_path / "there")
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    assert hold.ok("exec", "work", "--", "echo $TARGET").strip() == "prod"


def test_the_environment_is_on_disk_only_sealed_and_not_after_the_end(hold: Hold) -> None:
    session = hold.shell("work")
    hold.ok("exec", "work", "--", "export PASSWORD_$((1+1))=hunter2000")
    near_end(hold, session, lambda near: "PASSWORD_2" in (near.environment or {}))
    directory = journal_of(hold, session)
    for path in directory.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    held = b"".join(path.read_bytes() for path in directory.iterdir())
    assert SECRET.encode() not in held
    assert {"launch", "near-end"} <= {path.name for path in directory.iterdir()}
    hold.ok("end", "work")
    assert not {"launch", "near-end"} & {path.name for path in directory.iterdir()}


@pytest.mark.requirement("M2")
def test_a_damaged_or_missing_near_end_does_not_keep_the_host_from_starting(hold: Hold) -> None:
    one, two = hold.shell("one"), hold.shell("two")
    for session in (one, two):
        near_end(hold, session, lambda near: True)
    damaged = journal_of(hold, one) / "near-end"
    data = bytearray(damaged.read_bytes())
    data[20] ^= 1
    os.unlink(journal_of(hold, two) / "launch")
    hold.ok("daemon", "restart")  # it writes them again, so:
    near_end(hold, one, lambda near: True)

    def spoil() -> None:
        damaged.write_bytes(data)

    reboots_after(hold, spoil)
    lost: dict[str, Any] = {each["name"]: each for each in hold.json("ls")}
    assert lost["one"]["last_known"] is None and lost["two"]["last_known"] is not None
    assert hold.json("revive", "one")["cwd"] == os.getcwd()
    assert any("environment" in each for each in hold.json("revive", "two")["left_behind"])


def reboots_after(hold: Hold, change: Any) -> None:
    """What is on disk is changed while nothing runs."""
    from process import recorded

    recorded.host_dies(hold)
    change()
    for spec in (Path(hold.home) / "sessions").glob("*/spec.json"):
        stored = json.loads(spec.read_text())
        spec.write_text(json.dumps({**stored, "boot_id": "the-boot-before"}))
    hold.ok("up", "-d")


def test_the_sdk_revives(hold: Hold) -> None:
    old = hold.shell("work")
    reboots(hold)
    with blocking.connect(f"{hold.home}/run/hold.sock") as host:
        session = host.revive(old)
        assert session.name == "work" and session.id != old
