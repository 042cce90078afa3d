"""The enforced halt at level plain: a tree stopped by signals, and nobody in it the wiser."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import freeze
from holdfast.adapters.halt import stop_tree as stopping
from holdfast.adapters.halt.stop_tree import Found, Tree
from holdfast.adapters.proc import procfs
from holdfast.model.state import Ending, Level
from holdfast.ports.halt import HaltResult, Stopped
from process import halt_scenes as scenes
from process.launching import Running, Sessions
from process.waiting import children_of, read_until, wait_child

NOBODY = 65534


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions(Level.PLAIN) as running:
        yield running


@pytest.mark.requirement("A5")
def test_two_hundred_busy_processes_are_halted(sessions: Sessions) -> None:
    halted = scenes.check_halts_and_goes_on(scenes.started(sessions, scenes.BUSY), 201)
    assert len(halted.stopped) == 201


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("script", [scenes.FORKING, scenes.SCATTERING, scenes.CONTINUING])
def test_a_tree_that_works_against_it_is_halted(sessions: Sessions, script: str) -> None:
    running = scenes.started(sessions, script)
    for _ in range(5):
        scenes.check_halts_and_goes_on(running, 1)


@pytest.mark.requirement("A5")
def test_a_process_that_is_never_there_when_looked_at_is_halted(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.comet(sessions, tmp_path)
    for _ in range(5):
        scenes.check_halts_and_goes_on(running, 3)


def test_without_the_inits_word_that_process_would_pass_for_halted(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "turns_of_init", lambda _: 0)
    running = scenes.comet(sessions, tmp_path)
    scenes.soon(lambda: _lies(running), "it is never wrong")


def _lies(running: Running) -> bool:
    """Whether the tree is called frozen and is not."""
    halted = freeze.halt(running.place)
    lied = halted.frozen and not scenes.is_quiet(running.place)
    assert freeze.resume(running.place, halted.stopped)
    return lied


def test_one_look_would_not_do(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-proof: stopped once and believed, the forking tree runs on."""

    def believing(tree: Tree, timeout_s: float = 0) -> tuple[bool, Found]:
        levels = tree.levels()
        time.sleep(0.02)  # what a host with a thousand processes takes
        tree.stop(levels)
        return True, {pid: stat for level in levels for pid, stat in level.items()}

    monkeypatch.setattr(stopping, "stop_tree", believing)
    running = scenes.started(sessions, scenes.SCATTERING)
    scenes.soon(lambda: _lies(running), "it is never wrong")


@pytest.mark.requirement("A5")
def test_a_process_deaf_to_every_signal_it_may_ignore_is_halted(
    sessions: Sessions, tmp_path: Path
) -> None:
    scenes.check_deaf_process(sessions, tmp_path)


@pytest.mark.requirement("A5")
def test_a_write_under_way_is_completed_and_not_called_frozen_before(
    sessions: Sessions, tmp_path: Path
) -> None:
    scenes.check_write_under_way(sessions, tmp_path)


def test_a_parent_held_in_vfork_does_not_hold_up_the_halt(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.vforking(sessions, tmp_path)
    halted = freeze.halt(running.place)
    assert halted.frozen, halted
    assert halted.tasks == 4
    assert scenes.is_quiet(running.place)
    assert freeze.resume(running.place, halted.stopped)
    # Its pending stop was taken back as well: when the child is gone it runs to its end.
    parent = children_of(running.place.shell_pid)[0]
    os.kill(children_of(parent)[0], signal.SIGKILL)
    scenes.soon(lambda: scenes.has_ended(parent), "the parent does not go on")


def test_every_thread_is_stopped(sessions: Sessions) -> None:
    spin = "import threading\ndef spin():\n while True: pass\n"
    start = "for _ in range(3): threading.Thread(target=spin).start()\nprint('up', flush=True)"
    running = sessions.launch("python3", "-c", spin + start)
    running.until("up")
    halted = freeze.halt(running.place)
    assert halted.frozen and halted.tasks == 4
    assert scenes.is_quiet(running.place)


def test_a_job_that_was_suspended_before_stays_suspended(sessions: Sessions) -> None:
    scenes.check_suspended_job_stays_suspended(sessions)


def _with_a_foreground_job(sessions: Sessions) -> Running:
    """A shell that waits for a pipeline, both ends of which run."""
    running = scenes.shell(sessions)
    running.type("sleep 1234 | cat")
    shell = running.place.shell_pid
    scenes.soon(lambda: _foreground(running) != shell, "no job")
    scenes.soon(lambda: _names(children_of(shell)) == ["cat", "sleep"], "not both run")
    return running


def _names(pids: list[int]) -> list[str]:
    return sorted(procfs.stat_of(pid).name for pid in pids)


def _halt_and_resume(running: Running) -> None:
    halted = freeze.halt(running.place)
    assert halted.frozen and len(halted.stopped) == 3
    assert freeze.resume(running.place, halted.stopped)


def _takes_it_for_suspended(running: Running) -> bool:
    """Whether the shell says so after a halt. What it has to say it says as soon as it runs."""
    freeze.resume(running.place, freeze.halt(running.place).stopped)
    with contextlib.suppress(AssertionError):
        read_until(running.master, b"Stopped", 0.2)
        return True
    return False


def test_the_shell_does_not_notice_and_still_waits_for_its_foreground_job(
    sessions: Sessions,
) -> None:
    running = _with_a_foreground_job(sessions)
    for _ in range(3):
        _halt_and_resume(running)
    assert len(children_of(running.place.shell_pid)) == 2
    assert _foreground(running) != running.place.shell_pid
    os.write(running.master, b"\x03")
    seen = running.until("$ ")
    assert "Stopped" not in seen, seen
    assert running.ask("jobs") == ""


def _foreground(running: Running) -> int:
    return os.tcgetpgrp(running.master)


def test_continued_from_the_top_the_shell_would_take_its_job_for_suspended(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    upwards = stopping.bottom_up

    def downwards(processes: tuple[Stopped, ...]) -> Iterator[Stopped]:
        for who in reversed(upwards(processes)):
            yield who
            time.sleep(0.02)  # the shell's turn

    running = _with_a_foreground_job(sessions)
    monkeypatch.setattr(stopping, "bottom_up", downwards)
    scenes.soon(lambda: _takes_it_for_suspended(running), "it does not notice")


def test_stopped_from_the_bottom_the_shell_would_take_its_job_for_suspended(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    downwards = Tree.levels
    running = _with_a_foreground_job(sessions)
    monkeypatch.setattr(Tree, "levels", lambda tree: downwards(tree)[::-1])
    scenes.soon(lambda: _takes_it_for_suspended(running), "it does not notice")


def test_a_halted_tree_can_be_killed_and_nothing_of_it_runs_again(
    sessions: Sessions, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    deaf = f"trap 'echo x > {heard}' HUP CONT; echo up; while :; do sleep 0.01; done"
    running = sessions.launch("bash", "--norc", "--noprofile", "-ic", f"({deaf}) & ({deaf})")
    running.until("up")
    halted = freeze.halt(running.place)
    assert halted.frozen
    members = [pid for pid in procfs.members(running.place, 100) if pid != running.place.pid]
    assert freeze.kill(running.place)
    assert running.finish() == Ending(signal=9)
    assert not heard.exists()
    assert not [pid for pid in members if os.path.exists(f"/proc/{pid}")]


def test_an_end_without_ceremony_also_reaches_a_halted_tree(sessions: Sessions) -> None:
    running = scenes.started(sessions, scenes.BUSY.replace("200", "20"))
    assert freeze.halt(running.place).frozen
    os.kill(running.place.shell_pid, signal.SIGKILL)  # as `end` does
    assert running.finish() == Ending(signal=9)


def test_a_process_tied_to_the_session_only_by_its_environment_is_halted_too(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = scenes.started(sessions, "echo up; sleep 1000")
    stray = subprocess.Popen(["sleep", "1000"], env={"HOLDFAST_SESSION": "s1", "PATH": "/bin"})
    try:
        other = freeze.halt(running.place, "s2")
        assert other.frozen and scenes.state_of(stray.pid) != "T"
        assert freeze.resume(running.place, other.stopped)
        halted = freeze.halt(running.place, "s1")
        assert halted.frozen and scenes.state_of(stray.pid) == "T"
        assert freeze.resume(running.place, halted.stopped)
        assert scenes.state_of(stray.pid) != "T"
        # A host that runs inside of the session has the mark itself, and so do its own helpers.
        monkeypatch.setenv("HOLDFAST_SESSION", "s1")
        again = freeze.halt(running.place, "s1")
        assert again.frozen and scenes.state_of(stray.pid) != "T"
    finally:
        stray.kill()
        stray.wait()


def test_a_number_that_is_anothers_by_now_is_not_signalled(sessions: Sessions) -> None:
    running = scenes.started(sessions, "echo up; sleep 1000")
    child = wait_child(running.place.shell_pid)
    born = procfs.stat_of(child).start_ticks
    assert not stopping.send(Stopped(child, born + 1), signal.SIGSTOP)
    assert scenes.state_of(child) != "T"
    assert stopping.send(Stopped(child, born), signal.SIGSTOP)
    scenes.soon(lambda: scenes.state_of(child) == "T", "it does not stop")
    assert freeze.resume(running.place, (Stopped(child, born + 1),))
    assert scenes.state_of(child) == "T"
    assert freeze.resume(running.place, (Stopped(child, born),))
    assert scenes.state_of(child) != "T"


def test_what_may_not_be_signalled_is_named_and_nothing_is_claimed(sessions: Sessions) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to have processes of two users")
    running = scenes.started(
        sessions, f"setpriv --reuid {NOBODY} --clear-groups sleep 1000 & echo up; sleep 1000"
    )
    scenes.soon(lambda: len(children_of(running.place.shell_pid)) == 2, "not both run")
    theirs, roots = children_of(running.place.shell_pid)
    scenes.soon(lambda: procfs.stat_of(theirs).name == "sleep", "it does not run")
    halted = _halted_by(NOBODY, running)
    assert not halted.frozen
    assert halted.running == tuple(sorted((running.place.shell_pid, roots)))
    assert [process.pid for process in halted.stopped] == [theirs]
    assert scenes.state_of(theirs) == "T"
    assert freeze.resume(running.place, halted.stopped)


def _halted_by(uid: int, running: Running) -> HaltResult:
    """The halt, tried by another user."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            halted = freeze.halt(running.place, timeout_s=1.0)
            os.write(writing, json.dumps(halted.pack()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        told = file.read()
    os.waitpid(pid, 0)
    return HaltResult.unpack(json.loads(told))


def test_a_session_that_has_ended_is_not_called_halted(sessions: Sessions) -> None:
    running = sessions.launch("true")
    scenes.soon(lambda: _has_ended(running.place.pid), "it does not end")
    assert freeze.halt(running.place).frozen is False
    running.finish()


def _has_ended(pid: int) -> bool:
    try:
        return not procfs.stat_of(pid).runs
    except FileNotFoundError:  # its keeper has reaped it
        return True
