"""A shell started in a session's own one: what is true of the first is true of it, at both levels:
its prompt, `exec`, the line gate, and who is behind what; and then of the first one again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.model.errors import GateRefused
from process.acting import add_actor, connected
from process.commanding import Hold
from process.gating import GatedHold
from process.waiting import PATIENCE_S, until

LEVELS = ("plain", "contained")
SHELLS = ("bash", "zsh", "fish")
STARTS = {"bash": ["bash", "--norc"], "zsh": ["zsh", "-f"], "fish": ["fish"]}
_numbers = iter(range(1000))


@pytest.fixture(scope="module")
def hold() -> Iterator[GatedHold]:
    hold = GatedHold()
    try:
        hold.ok("up", "-d")
        add_actor(hold, "agent", "execute", "--all")
        yield hold
    finally:
        hold.close()


@pytest.fixture(params=LEVELS)
def session(request: pytest.FixtureRequest, hold: GatedHold) -> Iterator[str]:
    yield from a_session(hold, request.param)


def a_session(hold: GatedHold, level: str, shell: str = "bash") -> Iterator[str]:
    hold.no_rules()
    name = f"outer{next(_numbers)}"
    hold.ok("run", "-d", "--level", level, "--name", name, "--", *STARTS[shell])
    hold.ok("wait", name, "--for", "prompt")
    yield name
    hold.no_rules()
    hold("end", name)


def enter(hold: Hold, name: str, line: str) -> None:
    """Type a line that starts a shell, and wait for the prompt of that one."""
    begun = len(commands(hold, name))
    hold.ok("send", name, "--enter", line)
    until("it has begun", lambda: len(commands(hold, name)) > begun)
    until("its prompt", lambda: hold.json("show", name)["state"] == "prompt")


def leave(hold: Hold, name: str) -> None:
    left = [each["number"] for each in commands(hold, name, "command_ended")]
    hold.ok("send", name, "--enter", "exit")
    until("it has ended", lambda: len(commands(hold, name, "command_ended")) > len(left) + 1)
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")


def commands(hold: Hold, name: str, kind: str = "command_began") -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in hold.ok("log", name, "--json").splitlines() if line]
    return [each["body"] for each in entries if each["kind"] == kind]


def kill_daemon(hold: Hold) -> None:
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)


@pytest.mark.requirement("S7")
@pytest.mark.parametrize("inner", SHELLS)
@pytest.mark.parametrize("outer", SHELLS)
def test_exec_works_in_a_nested_shell_and_then_in_the_first_one(
    outer: str, inner: str, hold: GatedHold
) -> None:
    for name in a_session(hold, "plain", outer):
        enter(hold, name, inner)
        said = hold("exec", name, "--", "echo '!! said' here; false")
        assert (said.stdout, said.returncode) == ("!! said here\n", 1)
        leave(hold, name)
        assert hold.ok("exec", name, "--", "echo outside") == "outside\n"
        ended = {each["number"]: each["status"] for each in commands(hold, name, "command_ended")}
        assert sorted(ended) == [each["number"] for each in commands(hold, name)]


def test_a_command_that_ends_the_nested_shell_has_its_own_output_only(
    session: str, hold: GatedHold
) -> None:
    enter(hold, session, "zsh -f")
    done = hold("exec", session, "--", "echo last; exit 3")
    assert (done.stdout, done.returncode) == ("last\n", 3), done
    assert hold.ok("exec", session, "--", "echo first").split() == ["first"]


@pytest.mark.requirement("S7")
@pytest.mark.parametrize("line", ["bash -i", "env FOO=1 bash", "su", "bash --norc -i"])
def test_it_works_however_the_shell_was_started(line: str, session: str, hold: GatedHold) -> None:
    if line == "su" and os.getuid():
        pytest.skip("su asks others than root for a password")
    enter(hold, session, line)
    assert hold.ok("exec", session, "--", "echo inside") == "inside\n"
    leave(hold, session)
    assert hold.ok("exec", session, "--", "echo outside") == "outside\n"


@pytest.mark.requirement("S7")
def test_a_shell_that_does_not_report_is_named_with_what_to_do(
    session: str, hold: GatedHold
) -> None:
    hold.ok("send", session, "--enter", "sh -c 'exec bash --norc'")
    hold.ok("wait", session, "--for", "input", "--timeout", "20")
    said = hold.fails("terminal_in_use", "exec", session, "--", "true")
    assert "(bash, pid" in said and "C-d" in said
    hold.ok("keys", session, "C-d")
    hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
    assert hold.ok("exec", session, "--", "echo outside") == "outside\n"


def test_a_shell_that_exec_started_is_named_and_its_exec_ends_with_it(
    session: str, hold: GatedHold
) -> None:
    waits = hold.start("exec", session, "--", "bash --norc")
    try:
        until("it has begun", lambda: commands(hold, session))
        until("its prompt", lambda: hold.json("show", session)["state"] == "prompt")
        said = hold.fails("terminal_in_use", "exec", session, "--", "true")
        assert "(bash, pid" in said and "C-d" in said
        hold.ok("send", session, "--enter", "exit 5")
        assert waits.wait(PATIENCE_S) == 5
    finally:
        waits.kill()
        waits.communicate()


@pytest.mark.requirement("S1")
def test_another_daemon_goes_on_with_the_nested_shell(session: str, hold: GatedHold) -> None:
    enter(hold, session, "bash --norc")
    kill_daemon(hold)
    assert hold.ok("exec", session, "--", "echo at its first prompt") == "at its first prompt\n"
    kill_daemon(hold)
    assert hold.ok("exec", session, "--", "echo later") == "later\n"
    hold.ok("send", session, "--enter", "exit")
    hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
    until("the first one", lambda: hold("exec", session, "--", "true").returncode == 0)
    kill_daemon(hold)
    assert hold.ok("exec", session, "--", "echo outside") == "outside\n"


@pytest.mark.requirement("A8")
def test_a_line_in_a_nested_shell_is_judged_as_a_line(session: str, hold: GatedHold) -> None:
    enter(hold, session, "bash --norc")
    hold.rules(refuse=["forbidden"])
    hold.fails("gate_refused", "exec", session, "--", "echo forbidden")
    with connected(hold) as host:
        for key in ["echo forb", "idden"]:
            host.type_bytes(session, key.encode())
        with pytest.raises(GateRefused):
            host.keys(session, ["Enter"])
    assert hold.ok("exec", session, "--", "echo fine") == "fine\n"
    assert hold.lines_asked()[-2:] == ["echo forbidden", "echo fine"]
    hold.no_rules()
    leave(hold, session)
    hold.rules(refuse=["forbidden"])
    hold.fails("gate_refused", "exec", session, "--", "echo forbidden")


@pytest.mark.requirement("A7")
def test_what_another_actor_left_in_the_first_shell_is_still_theirs_after_a_nested_one(
    session: str, hold: GatedHold
) -> None:
    """A nested shell does not have the alias, and the first one has it again: it is not of whoever
    went in and out."""
    hold.ok("--as", "agent", "exec", session, "--", "alias build='echo trap'")
    until("it is seen", lambda: originators(hold, session, "alias:build") == ["agent"])
    enter(hold, session, "bash --norc")
    hold.ok("exec", session, "--", "alias other='echo mine'; export MINE=1")
    until("it is seen", lambda: originators(hold, session, "alias:other"))
    assert "agent" not in originators(hold, session, "alias:other")
    leave(hold, session)
    until("it is seen", lambda: originators(hold, session, "alias:other") == [])
    assert originators(hold, session, "alias:build") == ["agent"]


@pytest.mark.requirement("A7")
def test_whoever_started_a_nested_shell_is_behind_each_line_in_it(
    session: str, hold: GatedHold
) -> None:
    """It may have been started with anything: an environment, a file that it reads."""
    hold.ok("--as", "agent", "send", session, "--enter", "env INPUTRC=/tmp/none bash --norc")
    until("its prompt", lambda: len(commands(hold, session)) == 1)
    until("its prompt", lambda: hold.json("show", session)["state"] == "prompt")
    hold.ok("seize", session)
    hold.rules(refuse=["never"])
    hold.ok("exec", session, "--", "echo mine")
    asked = next(each for each in reversed(hold.asked()) if each["text"] == "echo mine")
    agent = next(each["id"] for each in hold.json("actor", "ls") if each["name"] == "agent")
    assert agent in json.dumps(asked)


@pytest.mark.requirement("A7")
def test_a_process_of_a_nested_shell_is_of_the_command_that_started_it(
    session: str, hold: GatedHold
) -> None:
    enter(hold, session, "bash --norc")
    hold.ok("exec", session, "--", "true")
    hold.ok("exec", session, "--", "sleep 300 & echo")
    number = commands(hold, session)[-1]["number"]
    graph = hold.json("graph", session)
    pid = next(each["pid"] for each in graph["processes"] if "sleep" in " ".join(each["argv"]))
    found = hold.json("why", session, f"pid:{pid}")
    assert found["chain"][0]["number"] == number, found
    parent = next(each["ppid"] for each in graph["processes"] if each["pid"] == pid)
    assert parent not in (graph["root"], hold.json("show", session)["pid"])
    assert hold.json("why", session, f"pid:{parent}")["chain"][0]["number"] == 1


def originators(hold: Hold, session: str, target: str) -> list[str]:
    return list(hold.json("why", session, target)["originators"])
