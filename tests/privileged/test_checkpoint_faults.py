"""Daemons that die over a checkpoint or a restore, disks that are full, input that comes meanwhile,
and people who look on: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    put_to_sleep,
    restored,
    said,
    skip_unless_possible,
    started,
    until,
    until_screen,
)
from process.commanding import Hold, keepers
from process.terminals import Terminal

HEAP = (
    "import os, sys\nheap = os.urandom({size} << 20)\nprint('ready', flush=True)\n"
    "for line in sys.stdin: print('got', line.strip(), len(heap) >> 20, flush=True)\n"
)


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible()


@pytest.fixture
def hold(_possible: None) -> Iterator[Hold]:
    hold = Hold()
    try:
        hold.ok("up", "-d")
        yield hold
    finally:
        hold.close()


def with_heap(hold: Hold, name: str, size: int) -> str:
    program = HEAP.format(size=size)
    session = started(hold, name, sys.executable, "-u", "-c", program, prompt=False)
    until_screen(hold, name, "ready")
    return session


def kill_daemon(hold: Hold) -> None:
    """And wait until the supervisor has another one."""
    before = hold.json("doctor")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    until(lambda: hold.json("doctor").get("daemon_pid", before) != before, "no other daemon comes")


def under_way(hold: Hold, directory: str) -> bool:
    """A checkpoint is being put together, or laid out, at this moment."""
    try:
        return any(os.scandir(f"{hold.home}/{directory}"))
    except FileNotFoundError:
        return False


@pytest.mark.requirement("A3")
def test_input_in_the_frozen_window_waits_and_comes_in_order(hold: Hold) -> None:
    with_heap(hold, "busy", 200)
    making = hold.start("checkpoint", "busy")
    until(lambda: under_way(hold, "checkpointing"), "no checkpoint begins")
    for word in ("first", "second", "third"):
        hold.ok("keys", "busy", *word, "Enter")
    assert making.wait(60) == 0
    until_screen(hold, "busy", r"(?s)got first 200.*got second 200.*got third 200")
    assert len(entries(hold, "busy", "input")) >= 3
    put_to_sleep(hold, "busy")
    restored(hold, "busy")
    hold.ok("keys", "busy", *"fourth", "Enter")
    shown = until_screen(hold, "busy", "got fourth 200")
    assert shown.count("got") == 4


@pytest.mark.requirement("S3")
def test_whoever_is_attached_sees_a_pause(hold: Hold) -> None:
    started(hold, "watched")
    terminal = Terminal(hold, "attach", "watched")
    try:
        terminal.until_shown("$")
        put_to_sleep(hold, "watched")
        restored(hold, "watched")
        hold.attached("watched")
        terminal.type(b"echo a''gain\r")
        terminal.until_shown("again")
        terminal.type(b"exit\r")
        assert terminal.wait() == 0
    finally:
        terminal.close()


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.6])
def test_a_daemon_killed_during_a_checkpoint_loses_nothing(
    hold: Hold, ends: bool, after_s: float
) -> None:
    session = with_heap(hold, "killed", 100)
    making = hold.start("checkpoint", "killed", *(("--end",) if ends else ()))
    until(lambda: under_way(hold, "checkpointing") or making.poll() is not None, "it begins not")
    time.sleep(after_s)  # a moment somewhere in it, not an event to wait for
    kill_daemon(hold)
    making.communicate(timeout=60)

    def settled() -> bool:
        return hold.json("show", "killed")["state"] in ("input", "asleep")

    until(settled, "it is neither alive nor asleep")
    info = hold.json("show", "killed")
    assert info["id"] == session
    if info["state"] == "asleep":
        assert ends and restored(hold, "killed")["epoch"] == 2
    hold.ok("keys", "killed", *"alive", "Enter")
    until_screen(hold, "killed", "got alive 100")
    assert len(keepers(hold.home)) == 1
    hold.ok("verify", "killed")


@pytest.mark.requirement("M2", "F1")
@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3])
def test_a_daemon_killed_during_a_restore_leaves_one_session_or_the_checkpoint(
    hold: Hold, after_s: float
) -> None:
    with_heap(hold, "killed", 100)
    put_to_sleep(hold, "killed")
    restoring = hold.start("restore", "killed")
    until(lambda: under_way(hold, "restoring") or restoring.poll() is not None, "it begins not")
    time.sleep(after_s)  # a moment somewhere in it, not an event to wait for
    kill_daemon(hold)
    restoring.communicate(timeout=60)
    if hold.json("show", "killed")["state"] == "asleep":
        until(lambda: not keepers(hold.home), "something of it is left")
        restored(hold, "killed")
    hold.ok("keys", "killed", *"alive", "Enter")
    until_screen(hold, "killed", "got alive 100")
    assert len(keepers(hold.home)) == 1
    hold.ok("verify", "killed")


@pytest.mark.requirement("M2")
def test_a_disk_that_is_full_leaves_the_session_running(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "small", tmp_path], check=True)
    hold = Hold(str(tmp_path))
    try:
        hold.ok("up", "-d")
        with_heap(hold, "full", 100)
        for words in ((), ("--end",)):
            hold.fails("checkpoint_failed", "checkpoint", "full", *words)
            hold.ok("keys", "full", *"on", "Enter")
            until_screen(hold, "full", "got on 100")
        assert hold.json("checkpoints") == []
        assert not under_way(hold, "checkpointing")
    finally:
        hold.close()
        subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.mark.requirement("M2")
def test_a_restore_that_fails_leaves_everything_as_it_was(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "grows"
    path.write_text("before\n")
    started(hold, "failing")
    said(hold, "failing", f"exec 7>>{path}; X=kept")
    put_to_sleep(hold, "failing")
    path.unlink()
    why = hold.fails("restore_failed", "restore", "failing")
    assert "grows" in why or "CRIU" in why
    assert hold.json("show", "failing")["state"] == "asleep"
    assert not keepers(hold.home)
    path.write_text("before\n")
    assert restored(hold, "failing")["epoch"] >= 2
    assert said(hold, "failing", "echo $X") == "kept"
