"""S6, S7 at level contained: own pid numbers, own devpts, the cgroup as the session's border."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup
from holdfast.model.state import Level, SessionState
from process.launching import Sessions
from process.observed import BASH, Observed, has, named


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if why := cgroup.unavailable():
        pytest.skip(f"needs cgroup v2: {why}")
    with Sessions(Level.CONTAINED) as running:
        yield running


def observed(sessions: Sessions, *argv: str, shell: bool = False) -> Observed:
    running = sessions.launch(*argv)
    return Observed(running.place, running.master, shell=shell)


def test_states_are_told_apart_on_a_terminal_of_its_own_devpts(sessions: Sessions) -> None:
    session = observed(sessions, *BASH, shell=True)
    session.until_state(SessionState.PROMPT)
    session.type("read -s x\r")
    session.until_state(SessionState.SECRET)
    session.type("\rsetsid -w cat\r")
    session.until_state(SessionState.INPUT)
    session.type("\x04")
    session.until_state(SessionState.PROMPT)
    session.type("sleep 100\r")
    session.until_graph(has("sleep"))
    session.until_state(SessionState.WORKING)


def test_the_terminal_of_the_same_name_next_door_is_another_one(sessions: Sessions) -> None:
    """Both are /dev/pts/0; only the devpts instance tells them apart."""
    one, other = (observed(sessions, "cat") for _ in range(2))
    one.until_state(SessionState.INPUT)
    other.until_state(SessionState.INPUT)
    assert one.place.tty == other.place.tty
    crossed = Observed(
        one.place.replace(pid=other.place.pid, cgroup=other.place.cgroup), one.master, shell=False
    )
    assert crossed.evidence().tty_waiters == ()


def test_processes_carry_both_numbers_and_orphans_stay(sessions: Sessions) -> None:
    session = observed(sessions, *BASH, shell=True)
    session.until_state(SessionState.PROMPT)
    session.type("(setsid sleep 100 &)\r")
    graph = session.until_graph(lambda graph: len(graph.processes) == 3 and has("sleep")(graph))
    assert graph.root == session.place.pid
    init = next(process for process in graph.processes if process.pid == graph.root)
    shell, sleep = named(graph, "bash"), named(graph, "sleep")
    assert (init.pid_inside, shell.pid_inside) == (1, 2)
    assert shell.ppid == sleep.ppid == init.pid
    assert graph.terminal.size.cols == 100
    assert graph.truncated == ""


def test_a_frozen_session_is_halted_and_back_where_it_was(sessions: Sessions) -> None:
    session = observed(sessions, "less", "/etc/passwd")
    session.until_state(SessionState.INPUT)
    freeze = Path(session.place.cgroup, "cgroup.freeze")
    freeze.write_text("1")
    session.until_state(SessionState.HALTED)
    freeze.write_text("0")
    session.until_state(SessionState.INPUT)
