"""A line typed while the shell is busy is attributed too, though no prompt stood there yet; so is
one that another daemon saw typed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from process.acting import connected, files_with
from process.commanding import Hold
from process.recorded import add_actor, log

SECRET = "sekrit-9981-ahead"
BLIND = "(typed blind, not kept)"


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> None:
    """Two agents who may write everywhere, and one who may only look."""
    add_actor(host_home, "bot")
    add_actor(host_home, "otto")
    add_actor(host_home, "guest", "read")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A busy shell waits for what is written here."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def busy(hold: Hold, name: str, gate: Path, first: str = "true") -> None:
    """A shell that runs a command of bot's: `first`, then until the gate opens.

    Only once it runs is the terminal out of the line editor's hands: an Enter that comes sooner
    stays a carriage return, which ends no line for the program that reads it."""
    hold.shell(name)
    sent(hold, "bot", name, f"echo $((6*7))-runs; {first}; echo $((6*7))-busy; cat {gate}")
    hold.ok("wait", name, "--for", "text:42-runs", "--timeout", "20")
    if first == "true":
        hold.ok("wait", name, "--for", "text:42-busy", "--timeout", "20")


def sent(hold: Hold, actor: str, name: str, text: str, *, enter: bool = True) -> None:
    with connected(hold, actor) as host:
        host.send(name, text, enter=enter)


def began(hold: Hold, name: str, count: int) -> list[tuple[list[str], str]]:
    """Who typed each command but the first, and its text, when so many have begun and ended."""
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    found = log(hold, name, "--kind", "command_began")
    assert len(found) == count + 1, found
    names = {each["id"]: each["name"] for each in hold.json("actor", "ls")}
    for each in found:
        assert each["body"]["authors"][-1] == each["actor"]
    return [
        ([names[who] for who in each["body"]["authors"]], each["body"]["text"])
        for each in found[1:]
    ]


def killed(hold: Hold) -> None:
    """The daemon; the keeper starts another."""
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)


@pytest.mark.requirement("A3", "M8")
def test_a_command_typed_before_its_prompt_is_of_whoever_typed_it(
    host_home: Hold, gate: Path
) -> None:
    hold = host_home
    hold.shell("ahead")
    busy, ahead = f"echo $((6*7))-busy; cat {gate}", "echo $((6*7))-ahead"
    hold.ok("--as", "bot", "send", "ahead", "--enter", busy)
    hold.ok("wait", "ahead", "--for", "text:42-busy", "--timeout", "20")
    hold.ok("--as", "bot", "send", "ahead", "--enter", ahead)
    gate.write_text("")
    hold.ok("wait", "ahead", "--for", "text:42-ahead", "--timeout", "20")
    began = log(hold, "ahead", "--kind", "command_began")
    assert [(each["actor_name"], each["body"]["text"]) for each in began] == [
        ("bot", busy),
        ("bot", ahead),
    ]


@pytest.mark.requirement("A3", "M8")
def test_lines_of_several_typed_ahead_are_each_of_their_own(host_home: Hold, gate: Path) -> None:
    busy(host_home, "several", gate)
    sent(host_home, "otto", "several", "echo of-otto")
    sent(host_home, "bot", "several", "echo of-")
    sent(host_home, "bot", "several", "bot; echo half", enter=False)
    sent(host_home, "otto", "several", "; echo $((6*7))-done")
    gate.write_text("")
    host_home.ok("wait", "several", "--for", "text:42-done", "--timeout", "20")
    assert began(host_home, "several", 3) == [
        (["otto"], "echo of-otto"),
        (["bot"], "echo of-"),
        (["bot", "otto"], "bot; echo half; echo $((6*7))-done"),
    ]


@pytest.mark.requirement("A3")
def test_a_line_that_a_program_read_is_of_no_command(host_home: Hold, gate: Path) -> None:
    busy(host_home, "eaten", gate, first="head -n1")
    sent(host_home, "otto", "eaten", "for head")
    host_home.ok("wait", "eaten", "--for", "text:42-busy", "--timeout", "20")
    sent(host_home, "bot", "eaten", "echo $((6*7))-done")
    gate.write_text("")
    host_home.ok("wait", "eaten", "--for", "text:42-done", "--timeout", "20")
    assert began(host_home, "eaten", 1) == [(["bot"], "echo $((6*7))-done")]


@pytest.mark.parametrize("way", ("seen", "yield", "seize"))
def test_a_line_typed_ahead_blind_stays_secret(host_home: Hold, gate: Path, way: str) -> None:
    hold, name = host_home, f"dark-{way}"
    busy(hold, name, gate)
    hold.ok("turn", name, "blind")
    sent(hold, "", name, f": {SECRET}")
    hold.ok("seize", name) if way == "seize" else hold.ok("turn", name, way)
    if way != "yield":
        hold.ok("turn", name, "yield")
    sent(hold, "otto", name, "echo $((6*7))-done")
    gate.write_text("")
    hold.ok("wait", name, "--for", "text:42-done", "--timeout", "20")
    (_, dark), (by, seen) = began(hold, name, 2)
    assert (dark, by, seen) == (BLIND, ["otto"], "echo $((6*7))-done")
    assert files_with(hold, SECRET) == []


# -- between a command and its prompt ----------------------------------------------------------


def at_no_prompt(hold: Hold, name: str, gate: Path) -> None:
    """A shell whose command has ended, and whose prompt waits for the gate."""
    hold.shell(name)
    # As a user's own: the end is reported before it, the prompt behind it.
    first, rest = "${PROMPT_COMMAND[0]}", "${PROMPT_COMMAND[@]:1}"
    own = f"echo $((6*7))-made; cat {gate}"
    sent(hold, "bot", name, f'PROMPT_COMMAND=("{first}" \'{own}\' "{rest}")')
    hold.ok("wait", name, "--for", "text:42-made", "--timeout", "20")


def test_text_typed_while_the_prompt_is_made_stands_there(host_home: Hold, gate: Path) -> None:
    hold = host_home
    at_no_prompt(hold, "made", gate)
    sent(hold, "otto", "made", "who", enter=False)
    gate.write_text("")
    hold.ok("wait", "made", "--for", "prompt", "--timeout", "20")
    hold.fails("text_at_prompt", "exec", "made", "--", "true")
    assert hold.json("catchup", "made")["unsubmitted_by"] == ["otto"]


def test_a_secret_typed_while_the_prompt_is_made_stays_one(host_home: Hold, gate: Path) -> None:
    hold = host_home
    at_no_prompt(hold, "murky", gate)
    hold.ok("turn", "murky", "blind")
    sent(hold, "", "murky", f": {SECRET}", enter=False)
    gate.write_text("")
    hold.ok("wait", "murky", "--for", "prompt", "--timeout", "20")
    hold.ok("turn", "murky", "unblind")
    sent(hold, "", "murky", "; unset PROMPT_COMMAND; echo $((6*7))-done")
    hold.ok("wait", "murky", "--for", "text:42-done", "--timeout", "20")
    began = log(hold, "murky", "--kind", "command_began")
    assert began[-1]["body"]["text"] == BLIND


@pytest.mark.requirement("A3", "A5")
def test_who_types_after_a_corrected_answer_is_followed(host_home: Hold) -> None:
    """A line with a correction in it, read by a program, stands in nobody's way afterwards."""
    hold = host_home
    hold.shell("corrected")
    sent(hold, "bot", "corrected", "read x")
    hold.ok("wait", "corrected", "--for", "input", "--timeout", "20")
    sent(hold, "bot", "corrected", "foo\x7f")
    hold.ok("wait", "corrected", "--for", "prompt", "--timeout", "20")
    sent(hold, "otto", "corrected", "sleep 1000 & echo $((6*7))-begun")
    hold.ok("wait", "corrected", "--for", "text:42-begun", "--timeout", "20")
    assert began(hold, "corrected", 1)[0][0] == ["otto"]
    if os.geteuid() == 0:
        assert hold.json("halt", "corrected", "--only-actor", "otto")["tasks"] >= 1
        hold.ok("resume", "corrected")


# -- after the daemon -------------------------------------------------------------------------


@pytest.mark.requirement("A3", "A6")
def test_who_typed_what_stands_at_the_prompt_outlives_the_daemon(host_home: Hold) -> None:
    hold = host_home
    hold.shell("staged")
    sent(hold, "otto", "staged", "echo staged", enter=False)
    hold.ok("wait", "staged", "--for", "text:echo staged", "--timeout", "20")
    killed(hold)
    hold.fails("text_at_prompt", "exec", "staged", "--", " evil; true")
    told = hold.json("catchup", "staged")
    assert (told["unsubmitted"], told["unsubmitted_by"]) == ("echo staged", ["otto"])
    receipt = hold.json("seize", "staged")
    assert receipt["last_input_by"] == "otto" and receipt["last_input_at"]
    hold.ok("turn", "staged", "yield")
    sent(hold, "bot", "staged", " on")
    hold.ok("wait", "staged", "--for", "text:staged on", "--timeout", "20")
    found = log(hold, "staged", "--kind", "command_began")
    names = {each["id"]: each["name"] for each in hold.json("actor", "ls")}
    assert [names[who] for who in found[0]["body"]["authors"]] == ["otto", "bot"]


def test_after_the_daemon_an_empty_prompt_is_free(host_home: Hold) -> None:
    hold = host_home
    hold.shell("cleared")
    sent(hold, "otto", "cleared", "echo gone", enter=False)
    with connected(hold, "otto") as otto:
        otto.keys("cleared", ["C-u"])
    killed(hold)
    hold.ok("exec", "cleared", "--", "true")
    assert hold.json("catchup", "cleared")["unsubmitted_known"] is True


def test_a_line_begun_blind_stays_secret_after_the_daemon(host_home: Hold) -> None:
    hold = host_home
    hold.shell("dusk")
    hold.ok("turn", "dusk", "blind")
    sent(hold, "", "dusk", f": {SECRET}", enter=False)
    hold.ok("turn", "dusk", "unblind")
    hold.ok("turn", "dusk", "yield")
    killed(hold)
    told = hold.json("catchup", "dusk")
    assert (told["unsubmitted"], told["unsubmitted_known"]) == ("", False)
    sent(hold, "otto", "dusk", "x; echo $((6*7))-done")
    hold.ok("wait", "dusk", "--for", "text:42-done", "--timeout", "20")
    hold.ok("wait", "dusk", "--for", "prompt", "--timeout", "20")
    assert hold.json("show", "dusk")["last_command"]["text"] == BLIND
    assert files_with(hold, SECRET) == []


@pytest.mark.requirement("A3")
def test_what_was_typed_ahead_is_attributed_after_the_daemon(host_home: Hold, gate: Path) -> None:
    hold = host_home
    busy(hold, "later", gate)
    sent(hold, "otto", "later", "echo of-otto")
    sent(hold, "bot", "later", "echo $((6*7))-done")
    killed(hold)
    hold.ok("ls")
    gate.write_text("")
    hold.ok("wait", "later", "--for", "text:42-done", "--timeout", "20")
    assert [by for by, _ in began(hold, "later", 2)] == [["otto"], ["bot"]]


# -- asking the shell -------------------------------------------------------------------------


@pytest.mark.requirement("A6")
def test_the_shell_is_asked_only_for_who_may_write(host_home: Hold) -> None:
    hold = host_home
    hold.shell("looked-at")
    sent(hold, "otto", "looked-at", "echo left", enter=False)
    hold.ok("wait", "looked-at", "--for", "text:echo left", "--timeout", "20")

    def answers() -> list[Any]:
        return [e for e in log(hold, "looked-at", "--kind", "input") if not e["actor"]]

    told = hold.json("--as", "guest", "catchup", "looked-at")
    assert (told["unsubmitted"], told["unsubmitted_known"]) == ("", False)
    assert told["unsubmitted_by"] == ["otto"]
    said = hold.ok("--as", "guest", "catchup", "looked-at")
    assert "typed by otto: not known" in said, said
    assert answers() == []
    assert hold.json("catchup", "looked-at")["unsubmitted"] == "echo left"
    assert len(answers()) == 1
