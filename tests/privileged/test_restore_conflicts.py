"""What changed between a checkpoint and its restore, and what else is wanted of the session
meanwhile: the name it got, the policies it is under, who was revoked, who starts a successor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    movable_host,
    put_to_sleep,
    restored,
    started,
)
from process.acting import add_actor
from process.commanding import PATIENCE_S, Hold
from process.recorded import host_dies
from process.terminals import Terminal
from process.waiting import until

# Enough that a restore of it takes longer than a command needs to arrive.
_LARGE = "import os; x = os.urandom(150 << 20); input('ready')"


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


@pytest.mark.requirement("S2")
def test_a_session_keeps_the_name_that_it_had_last(hold: Hold) -> None:
    session = started(hold, "first")
    made = hold.json("checkpoint", "first")
    hold.ok("rename", "first", "second")
    other = started(hold, "first")
    put_to_sleep(hold, "second")
    assert restored(hold, made["id"])["id"] == session
    assert hold.json("show", "second")["id"] == session
    assert hold.json("show", "first")["id"] == other


@pytest.mark.requirement("S1", "A9")
def test_a_session_that_is_asleep_can_be_ended_by_whoever_may_end_it(hold: Hold) -> None:
    session = started(hold, "unwanted")
    made = put_to_sleep(hold, "unwanted")
    add_actor(hold, "keen", "execute", "unwanted")
    hold.fails("not_permitted", "--as", "keen", "end", session)
    assert hold.json("show", session)["state"] == "asleep"
    assert hold.json("end", session)["state"] == "lost"
    shown = hold.json("show", session)
    assert shown["ending"]["cause"]["kind"] == "given_up" and shown["acknowledged_by"]
    hold.fails("session_ended", "restore", made["id"])
    hold.fails("session_lost", "end", session)


@pytest.mark.requirement("A8")
def test_the_policy_of_a_session_that_is_asleep_stays_in_force(hold: Hold) -> None:
    started(hold, "governed")
    hold.ok("policy", "set", "starter:hold-destructive", "--session", "governed")
    before = hold.ok("policy", "show", "governed")
    assert "hold-destructive" in before
    put_to_sleep(hold, "governed")
    started(hold, "another")
    hold.ok("policy", "set", "starter:agents-observe", "--session", "another")
    restored(hold, "governed")
    assert hold.ok("policy", "show", "governed") == before


@pytest.mark.requirement("A2", "A4")
def test_who_was_revoked_meanwhile_has_no_turn_and_the_journal_says_so(hold: Hold) -> None:
    started(hold, "revoking")
    bot = add_actor(hold, "passing", "execute", "revoking")
    hold.ok("--as", "passing", "turn", "revoking", "request")
    put_to_sleep(hold, "revoking")
    hold.ok("actor", "revoke", "passing")
    restored(hold, "revoking")
    assert "passing" not in hold.ok("turn", "revoking")
    assert [each["body"]["subject"] for each in entries(hold, "revoking", "actor_revoked")] == [bot]
    hold.ok("verify", "revoking")


@pytest.mark.requirement("A9", "N9")
def test_what_is_being_restored_is_not_given_up(hold: Hold) -> None:
    session = _slow(hold, "slow")
    put_to_sleep(hold, "slow")
    restoring = _begun(hold, session)
    assert "being restored" in hold.fails("restore_failed", "restore", "--cold", session)
    _check_it_alone_lives(hold, session, restoring)


@pytest.mark.requirement("A9", "N9")
@pytest.mark.parametrize("instead", ["revive", "acknowledge"])
def test_what_was_lost_and_is_being_restored_is_not_followed(instead: str) -> None:
    with movable_host() as hold:
        session = _slow(hold, "slow")
        hold.json("checkpoint", "slow")
        host_dies(hold)
        hold.ok("up", "-d")
        restoring = _begun(hold, session)
        assert "being restored" in hold.fails("restore_failed", instead, session)
        _check_it_alone_lives(hold, session, restoring)


@pytest.mark.requirement("M2", "A9")
def test_it_runs_although_whoever_asked_for_the_restore_is_gone(hold: Hold) -> None:
    session = _slow(hold, "left")
    put_to_sleep(hold, "left")
    restoring = _begun(hold, session)
    until("it is not restored", lambda: Path(f"{hold.home}/run/keepers/{session}.sock").exists())
    restoring.kill()
    restoring.wait()
    until("it is restored, or not", lambda: not _restores(hold))
    if hold.json("show", session)["state"] == "asleep":
        restored(hold, session)
    hold.ok("send", session, "--enter", "x")
    hold.ok("wait", session, "--for", "exit", "--timeout", "20")


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("how", ["keys", "attach"])
def test_whoever_needs_it_while_it_is_restored_waits_for_that(hold: Hold, how: str) -> None:
    session = _slow(hold, f"needed-{how}")
    put_to_sleep(hold, session)
    restoring = _begun(hold, session)
    terminal = Terminal(hold, "attach", session) if how == "attach" else None
    try:
        if terminal is None:
            hold.ok("keys", session, "x", "Enter")
        _, complaint = restoring.communicate(timeout=PATIENCE_S)
        assert restoring.returncode == 0, complaint
        if terminal is not None:
            terminal.until_shown("ready")
            terminal.type(b"x\r")
            assert terminal.wait() == 0
    finally:
        if terminal is not None:
            terminal.close()
    hold.ok("wait", session, "--for", "exit", "--timeout", "20")


@pytest.mark.requirement("A8")
def test_what_was_put_to_sleep_for_an_actor_that_is_unknown_says_why_it_stays_asleep() -> None:
    hold = Hold()
    try:
        hold.ok("up", "-d")
        session = started(hold, "governed")
        hold.ok("policy", "set", "starter:hold-destructive", "--session", "governed")
        hold.ok("down", "--checkpoint")
        tombstone = Path(hold.home, "sessions", session, "tombstone.json")
        stored = json.loads(tombstone.read_text())
        assert stored["returns_for"]
        tombstone.write_text(json.dumps({**stored, "returns_for": session}))
        hold.ok("up", "-d")
        log = Path(hold.home, "host.log")
        until("it is not tried", lambda: "governed stays asleep" in log.read_text())
        assert "has no rights here" in log.read_text()
        assert restored(hold, "governed")["epoch"] == 2
    finally:
        hold.close()


def _slow(hold: Hold, name: str) -> str:
    session = started(hold, name, "python3", "-c", _LARGE, prompt=False)
    hold.ok("wait", name, "--for", "text:ready", "--timeout", "30")
    return session


def _begun(hold: Hold, session: str) -> subprocess.Popen[bytes]:
    """A restore of it, which takes a while."""
    restoring = hold.start("restore", session)
    until("no restore begins", lambda: _restores(hold))
    return restoring


def _restores(hold: Hold) -> bool:
    place = Path(hold.home, "restoring")
    return place.exists() and any(place.iterdir())


def _check_it_alone_lives(hold: Hold, session: str, restoring: subprocess.Popen[bytes]) -> None:
    _, complaint = restoring.communicate(timeout=PATIENCE_S)
    assert restoring.returncode == 0, complaint
    assert [each["id"] for each in hold.json("ls") if each["name"] == "slow"] == [session]
    hold.ok("verify", session)
    hold.ok("send", session, "--enter", "x")
    hold.ok("wait", session, "--for", "exit", "--timeout", "20")
