"""Every process of a contained session belongs for life to the command and the actors that started
it: background jobs, ports, what left its parents behind."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.halt import cgroup
from process.acting import add_actor
from process.commanding import PATIENCE_S, Hold

ORPHAN = (
    "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
    "open('{ready}', 'w').write(str(os.getpid()))\ntime.sleep(300)\n"
)
SHELLS = ("bash", "zsh", "fish")
START = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish",)}


@pytest.fixture(autouse=True)
def _possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with Hold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "bot", "execute", "--all")
        add_actor(hold, "otto", "execute", "--all")
        yield hold


def lab(hold: Hold, name: str, kind: str = "bash") -> str:
    hold.ok("run", "-d", "--name", name, "--level", "contained", "--", *START[kind])
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    return name


def by(hold: Hold, actor: str, session: str, line: str) -> None:
    done = hold("--as", actor, "exec", session, "--", line)
    assert done.returncode == 0, done


def why(hold: Hold, session: str, target: str) -> dict[str, Any]:
    found: dict[str, Any] = hold.json("why", session, target)
    return found


def numbers(found: dict[str, Any]) -> list[int]:
    return [link["number"] for link in found["chain"]]


def pid_of(hold: Hold, session: str, *argv: str) -> int:
    """The host's number of the process with this command line."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for process in hold.json("graph", session)["processes"]:
            if process["argv"][-len(argv) :] == [*argv]:
                return int(process["pid"])
    raise AssertionError(f"no process {argv}")


def groups(hold: Hold, session: str) -> list[str]:
    """Every group of single commands below the session's own."""
    shell = hold.json("show", session)["pid"]
    own = next(
        line[3:]
        for line in Path(f"/proc/{shell}/cgroup").read_text().splitlines()
        if line.startswith("0::")
    )
    name = hold.json("show", session)["id"]
    unified = cgroup.home("x")
    assert unified is not None
    root = Path("/sys/fs/cgroup/unified" if "unified" in unified else "/sys/fs/cgroup")
    session_root = root / own.lstrip("/")[: own.index(name) - 1 + len(name)]
    return [str(path) for path in session_root.rglob("run-*")]


def kill_daemon(hold: Hold) -> None:
    before = hold.json("doctor")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while hold.json("doctor")["daemon_pid"] == before:
        assert time.monotonic() < deadline


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("kind", SHELLS)
def test_each_background_job_belongs_to_its_own_command_also_of_one_actor(
    hold: Hold, kind: str
) -> None:
    session = lab(hold, f"jobs-{kind}", kind)
    by(hold, "bot", session, "true")
    by(hold, "bot", session, "sleep 301 &")
    by(hold, "bot", session, "sleep 302 &")
    by(hold, "otto", session, "sleep 303 &")
    by(hold, "otto", session, "true")
    for seconds, actor, number in (("301", "bot", 2), ("302", "bot", 3), ("303", "otto", 4)):
        found = why(hold, session, f"pid:{pid_of(hold, session, 'sleep', seconds)}")
        assert (found["originators"], numbers(found), found["note"]) == ([actor], [number], "")
    hold.ok("end", session)


@pytest.mark.requirement("A7")
def test_a_process_that_left_its_parents_behind_still_belongs_to_its_command(
    hold: Hold, tmp_path: Path
) -> None:
    session, script, ready = lab(hold, "orphan"), tmp_path / "orphan.py", tmp_path / "ready"
    script.write_text(ORPHAN.format(ready=ready))
    by(hold, "bot", session, f"python3 {script}")
    by(hold, "otto", session, f"until [ -s {ready} ]; do sleep 0.01; done")
    pid = pid_of(hold, session, str(script))
    found = why(hold, session, f"pid:{pid}")
    assert (found["originators"], numbers(found)) == (["bot"], [1])
    kill_daemon(hold)
    found = why(hold, session, f"pid:{pid}")
    assert (found["known"], found["originators"], numbers(found)) == (True, ["bot"], [1])
    hold.ok("end", session)


def test_a_port_leads_to_the_command_that_serves_it(hold: Hold) -> None:
    session = lab(hold, "served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = f"import socket,time; s=socket.create_server(('127.0.0.1',{port})); time.sleep(300)"
    by(hold, "bot", session, f'python3 -c "{serve}" &')
    by(hold, "otto", session, "sleep 304 &")
    deadline = time.monotonic() + PATIENCE_S
    while hold("why", session, f"port:{port}").returncode:  # nothing listens there yet
        assert time.monotonic() < deadline
    found = why(hold, session, f"port:{port}")
    assert (found["originators"], numbers(found)) == (["bot"], [1])
    hold.ok("end", session)


def test_what_uses_state_of_another_has_both_behind_it(hold: Hold) -> None:
    session = lab(hold, "used")
    by(hold, "bot", session, "HOW_LONG=305")
    by(hold, "otto", session, "sleep $HOW_LONG &")
    pid = pid_of(hold, session, "sleep", "305")
    found = why(hold, session, f"pid:{pid}")
    assert (found["originators"], numbers(found)) == (["otto", "bot"], [2, 1])
    process = next(p for p in hold.json("graph", session)["processes"] if p["pid"] == pid)
    assert (process["trigger"], process["originators"]) == ("otto", ["otto", "bot"])
    hold.ok("end", session)


def test_commands_that_leave_nothing_leave_no_groups(hold: Hold) -> None:
    session = lab(hold, "many")
    for actor in ("bot", "otto"):
        by(hold, actor, session, "for i in 1 2 3; do sleep 0; done")
    for _ in range(20):
        by(hold, "bot", session, "true")
    assert len(groups(hold, session)) == 1  # the shell's own
    for seconds in range(310, 316):
        by(hold, "bot", session, f"sleep {seconds} &")
    by(hold, "bot", session, "true")
    assert len(groups(hold, session)) == 7
    by(hold, "bot", session, "kill $(jobs -p); wait")
    by(hold, "bot", session, "true")
    deadline = time.monotonic() + PATIENCE_S
    while len(groups(hold, session)) > 1:
        assert time.monotonic() < deadline
        by(hold, "bot", session, "true")
    hold.ok("end", session)


def test_a_halt_of_one_actor_stops_whatever_it_has_a_part_in_and_the_shell_goes_on(
    hold: Hold,
) -> None:
    session = lab(hold, "halted")
    by(hold, "bot", session, "sleep 320 &")
    by(hold, "bot", session, "sleep 321 &")
    hold.ok("--as", "bot", "send", session, "sleep 32")
    hold.ok("seize", session)
    hold.ok("send", "--enter", session, "2 &")
    hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
    hold.ok("turn", session, "yield")
    by(hold, "otto", session, "sleep 323 &")
    pids = {s: pid_of(hold, session, "sleep", s) for s in ("320", "321", "322", "323")}
    said = hold.ok("halt", session, "--only-actor", "bot")
    assert "moved itself out of the actor's group" in said  # what this halt cannot say
    frozen = {s: _is_frozen(pid) for s, pid in pids.items()}
    assert frozen == {"320": True, "321": True, "322": True, "323": False}
    by(hold, "otto", session, "true")  # the shell itself goes on
    hold.ok("resume", session)
    assert not any(_is_frozen(pid) for pid in pids.values())
    hold.ok("end", session)


def _is_frozen(pid: int) -> bool:
    own = next(
        line[3:]
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if line.startswith("0::")
    )
    unified = cgroup.home("x")
    assert unified is not None
    root = "/sys/fs/cgroup/unified" if "unified" in unified else "/sys/fs/cgroup"
    return cgroup.frozen(f"{root}{own}")
