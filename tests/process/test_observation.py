"""S7: what the observation says real programs on a real PTY wait for."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup as cgroup_adapter
from holdfast.core.activity import judge
from holdfast.model.state import SessionState
from process.observed import BASH, DEADLINE_S, FISH, PYTHON, ZSH, Start, has, only, start

__all__ = ["start"]  # the fixture

WORKING, PROMPT, INPUT = SessionState.WORKING, SessionState.PROMPT, SessionState.INPUT
SECRET, STOPPED, ENDED = SessionState.SECRET, SessionState.STOPPED, SessionState.ENDED


@pytest.mark.parametrize("argv", [BASH, ZSH, FISH, ("dash",)], ids=lambda argv: argv[0])
def test_a_shell_that_waits_for_a_command_is_at_its_prompt(
    start: Start, argv: tuple[str, ...]
) -> None:
    session = start(*argv, shell=True)
    session.until_state(PROMPT)
    session.type("sleep 100\r")
    session.until_graph(has("sleep"))
    session.until_state(WORKING)
    session.type("\x03")
    session.until_state(PROMPT)


@pytest.mark.parametrize(
    ("argv", "line", "wanted"),
    [
        (BASH, "read -s x", SECRET),
        (BASH, "read x", INPUT),
        (BASH, "read -n1 x", INPUT),
        (BASH, "read -sn1 x", INPUT),
        (ZSH, "read -s x", SECRET),
        (ZSH, "read x", INPUT),
        (ZSH, "read -k1 x", INPUT),
        (ZSH, "read -sk1 x", INPUT),
        (("dash",), "stty -echo; read x", SECRET),
        (("dash",), "read x", INPUT),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_builtin_of_the_shell_that_reads_is_told_from_its_prompt(
    start: Start, argv: tuple[str, ...], line: str, wanted: SessionState
) -> None:
    session = start(*argv, shell=True)
    session.until_state(PROMPT)
    session.type(f"{line}\r")
    session.until_state(wanted)


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        ((*PYTHON, "import getpass; getpass.getpass()"), SECRET),
        ((*PYTHON, "input('name? ')"), INPUT),
        ((*PYTHON, "open('/dev/tty').readline()"), INPUT),
        ((*PYTHON, "import os; os.read(os.dup2(0, 77), 9)"), INPUT),
        ((*PYTHON, "import select; select.select([0], [], [])"), INPUT),
        ((*PYTHON, "import select; p = select.poll(); p.register(0, 1); p.poll()"), INPUT),
        ((*PYTHON, "import select; p = select.epoll(); p.register(0, 1); p.poll()"), INPUT),
        (
            (
                *PYTHON,
                "import threading, time; threading.Thread(target=input).start(); time.sleep(99)",
            ),
            INPUT,
        ),
        ((*PYTHON, "import os; os.fork() or (os.setsid(), input()); os.wait()"), INPUT),
        ((sys.executable, "-q"), INPUT),
        (("cat",), INPUT),
        (("vim", "-u", "NONE"), INPUT),
        (("less", "/etc/passwd"), INPUT),
        (("top",), INPUT),
        (("sleep", "100"), WORKING),
        (("bash", "-c", "while :; do :; done"), WORKING),
        (("bash", "-c", "sleep 100 | cat"), WORKING),
        (("bash", "-c", "cat </dev/null; sleep 100 & wait"), WORKING),
        (
            (*PYTHON, "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"),
            WORKING,
        ),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, tuple) else value,
)
def test_programs_are_seen_to_wait_for_what_they_wait_for(
    start: Start, argv: tuple[str, ...], wanted: SessionState
) -> None:
    start(*argv).until_state(wanted)


def test_a_shell_started_to_run_one_script_is_no_prompt(start: Start) -> None:
    start(*BASH, "-c", "read x").until_state(INPUT)


def test_a_shell_that_became_another_program_is_no_prompt(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.type(f"exec {sys.executable} -q\r")
    session.until_printed(">>> ")
    assert not session.until_state(INPUT).shell_is_shell


def test_a_background_job_that_watches_the_terminal_asks_for_nothing(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    polls = "import select; p = select.poll(); p.register(0, 1); p.poll()"
    session.type(f"{sys.executable} -c '{polls}' &\r")
    session.until_graph(
        lambda graph: any(p.waits_for == "tty" and not p.foreground for p in graph.processes)
    )
    session.type("sleep 100\r")
    session.until_graph(has("sleep"))
    session.until_state(WORKING)


def test_a_stopped_foreground_program_is_stopped_and_goes_on(start: Start) -> None:
    session = start("cat")
    session.until_state(INPUT)
    os.kill(session.pid, signal.SIGSTOP)
    session.until_state(STOPPED)
    os.kill(session.pid, signal.SIGCONT)
    session.until_state(INPUT)


def test_a_poll_restarted_after_a_stop_is_still_a_wait_for_the_terminal(start: Start) -> None:
    """The kernel restarts it under another number (restart_syscall)."""
    session = start(*PYTHON, "import select; p = select.poll(); p.register(0, 1); p.poll(99000)")
    session.until_state(INPUT)
    os.kill(session.pid, signal.SIGSTOP)
    session.until_state(STOPPED)
    os.kill(session.pid, signal.SIGCONT)
    session.until_state(INPUT)


def test_a_job_stopped_from_the_keyboard_leaves_the_prompt(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.type("cat\r")
    session.until_state(INPUT)
    session.type("\x1a")
    session.until_state(PROMPT)


def test_an_ended_session_is_ended_before_and_after_it_is_reaped(start: Start) -> None:
    session = start("sh", "-c", "exit 3")
    session.until_state(ENDED)
    assert session.graph().state is ENDED
    os.waitpid(session.pid, 0)
    assert judge(session.evidence()) is ENDED
    assert session.graph().processes == ()


def test_a_closed_terminal_is_reported_not_raised(start: Start) -> None:
    session = start("sleep", "100")
    session.until_state(WORKING)
    nothing = os.open("/dev/null", os.O_RDONLY)
    observation, place = session.observation, session.place
    try:
        assert judge(observation.evidence(place, nothing, shell_is_shell=False)) is WORKING
        assert observation.graph(place, nothing, shell_is_shell=False).terminal.name == place.tty
    finally:
        os.close(nothing)


@pytest.fixture
def cgroup() -> Iterator[str]:
    top = next(
        (
            p
            for p in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
            if Path(p, "cgroup.procs").exists()
        ),
        "",
    )
    path = f"{top}/holdfast-test-{os.getpid()}"
    try:
        os.makedirs(f"{path}/inner")
    except OSError as error:
        pytest.skip(f"no cgroup of our own: {error}")
    yield path
    Path(path, "cgroup.kill").write_text("1")
    for group in (f"{path}/inner", path):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break


def test_a_session_is_its_cgroup_and_says_when_that_freezes(start: Start, cgroup: str) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.place = session.place.replace(cgroup=cgroup)
    Path(cgroup, "cgroup.procs").write_text(str(session.pid))
    session.until_state(PROMPT)
    session.type(f"(echo $BASHPID >{cgroup}/inner/cgroup.procs; exec setsid sleep 100) &\r")
    session.until_graph(only("bash", "sleep"))
    session.until_state(PROMPT)

    assert cgroup_adapter.freeze(cgroup)
    assert judge(session.evidence()) is SessionState.HALTED
    assert cgroup_adapter.thaw(cgroup)
    session.until_state(PROMPT)
