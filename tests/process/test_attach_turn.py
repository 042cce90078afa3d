"""Several people at terminals, one session: who writes, and how the turn passes between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from holdfast.model.size import Size
from holdfast.sdk.client_core.unsent_line import PASTE_GAP_S
from process.commanding import Hold
from process.terminals import SIZE, Terminal

Open = Callable[..., Terminal]
PREFIX = b"\x1c"


@pytest.fixture
def open_terminal() -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(hold: Hold, *words: str, size: Size = SIZE) -> Terminal:
        opened.append(Terminal(hold, *words, size=size))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


@pytest.fixture
def bot(host_home: Hold, request: pytest.FixtureRequest) -> str:
    """An agent that may write in all sessions."""
    name = f"bot-{abs(hash(request.node.name)) % 10**8}"
    host_home.ok("actor", "add", name, "--kind", "agent")
    host_home.ok("grant", name, "execute", "--all")
    return name


@pytest.mark.requirement("A3", "A4")
def test_the_first_key_asks_and_an_idle_holder_gives_way_without_a_word(
    host_home: Hold, open_terminal: Open, bot: str
) -> None:
    host_home.shell("idle")
    agent = open_terminal(host_home, "--as", bot, "attach", "idle")
    human = open_terminal(host_home, "attach", "idle")
    agent.until_shown("attached to")
    human.until_shown("attached to")
    agent.type(b"echo by-the-$((40+1))\r")
    human.until_shown("by-the-41")
    # At once it is refused and asks; as soon as the agent has paused, the turn is the human's.
    human.type(b"x")
    human.until_shown("you are waiting")
    human.until_shown("you have the turn")
    human.type(b"echo by-the-$((40+2))\r")
    human.until(b"by-the-42")
    agent.until(b"by-the-42")
    assert host_home.json("turn", "idle")["holder_name"] != bot


@pytest.mark.requirement("A3", "A4", "M7")
def test_the_holder_sees_who_asks_and_one_key_grants(
    host_home: Hold, open_terminal: Open, bot: str
) -> None:
    host_home.shell("asked")
    host_home.ok("turn", "asked", "policy", "ask-holder")
    human = open_terminal(host_home, "attach", "asked")
    human.until_shown("attached to")
    human.type(b"echo mine-$((1+1))\r")
    human.until(b"mine-2")
    agent = open_terminal(host_home, "--as", bot, "attach", "asked")
    agent.until_shown("mine-2")
    agent.type(b"echo never-typed\r")
    agent.until_shown("you are waiting")
    human.until_shown(f"{bot} asks for the turn")
    human.type(PREFIX + b"g")
    agent.until_shown("you have the turn")
    time.sleep(2 * PASTE_GAP_S)  # as a person would: what follows is not of the same paste
    agent.type(b"echo granted-$((1+1))\r")
    human.until(b"granted-2")
    assert "never-typed" not in host_home.ok("tail", "asked", "--plain")


@pytest.mark.requirement("A3")
def test_the_tail_of_a_line_begun_without_the_turn_never_runs(
    host_home: Hold, open_terminal: Open, bot: str
) -> None:
    host_home.shell("halved")
    host_home.ok("turn", "halved", "policy", "ask-holder")
    human = open_terminal(host_home, "attach", "halved")
    human.until_shown("attached to")
    human.type(b"echo mine-$((1+1))\r")
    human.until(b"mine-2")
    agent = open_terminal(host_home, "--as", bot, "attach", "halved")
    agent.until_shown("mine-2")
    agent.type(b"echo ")
    agent.until_shown("you are waiting")
    human.until_shown(f"{bot} asks for the turn")
    human.type(PREFIX + b"g")
    agent.until_shown("you have the turn")
    agent.type(b"touch ")
    agent.until(b"line not sent")
    agent.type(b"halved-a-line\r")
    agent.until(b"line not sent")
    time.sleep(2 * PASTE_GAP_S)  # as a person would: what follows is not of the same paste
    agent.type(b"echo whole-$((1+1))\r")
    human.until(b"whole-2")
    assert "halved-a-line" not in host_home.ok("tail", "halved", "--plain")


@pytest.mark.requirement("A5", "A6")
def test_a_seizure_from_the_terminal_takes_the_turn_and_the_loser_is_told(
    host_home: Hold, open_terminal: Open, bot: str
) -> None:
    host_home.shell("seized")
    agent = open_terminal(host_home, "--as", bot, "attach", "seized")
    agent.until_shown("attached to")
    agent.type(b"cd /usr; alias ls=false; echo at-$((3*3))\r")
    agent.until(b"at-9")
    human = open_terminal(host_home, "attach", "seized")
    human.until_shown("at-9")
    human.type(PREFIX + b"s")
    human.until_shown("1 command by")
    agent.until_shown("took the turn")
    agent.type(b"echo too-late\r")
    agent.until_shown("you are waiting")
    human.type(b"echo mine-$((5*5))\r")
    human.until(b"mine-25")
    assert "too-late" not in host_home.ok("tail", "seized", "--plain")
    refused = [e for e in map(str, host_home.ok("log", "seized").splitlines()) if "refused" in e]
    assert refused, "the loser's writes are recorded as refused"


def test_seize_and_halt_from_the_terminal_and_resume(
    host_home: Hold, open_terminal: Open, bot: str
) -> None:
    host_home.shell("halted")
    host_home.ok("--as", bot, "send", "halted", "--enter", "while :; do echo spin; done")
    human = open_terminal(host_home, "attach", "halted")
    human.until(b"spin")
    human.type(PREFIX + b"S")
    human.until_shown("tasks frozen")
    assert host_home.json("show", "halted")["state"] == "halted"
    host_home.fails("session_halted", "send", "halted", "--enter", "no")
    human.type(PREFIX + b"u")
    human.until(b"\x1b[2J")  # the screen is painted anew when the status line goes
    human.until(b"spin")
    human.type(b"\x03")
    human.until(b"^C")
    host_home.ok("wait", "halted", "--for", "prompt", "--timeout", "20")


def test_a_halted_session_says_so_on_attach_with_the_key_that_resumes(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("frozen")
    host_home.ok("halt", "frozen")
    human = open_terminal(host_home, "attach", "frozen")
    human.until_shown("attached to frozen, which is halted; C-\\ u resumes it")
    human.type(b"e")
    human.until_shown("input is refused, not kept for later; C-\\ u resumes it")
    human.type(PREFIX + b"u")
    human.until_shown("resumed")
    human.type(b"\x03")  # ends the line that began while it was halted
    human.until_shown("line not sent")
    time.sleep(2 * PASTE_GAP_S)  # as a person would: what follows is not of the same paste
    human.type(b"echo on-$((1+1))\r")
    human.until(b"on-2")


def test_the_size_moves_with_the_turn(host_home: Hold, open_terminal: Open, bot: str) -> None:
    host_home.shell("sized")
    human = open_terminal(host_home, "attach", "sized", size=Size(100, 30))
    human.until_shown("attached to")
    human.type(b"echo one-$((1+1))\r")
    human.until(b"one-2")
    agent = open_terminal(host_home, "--as", bot, "attach", "sized", size=Size(70, 20))
    agent.until_shown("one-2")
    assert host_home.json("show", "sized")["size"] == {"cols": 100, "rows": 30}
    human.type(PREFIX + b"y")
    human.until_shown("nobody has the turn")
    agent.type(b"stty size\r")
    agent.until(b"20 70")
    assert host_home.json("show", "sized")["size"] == {"cols": 70, "rows": 20}


def test_one_who_may_only_watch_watches(host_home: Hold, open_terminal: Open) -> None:
    host_home.shell("watched")
    host_home.ok("actor", "add", "watcher", "--kind", "human")
    host_home.ok("grant", "watcher", "read", "watched")
    watcher = open_terminal(host_home, "--as", "watcher", "attach", "watched")
    watcher.until_shown("observing watched")
    watcher.type(b"x")
    watcher.until_shown("keys are not sent")
    host_home.ok("revoke", "watcher", "watched")
    assert watcher.wait() == 0
    assert b"may no longer attach to it" in watcher.seen
