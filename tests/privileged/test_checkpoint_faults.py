"""Daemons that die over a checkpoint or a restore, disks that are full, input that comes meanwhile,
and people who look on: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    movable_host,
    put_to_sleep,
    restored,
    said,
    skip_unless_possible,
    started,
    until_screen,
)
from process.commanding import Hold, keepers
from process.terminals import Terminal
from process.waiting import until

HEAP = (
    "import os, sys\nheap = os.urandom({size} << 20)\nprint('ready', flush=True)\n"
    "for line in sys.stdin: print('got', line.strip(), len(heap) >> 20, flush=True)\n"
)


@pytest.fixture
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def with_heap(hold: Hold, name: str, size: int) -> str:
    program = HEAP.format(size=size)
    session = started(hold, name, sys.executable, "-u", "-c", program, prompt=False)
    until_screen(hold, name, "ready")
    return session


def kill_daemon(hold: Hold) -> None:
    """And wait until the supervisor has another one."""
    before = hold.json("doctor")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    until("no other daemon comes", lambda: hold.json("doctor").get("daemon_pid", before) != before)


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
    until("no checkpoint begins", lambda: under_way(hold, "checkpointing"))
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
    with closing(Terminal(hold, "attach", "watched")) as terminal:
        terminal.until_shown("$")
        put_to_sleep(hold, "watched")
        restored(hold, "watched")
        hold.attached("watched")
        terminal.type(b"echo a''gain\r")
        terminal.until_shown("again")
        terminal.type(b"exit\r")
        assert terminal.wait() == 0


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.6])
def test_a_daemon_killed_during_a_checkpoint_loses_nothing(
    hold: Hold, ends: bool, after_s: float
) -> None:
    session = with_heap(hold, "killed", 100)
    making = hold.start("checkpoint", "killed", *(("--end",) if ends else ()))
    until("it begins not", lambda: under_way(hold, "checkpointing") or making.poll() is not None)
    time.sleep(after_s)  # a moment somewhere in it, not an event to wait for
    kill_daemon(hold)
    making.communicate(timeout=60)

    def settled() -> bool:
        return hold.json("show", "killed")["state"] in ("input", "asleep")

    until("it is neither alive nor asleep", settled)
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
    until("it begins not", lambda: under_way(hold, "restoring") or restoring.poll() is not None)
    time.sleep(after_s)  # a moment somewhere in it, not an event to wait for
    kill_daemon(hold)
    restoring.communicate(timeout=60)
    if hold.json("show", "killed")["state"] == "asleep":
        until("something of it is left", lambda: not keepers(hold.home))
        restored(hold, "killed")
    hold.ok("keys", "killed", *"alive", "Enter")
    until_screen(hold, "killed", "got alive 100")
    assert len(keepers(hold.home)) == 1
    hold.ok("verify", "killed")


@pytest.mark.requirement("M2")
def test_a_disk_that_is_full_leaves_the_session_running(tmp_path: Path) -> None:
    skip_unless_possible()
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
def test_a_disk_that_was_unmounted_meanwhile_keeps_from_coming_back_only_who_has_a_file_there(
    hold: Hold, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "gone", tmp_path], check=True)
    try:
        (tmp_path / "file").write_text("here\n")
        started(hold, "without")
        started(hold, "within")
        said(hold, "within", f"exec 7<{tmp_path}/file")
        for name in ("without", "within"):
            put_to_sleep(hold, name)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    restored(hold, "without")
    assert said(hold, "without", f"ls -A {tmp_path} | wc -l") == "0"
    assert "Read-only" in said(hold, "without", f"touch {tmp_path}/new 2>&1; true")
    hold.fails("restore_failed", "restore", "within")
    assert hold.json("show", "within")["state"] == "asleep"
    assert not (tmp_path / "new").exists()


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
