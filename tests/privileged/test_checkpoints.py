"""A session is checkpointed, ended with that, and restored: the same id and processes, in the next
epoch; and what is refused leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    movable_host,
    put_to_sleep,
    restored,
    said,
    started,
    there_and_back,
    until_screen,
)
from process.acting import add_actor
from process.commanding import Hold
from process.recorded import host_dies


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


# -- a round trip -----------------------------------------------------------------------------


@pytest.mark.requirement("M2", "S2", "F3", "M5")
def test_a_shell_comes_back_as_it_was_in_the_next_epoch(hold: Hold) -> None:
    session = started(hold, "shell")
    said(
        hold, "shell", 'X=42; a=(1 "two 3"); f() { echo "f of $1"; }; cd /var/tmp; set -o noclobber'
    )
    said(hold, "shell", "sleep 3000 & sleep 3001 & kill -STOP %2")
    pids = said(hold, "shell", "echo $$ $!")
    hold.ok("keys", "shell", *"echo ha")
    before = until_screen(hold, "shell", r"echo ha$")
    made = put_to_sleep(hold, "shell")
    assert (made["session"], made["epoch"], made["kind"]) == (session, 1, "memory")
    assert "asleep" in hold.ok("ls")
    hold.fails("session_asleep", "keys", "shell", "x")
    back = restored(hold, "shell")
    assert (back["id"], back["epoch"]) == (session, 2)
    assert hold.ok("screen", "shell") == before
    hold.ok("keys", "shell", "l", "f", "Enter")
    until_screen(hold, "shell", r"(?m)^half$")
    assert said(hold, "shell", 'echo "$X ${a[1]}"; f 3; pwd; echo $-').split("\n")[:3] == [
        "42 two 3",
        "f of 3",
        "/var/tmp",
    ]
    assert said(hold, "shell", "echo $$ $!") == pids
    assert "Stopped" in said(hold, "shell", "jobs") and "Running" in said(hold, "shell", "jobs")
    assert said(hold, "shell", "cat $HOLDFAST_TOKEN_FILE") == "2"
    assert said(hold, "shell", "tty; (echo visible >/dev/tty) && echo ctty").endswith("ctty")
    (entry,) = entries(hold, "shell", "restored")
    assert entry["epoch"] == 2 and entry["body"]["checkpoint"] == made["id"]
    phases = [phase["name"] for phase in entry["body"]["phases"]]
    assert phases == ["check", "prepare", "processes", "connections", "resume"]
    hold.ok("verify", "shell")
    hold.ok("end", "shell")
    hold.fails("session_ended", "restore", "shell")


def test_a_checkpoint_leaves_the_session_running(hold: Hold) -> None:
    session = started(hold, "runs-on")
    pid = said(hold, "runs-on", "X=here; echo $$")
    made = hold.json("checkpoint", "runs-on", "--note", "before the upgrade")
    assert said(hold, "runs-on", "echo $X $$") == f"here {pid}"
    (listed,) = hold.json("checkpoints", "runs-on")
    assert listed == made and made["note"] == "before the upgrade" and made["kind"] == "memory"
    assert 0 < made["frozen_ms"] < made["total_ms"] and made["bytes"] > made["stored_bytes"] > 0
    assert hold.json("show", "runs-on")["epoch"] == 1
    said_no = hold.fails("invalid_argument", "restore", made["id"])
    assert "runs" in said_no
    assert hold.json("show", "runs-on")["id"] == session


def test_half_a_line_that_no_program_has_read_is_kept(hold: Hold) -> None:
    started(hold, "cooked", "cat", prompt=False)
    hold.ok("wait", "cooked", "--for", "input", "--timeout", "20")
    hold.ok("keys", "cooked", *"unread")
    until_screen(hold, "cooked", "unread")
    there_and_back(hold, "cooked")
    hold.ok("keys", "cooked", *" line", "Enter")
    until_screen(hold, "cooked", r"(?s)unread line\n.*unread line")


def test_programs_are_still_judged_by_the_exec_gate(hold: Hold) -> None:
    started(hold, "judged")
    said(hold, "judged", "sleep 3000 &")
    there_and_back(hold, "judged")
    assert hold.json("show", "judged")["ungated"] == ""
    assert "filters:\t1" in said(hold, "judged", "grep Seccomp_ /proc/self/status")


# -- what was lost ----------------------------------------------------------------------------


@pytest.mark.requirement("M2", "M6", "N9")
def test_a_session_lost_with_its_host_comes_back_from_its_last_checkpoint() -> None:
    with movable_host() as hold:
        session = started(hold, "lost")
        said(hold, "lost", "X=kept")
        made = hold.json("checkpoint", "lost")
        said(hold, "lost", "X=later")
        host_dies(hold)
        hold.ok("up", "-d")
        info = hold.json("show", "lost")
        assert info["state"] == "lost" and info["ending"]["cause"]["checkpoint"] == made["id"]
        back = restored(hold, "lost")
        assert (back["id"], back["epoch"]) == (session, 2)
        assert back["restore"]["inputs_lost"] >= 1
        assert said(hold, "lost", "echo $X") == "kept"
        hold.ok("verify", "lost")


def test_cold_is_a_successor_and_closes_what_was(hold: Hold) -> None:
    session = started(hold, "cold")
    said(hold, "cold", "X=gone; cd /var")
    made = put_to_sleep(hold, "cold")
    back = hold.json("restore", "--cold", "cold")
    assert back["id"] != session and back["restore"]["kind"] == "cold"
    hold.ok("wait", "cold", "--for", "prompt", "--timeout", "20")
    assert said(hold, "cold", "echo $X") == ""
    hold.fails("session_lost", "restore", made["id"])
    was = hold.json("show", session)
    assert was["ending"]["successor"] == back["id"]
    assert was["ending"]["cause"]["kind"] == "given_up"


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.requirement("M2")
def test_what_was_tampered_with_is_refused_before_anything_is_touched(hold: Hold) -> None:
    """What the store checks is in tests/process/test_image_store.py."""
    session = started(hold, "tampered")
    older = hold.json("checkpoint", "tampered")
    said(hold, "tampered", "X=newer")
    made = put_to_sleep(hold, "tampered")
    (manifest,) = Path(f"{hold.home}/checkpoints").glob(f"*/checkpoints/{session}/{made['id']}")
    kept = manifest.read_bytes()
    manifest.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    hold.fails("checkpoint_invalid", "restore", made["id"])
    manifest.write_bytes(kept[:-100])
    hold.fails("checkpoint_invalid", "restore", made["id"])
    manifest.write_bytes((manifest.parent / older["id"]).read_bytes())  # the older one in its place
    hold.fails("checkpoint_invalid", "restore", made["id"])
    manifest.unlink()
    hold.fails("checkpoint_rolled_back", "restore", "tampered")
    manifest.write_bytes(kept)
    assert hold.json("show", "tampered")["state"] == "asleep"
    assert not Path(f"{hold.home}/run/keepers/{session}.sock").exists()
    assert restored(hold, "tampered")["epoch"] == 2
    assert said(hold, "tampered", "echo $X") == "newer"


def test_the_level_says_who_can_be_checkpointed(hold: Hold) -> None:
    hold.ok("run", "-d", "--name", "plain", "--level", "plain", "--", "sleep", "300")
    assert "movable" in hold.fails("level_unavailable", "checkpoint", "plain")
    hold.fails("no_such_session", "checkpoint", "nobody")
    hold.fails("no_such_checkpoint", "restore", "ck-0000000000000000")
    hold.ok("end", "plain")


@pytest.mark.requirement("A2")
def test_it_needs_the_right_to_checkpoint(hold: Hold) -> None:
    started(hold, "rights")
    add_actor(hold, "worker", "execute", "--all")
    hold.fails("not_permitted", "--as", "worker", "checkpoint", "rights")
    put_to_sleep(hold, "rights")
    hold.fails("not_permitted", "--as", "worker", "restore", "rights")
    assert restored(hold, "rights")["epoch"] == 2


def test_a_halted_session_is_refused_and_stays_halted(hold: Hold) -> None:
    started(hold, "halted")
    hold.ok("halt", "halted")
    hold.fails("session_halted", "checkpoint", "halted")
    assert hold.json("show", "halted")["state"] == "halted"
    hold.ok("resume", "halted")
    assert there_and_back(hold, "halted")["epoch"] == 2


def test_what_criu_cannot_write_leaves_the_session_running(hold: Hold) -> None:
    started(hold, "refused")
    said(hold, "refused", "X=1; unshare --pid --fork sleep 3000 &")
    said_no = hold.fails("checkpoint_failed", "checkpoint", "refused", "--end")
    assert "pid namespace" in said_no
    assert said(hold, "refused", "echo $X") == "1"
    (entry,) = entries(hold, "refused", "checkpoint_failed")
    assert "pid namespace" in entry["body"]["reason"]
    assert hold.json("checkpoints", "refused") == []
