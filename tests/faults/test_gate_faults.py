"""The line gate under faults: a daemon that is killed, a disk that is full. What waits goes on
waiting, what is judged is judged, and nothing slips through or runs twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from process.acting import add_actor, connected
from process.commanding import Hold
from process.gating import GatedHold
from process.waiting import until


@pytest.fixture
def hold() -> Iterator[GatedHold]:
    with GatedHold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "boss", "admin", "--all")
        yield hold


@pytest.fixture
def bash(hold: GatedHold) -> str:
    hold.ok("run", "-d", "--name", "gated", "--", "bash", "--norc")
    hold.ok("wait", "gated", "--for", "prompt")
    return "gated"


def kill_daemon(hold: Hold) -> None:
    before = hold.json("daemon", "status")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    until("another daemon", lambda: hold.json("daemon", "status")["daemon_pid"] != before)


def pending(hold: Hold) -> list[dict[str, Any]]:
    return [each for each in hold.json("approvals") if each["status"] == "pending"]


def until_held(hold: Hold) -> dict[str, Any]:
    (found,) = until("it is held", lambda: pending(hold))
    return dict(found)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("way", ["exec", "send", "keys"])
def test_a_held_line_survives_the_daemon_and_runs_once(
    way: str, hold: GatedHold, bash: str, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    line, running = f"echo drop >> {out}", None
    with connected(hold) as host:
        if way == "exec":
            running = hold.start("exec", bash, "--", line)
        elif way == "send":
            host.send(bash, line)
        else:
            for key in line:
                host.type_bytes(bash, key.encode())
            host.type_bytes(bash, b"\r")
        asked = until_held(hold)
        kill_daemon(hold)
        again = until_held(hold)
        for same in ("id", "text", "actor", "contributors", "expires_at", "quorum"):
            assert again[same] == asked[same]
        kill_daemon(hold)
        assert not out.exists()
        with hold.acting("boss"):
            hold.ok("approve", asked["id"])
        until("it ran", out.exists)
        kill_daemon(hold)
        if running is not None:
            assert running.communicate(timeout=30)[1].count(b"waits for approval") >= 1
            assert running.returncode == 0
        assert "after" in hold.ok("exec", bash, "--", "echo after")
        assert out.read_text() == "drop\n"
        assert pending(hold) == []


@pytest.mark.requirement("A8")
def test_a_line_that_is_being_judged_when_the_daemon_dies_is_judged_by_the_next(
    hold: GatedHold, bash: str, tmp_path: Path
) -> None:
    hold.rules(refuse=["touch"], slow_s=2)
    out = tmp_path / "out"
    running = hold.start("exec", bash, "--", f"touch {out}")
    until("it is being judged", lambda: hold.lines_asked())
    kill_daemon(hold)
    _, err = running.communicate(timeout=30)
    assert running.returncode != 0, err
    hold.rules(refuse=["touch"])
    hold("keys", bash, "C-c")
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_what_was_approved_and_not_yet_typed_is_typed_once(
    hold: GatedHold, bash: str, tmp_path: Path
) -> None:
    """The daemon dies while the policy judges it again."""
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    with connected(hold) as host:
        host.send(bash, f"echo drop >> {out}")
        asked = until_held(hold)
        hold.rules(hold=["drop"], slow_s=1.5)
        before = len(hold.asked())
        with hold.acting("boss"):
            hold.ok("approve", asked["id"])
        until("it is judged again", lambda: len(hold.asked()) > before)
        kill_daemon(hold)
        until("it ran", out.exists)
        assert pending(hold) == []
    hold.rules()
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert out.read_text() == "drop\n"


@pytest.mark.requirement("A8")
def test_a_decision_that_cannot_be_recorded_is_a_refusal(
    hold: GatedHold, bash: str, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    with connected(hold) as host:
        host.send(bash, f"touch {out} # drop")
        asked = until_held(hold)
        with hold.full_disk(), hold.acting("boss"):
            hold.fails("storage_failed", "approve", asked["id"])
        assert until_held(hold)["id"] == asked["id"] and not out.exists()
        with hold.acting("boss"):
            hold.ok("approve", asked["id"])
        until("it ran", out.exists)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("outcome", ["allow", "hold"])
def test_a_judgement_that_cannot_be_recorded_is_a_refusal(
    outcome: str, hold: GatedHold, bash: str, tmp_path: Path
) -> None:
    hold.rules(**{outcome: ["touch"]}, slow_s=1.0)
    out = tmp_path / "out"
    running = hold.start("exec", bash, "--", f"touch {out}")
    until("it is being judged", lambda: hold.lines_asked())
    with hold.full_disk():
        _, err = running.communicate(timeout=30)
    assert running.returncode != 0 and b"storage_failed" in err
    assert pending(hold) == []
    hold.rules()
    hold("keys", bash, "C-c")
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert not out.exists()
