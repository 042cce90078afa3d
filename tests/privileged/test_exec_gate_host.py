"""The exec gate of a whole host: policies set by command, and daemons, supervisors and answerers
that are killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.hosting import FaultHost
from holdfast.adapters.halt import cgroup
from holdfast.adapters.seccomp import filter as seccomp
from process.waiting import until

EXECS = 2000
NO_DATES = """
default = "allow"
[[rule]]
name = "no-dates"
what = "exec"
commands = ["date"]
then = "refuse"
reason = "no dates here"
"""


@pytest.fixture
def host() -> Iterator[FaultHost]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable() or seccomp.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2 and seccomp: {why}")
    running = FaultHost().up()
    try:
        yield running
    finally:
        running.down()


def ok(host: FaultHost, *words: str) -> str:
    done = host.hold(*words)
    assert done.returncode == 0, done.stderr + host.log()
    return done.stdout


def set_policy(host: FaultHost, session: str) -> str:
    path = host.work / "policy.toml"
    path.write_text(NO_DATES)
    return ok(host, "policy", "set", str(path), "--session", session)


def answerer(host: FaultHost) -> int:
    """The host's answerer; 0: there is none."""
    home = f"HOLDFAST_HOME={host.home}".encode()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes()
                mine = home in (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mine and b"holdfast.adapters.seccomp.answerer" in words:
                return int(process.name)
    return 0


@pytest.mark.requirement("A8")
def test_a_policy_set_in_a_sessions_life_judges_what_its_programs_execute(host: FaultHost) -> None:
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    assert "UTC" in ok(host, "exec", "s", "--", "python3 -c \"import os; os.system('date -u')\"")
    assert answerer(host) == 0
    set_policy(host, "s")
    again = host.hold("exec", "s", "--", "python3 -c \"import os; os.system('date -u')\"")
    assert "UTC" not in again.stdout and "Operation not permitted" in again.stdout
    lines = ok(host, "log", "s", "--json").splitlines()
    judged = next(
        entry
        for entry in map(json.loads, lines)
        if entry["kind"] == "judged" and entry["body"]["kind"] == "exec"
    )
    assert "date" in judged["body"]["text"]
    assert judged["body"]["reason"].startswith("no dates here")
    ok(host, "policy", "off", "--session", "s")
    assert "UTC" in ok(host, "exec", "s", "--", "python3 -c \"import os; os.system('date -u')\"")


_ANSWERS_ITSELF = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
    sock.settimeout(10)
    sock.connect(sys.argv[1])
    print("closed" if sock.recv(65536) == b"" else "asked")
"""


@pytest.mark.requirement("A8", "A11")
def test_a_program_of_root_inside_does_not_answer_for_the_daemon(host: FaultHost) -> None:
    """It can reach the answerer's socket; whoever connects last is asked."""
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    set_policy(host, "s")
    ok(host, "exec", "s", "--", "/bin/true")  # by now there is an answerer
    script = host.work / "answers.py"
    script.write_text(_ANSWERS_ITSELF)
    said = ok(host, "exec", "s", "--", f"python3 {script} {host.home}/run/gate.sock")
    assert said.split() == ["closed"]
    refused = host.hold("exec", "s", "--", "python3 -c \"import os; os.system('date -u')\"")
    assert "UTC" not in refused.stdout


@pytest.mark.requirement("A8")
def test_sessions_without_an_exec_gate_are_named(host: FaultHost) -> None:
    ok(host, "run", "-d", "--name", "plain", "--level", "plain", "--", "bash", "--norc")
    ok(host, "run", "-d", "--name", "without", "--gate", "off", "--", "bash", "--norc")
    ok(host, "run", "-d", "--name", "with", "--", "bash", "--norc")
    assert "plain" in set_policy(host, "plain").splitlines()[1]
    assert "without" in set_policy(host, "without").splitlines()[1]
    assert len(set_policy(host, "with").splitlines()) == 1
    shown = [json.loads(ok(host, "show", name, "--json")) for name in ("plain", "without", "with")]
    assert [bool(each["ungated"]) for each in shown] == [True, True, False]
    assert "exec gate" in ok(host, "show", "plain")


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("judged", [False, True])
def test_no_exec_fails_or_hangs_while_the_host_is_killed_in_any_order(
    host: FaultHost, judged: bool
) -> None:
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    if judged:
        set_policy(host, "s")
    log, progress = host.work / "log", host.work / "progress"
    loop = (
        f"(i=0; n=0; while [ $i -lt {EXECS} ]; do /bin/true $((i % 50)) || n=$((n+1)); i=$((i+1)); "
        f"[ $((i % 100)) = 0 ] && echo $i > {progress}; done; echo failed $n > {log}) &"
    )
    ok(host, "exec", "s", "--", loop)
    for victim in ("daemon", "answerer", "supervisor", "answerer", "daemon", "all"):
        before = reached(progress)
        until("it goes on", lambda: reached(progress) > before or log.exists())  # noqa: B023
        pids = {"daemon": host.daemon_pid(), "supervisor": host.supervisor_pid()}
        pids["answerer"] = answerer(host)
        for name, pid in pids.items():
            if victim in (name, "all") and pid:
                os.kill(pid, signal.SIGKILL)
        host.hold("ls")  # which starts what is not there
    until("the loop is over", lambda: log.exists() and log.read_text())
    assert log.read_text() == "failed 0\n"


def reached(progress: Path) -> int:
    try:
        return int(progress.read_text() or 0)
    except (OSError, ValueError):
        return 0


HOLD_DATES = NO_DATES.replace('then = "refuse"', 'then = "hold"\nquorum = 1')


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("killed", [False, True])
def test_a_held_program_is_listed_and_runs_when_somebody_else_approves(
    host: FaultHost, killed: bool
) -> None:
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    (host.work / "policy.toml").write_text(HOLD_DATES)
    ok(host, "policy", "set", str(host.work / "policy.toml"), "--session", "s")
    ok(host, "actor", "add", "ann", "--kind", "human")
    ok(host, "grant", "ann", "approve", "s")
    out = host.work / "out"
    script = host.work / "script"
    script.write_text(f"import os; os.system('date -u > {out}')\n")
    ok(host, "exec", "s", "--", f"python3 {script} &")
    (asked,) = until("it is held", lambda: approvals(host))
    assert "date -u" in asked["text"] and asked["kind"] == "exec"
    assert host.hold("approve", asked["id"]).returncode != 0, "nobody approves its own"
    if killed:
        os.kill(host.daemon_pid() or 0, signal.SIGKILL)
        (again,) = until("it is held still", lambda: approvals(host))
        assert again["id"] == asked["id"]
    assert not out.exists() or not out.read_text()
    ok(host, "--as", "ann", "approve", asked["id"])
    # The shell that was held may run now, and what it starts belongs to it.
    until("it runs", lambda: out.exists() and "UTC" in out.read_text())
    assert approvals(host) == []


def approvals(host: FaultHost) -> list[dict[str, str]]:
    done = host.hold("approvals", "--json")
    found: list[dict[str, str]] = json.loads(done.stdout or "[]")
    return [each for each in found if each["status"] == "pending"]


@pytest.mark.requirement("A8")
def test_a_line_that_was_approved_is_not_held_again_for_its_programs(host: FaultHost) -> None:
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    ok(host, "policy", "set", "starter:hold-destructive", "--session", "s")
    ok(host, "actor", "add", "bot", "--kind", "agent")
    ok(host, "grant", "bot", "execute", "s")
    doomed = host.work / "doomed"
    for line in (f"rm -rf {doomed}", f"sh -c 'true; rm -rf {doomed}'"):
        doomed.mkdir()
        host.hold("--as", "bot", "send", "--enter", "s", line)
        (asked,) = until("it is held", lambda: approvals(host))
        assert asked["kind"] == "line"
        ok(host, "approve", asked["id"])
        until("it has run", lambda: not doomed.exists())
        assert approvals(host) == []
        ok(host, "wait", "s", "--for", "prompt", "--timeout", "20")


@pytest.mark.requirement("A8")
def test_a_script_does_not_get_by_two_people_and_explain_has_its_arguments(
    host: FaultHost,
) -> None:
    ok(host, "run", "-d", "--name", "s", "--", "bash", "--norc")
    ok(host, "policy", "set", "starter:two-person", "rm *doomed*", "--session", "s")
    ok(host, "actor", "add", "ann", "--kind", "human")
    ok(host, "grant", "ann", "approve", "s")
    doomed, script = host.work / "doomed", host.work / "script"
    doomed.write_text("")
    script.write_text(f"#!/bin/sh\n/bin/rm {doomed}\n")
    script.chmod(0o700)
    ok(host, "exec", "s", "--", f"{script} &")
    (asked,) = until("it is held", lambda: approvals(host))
    assert asked["kind"] == "exec" and doomed.exists()
    ok(host, "--as", "ann", "approve", asked["id"])
    until("it has run", lambda: not doomed.exists())
    lines = ok(host, "log", "s", "--json", "--kind", "judged").splitlines()
    judged = next(each for each in map(json.loads, lines) if each["body"]["kind"] == "exec")
    assert judged["body"]["argv"] == ["/bin/rm", str(doomed)]
    explained = json.loads(ok(host, "policy", "explain", "s", str(judged["seq"]), "--json"))
    assert explained["outcome"] == "hold" and "rm" in explained["facts"]["commands"]
