"""M2: what stands in the way of a move, found in real processes of contained sessions. What CRIU
says of the same is in its own tests."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import move_facts
from holdfast.adapters.proc.terminal import identity
from holdfast.core.continuity.movability import judge
from holdfast.model.movability import HostAbility, Movability, MoveFinding, MoveVerdict
from holdfast.model.state import Level
from process.commanding import Hold
from process.launching import Sessions
from process.observed import BASH, Observed
from process.reaching import Faraway

ABLE = HostAbility(Level.MOVABLE, is_root=True, criu="4.2.1")
# System calls that Python has no name for.
CALL = "import ctypes, os, time; call = ctypes.CDLL(None, use_errno=True).syscall\n"
STAY = "\nprint('re' + 'ady', flush=True)\ntime.sleep(1000)\n"


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if why := cgroup.unavailable():
        pytest.skip(f"needs cgroup v2: {why}")
    with Sessions(Level.CONTAINED) as running:
        yield running


def looked(session: Observed) -> Movability:
    facts = move_facts.gather(
        session.graph(), session.place.pid, identity(session.place, session.master)
    )
    return judge(facts, ABLE)


def program(sessions: Sessions, code: str) -> Observed:
    running = sessions.launch(sys.executable, "-c", CALL + code + STAY)
    session = Observed(running.place, running.master, shell=False)
    session.until(
        lambda: b"ready" in session.output or b"Error" in session.output, lambda: "no ready"
    )
    if b"ENOSYS" in session.output:
        pytest.skip("this kernel has no such call")
    assert b"ready" in session.output, session.output
    return session


def findings(found: Movability) -> list[MoveFinding]:
    return [finding for process in found.processes for finding in process.findings]


def until(session: Observed, what: str) -> MoveFinding:
    seen: list[MoveFinding] = []

    def holds() -> bool:
        seen[:] = [each for each in findings(looked(session)) if what in each.what]
        return bool(seen)

    session.until(holds, lambda: f"want {what!r}: {findings(looked(session))}")
    return seen[0]


def test_an_idle_shell_and_its_jobs_are_movable(sessions: Sessions) -> None:
    running = sessions.launch(*BASH)
    session = Observed(running.place, running.master, shell=True)
    session.type("sleep 1000 | cat & sleep 1001 &\r")
    session.until(lambda: len(looked(session).processes) == 5, lambda: "no jobs")
    found = looked(session)
    assert found.movable and findings(found) == []
    assert {each.verdict for each in found.processes} == {MoveVerdict.MOVABLE}
    assert 0 < found.estimate.bytes < 64 << 20
    assert [each.pid for each in found.processes][:2] == [1, 2]


MADE = {
    "io_uring": "assert call(425, 8, ctypes.create_string_buffer(256)) >= 0",
    "perf_event": (
        "a = ctypes.create_string_buffer(128); a[0] = 1; a[4] = 128; a[40] = 0x61\n"
        "assert call(298, a, 0, -1, -1, 0) >= 0"
    ),
    "userfaultfd": "assert call(323, 0) >= 0",
    "landlock-ruleset": ("a = (ctypes.c_uint64 * 1)(1)\nassert call(444, a, 8, 0) >= 0, 'ENOSYS'"),
    "AF_VSOCK": "import socket; s = socket.socket(40, socket.SOCK_STREAM)",
    "message queue": (
        "assert call(240, b'holdfast-preflight', os.O_CREAT | os.O_RDWR, 0o600, None) >= 0"
    ),
    "ipc namespace": "assert call(272, 0x08000000) == 0",
    "user namespace": "assert call(272, 0x10000000) == 0",
    "pid namespace": ("assert call(272, 0x20000000) == 0\nif os.fork() == 0: time.sleep(1000)"),
    "(deleted)": (
        "import tempfile; f = tempfile.TemporaryFile(dir='/var/tmp', buffering=0); "
        "os.posix_fallocate(f.fileno(), 0, 65 << 20)"
    ),
}


@pytest.mark.requirement("M2")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="calls by their x86-64 numbers")
@pytest.mark.parametrize("what", MADE)
def test_what_a_program_made_is_found(sessions: Sessions, what: str) -> None:
    session = program(sessions, MADE[what])
    found = until(session, what)
    assert found.verdict is MoveVerdict.BLOCKS
    assert not looked(session).movable


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="calls by their x86-64 numbers")
def test_an_io_uring_that_is_only_mapped_is_found(sessions: Sessions) -> None:
    session = program(
        sessions,
        "fd = call(425, 8, ctypes.create_string_buffer(256)); assert fd >= 0\n"
        "assert call(9, None, 4096, 3, 1, fd, ctypes.c_long(0x10000000)) != -1; os.close(fd)",
    )
    assert until(session, "mapped: io_uring").verdict is MoveVerdict.BLOCKS


@pytest.mark.requirement("M3")
def test_connections_are_told_apart_by_where_the_other_end_is(
    sessions: Sessions, tmp_path: Path
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as outside,
        socket.socket(socket.AF_UNIX) as beside,
    ):
        # An abstract name: the session does not see the directories of tests.
        name = f"\0holdfast-{os.getpid()}-{tmp_path.name}"
        beside.bind(name)
        beside.listen()
        session = program(
            sessions,
            "import socket\n"
            f"a = socket.create_connection(('127.0.0.1', {outside.getsockname()[1]}))\n"
            f"b = socket.socket(socket.AF_UNIX); b.connect({name!r})\n"
            "c = socket.socketpair()\n"
            "d = socket.create_server(('127.0.0.1', 0))\n"
            "e = socket.create_connection(d.getsockname()); f = d.accept()",
        )
        accepted, _ = beside.accept()
        found = findings(looked(session))
        accepted.close()
        assert [each.verdict for each in found] == [MoveVerdict.RESETS, MoveVerdict.BLOCKS]
        assert f"127.0.0.1:{outside.getsockname()[1]}" in found[0].what
        assert "unix socket" in found[1].what


def test_a_traced_process_is_found_until_it_is_let_go(sessions: Sessions) -> None:
    session = program(
        sessions,
        "child = os.fork()\n"
        "if child == 0:\n    time.sleep(1000)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.ptrace(0x4206, child, None, None) == 0",
    )
    assert until(session, "traced by").verdict is MoveVerdict.BLOCKS


def test_a_process_that_waits_in_the_kernel_is_found(sessions: Sessions) -> None:
    """The parent of a vfork waits so until its child is gone."""
    session = program(
        sessions,
        "import threading\n"
        "threading.Thread(target=lambda: call(58), daemon=True)\n"
        "if os.fork() == 0:\n"
        "    libc = ctypes.CDLL(None)\n"
        "    pid = libc.vfork()\n"
        "    if pid == 0:\n        libc.sleep(1000)\n"
        "time.sleep(0)",
    )
    assert until(session, "waits in the kernel").verdict is MoveVerdict.BLOCKS


def test_a_program_under_a_terminal_inside_is_found(sessions: Sessions) -> None:
    session = program(
        sessions,
        "import pty\n"
        "pid, master = pty.fork()\n"
        "if pid == 0:\n"
        "    if os.fork() == 0:\n        os.setpgid(0, 0)\n"
        "    time.sleep(1000)",
    )
    found = until(session, "terminal of another program")
    assert found.verdict is MoveVerdict.RESETS
    assert looked(session).movable
    assert len(findings(looked(session))) == 1, "the first process in it gets it back"


def test_programs_in_use_are_known_with_their_builds(sessions: Sessions) -> None:
    running = sessions.launch("sleep", "1000")
    session = Observed(running.place, running.master, shell=False)
    pids = [process.pid for process in session.graph().processes]
    deadline = time.monotonic() + 15
    while True:
        needed = {each.path: each for each in move_facts.needed_files(pids)}
        if any("libc" in path for path in needed) or time.monotonic() > deadline:
            break
    sleep = next(each for path, each in needed.items() if path.endswith("/sleep"))
    assert sleep.size == os.stat(sleep.path).st_size
    assert len(sleep.build_id) == 40
    for each in needed.values():
        assert move_facts.file_at("", each.path) == each
    assert move_facts.file_at("", "/nowhere") is None


@pytest.mark.requirement("M2")
def test_hold_can_move_answers_for_a_session_of_the_host(sessions: Sessions) -> None:
    """`sessions` only for its reasons to skip."""
    with Hold() as hold:
        hold.ok("up", "-d")
        hold.ok("run", "-d", "--name", "quiet", "--level", "contained", "--", "sleep", "1000")
        hold.ok("run", "-d", "--name", "low", "--level", "plain", "--", "sleep", "1000")
        answer = json.loads(hold.ok("can-move", "quiet", "--json"))
        assert {"movable", "processes", "estimate", "level", "findings"} <= answer.keys()
        assert [each["verdict"] for each in answer["processes"]] == ["movable"] * 2
        assert {"pid", "command", "verdict", "findings"} <= answer["processes"][1].keys()
        assert "sleep 1000" in answer["processes"][1]["command"]
        assert answer["estimate"]["bytes"] > 0 and answer["estimate"]["frozen_ms"] > 0
        low = json.loads(hold.ok("can-move", "low", "--json"))
        assert not low["movable"]
        assert low["findings"][0]["what"] == "level plain"
        said = hold.ok("can-move", "low")
        assert "low cannot be moved" in said and "to do: start the session again" in said


def test_a_machine_that_was_joined_is_compared_too(sessions: Sessions) -> None:
    """The same machine, by another host: it has the same programs. Rights are asked for there."""
    with closing(Faraway(host=Hold())) as far:
        far.client.ok("up", "-d", "--no-relay")
        far.client.ok("run", "-d", "--name", "here", "--level", "contained", "--", "sleep", "1000")
        alone = json.loads(far.client.ok("can-move", "here", "--json"))
        there = json.loads(far.client.ok("can-move", "here", "--to", "box", "--json"))
        added = [each for each in there["findings"] if each not in alone["findings"]]
        assert [each["what"] for each in added] in ([], ["box: no CRIU"])
        assert there["processes"][1]["verdict"] == "movable"
        guest = far.another_client(role="execute")
        guest.ok("up", "-d", "--no-relay")
        guest.ok("run", "-d", "--name", "mine", "--", "sleep", "1000")
        guest.fails("not_permitted", "can-move", "mine", "--to", "box")
        guest.close()
