"""From one attached session to another without detaching, other terminals sent away, and names:
what people do who come from tmux."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from holdfast.model.size import Size
from process.commanding import Hold
from process.recorded import add_actor, log
from process.terminals import SIZE, Terminal

NEXT, PREVIOUS, LIST, OTHERS, DETACH = b"\x1cn", b"\x1cp", b"\x1cw", b"\x1cD", b"\x1cd"
Open = Callable[..., Terminal]


@pytest.fixture
def hold(fresh_home: Hold) -> Hold:
    """Three shells, each with something of its own on its screen."""
    fresh_home.ok("up", "-d")
    for name in ("one", "two", "three"):
        fresh_home.shell(name)
        fresh_home.ok("exec", name, "--", f"echo this-$((6*7))-{name}")
    return fresh_home


@pytest.fixture
def open_terminal(hold: Hold) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*words: str, size: Size = SIZE, by: Hold = hold) -> Terminal:
        opened.append(Terminal(by, *words, size=size))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def shows(terminal: Terminal, name: str) -> None:
    """This session, and nothing of another."""
    others = {"one", "two", "three"} - {name}
    terminal.until_true(
        lambda text: f"this-42-{name}" in text and not any(f"-42-{each}" in text for each in others)
    )


def test_the_next_and_the_previous_session_are_one_key_away(
    hold: Hold, open_terminal: Open
) -> None:
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    for keys, name in ((NEXT, "two"), (NEXT, "three"), (NEXT, "one"), (PREVIOUS, "three")):
        terminal.type(keys)
        shows(terminal, name)
    terminal.type(b"echo only-$((40+2))-here\r")
    terminal.until_shown("only-42-here")
    terminal.type(DETACH)
    assert terminal.wait() == 0
    assert b"detached from three" in terminal.seen
    assert terminal.settings() == terminal.settings_before
    assert "only-42" not in hold.ok("screen", "one") + hold.ok("screen", "two")
    assert hold.json("show", "one")["operators"] == 0


def test_what_is_typed_behind_the_key_is_for_the_other_session(
    hold: Hold, open_terminal: Open
) -> None:
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    terminal.type(b"echo at-$((6*7))-first\r" + NEXT + b"echo at-$((6*7))-second\r")
    terminal.until_shown("at-42-second")
    assert "at-42-first" in hold.ok("screen", "one")
    assert "second" not in hold.ok("screen", "one")
    assert "first" not in hold.ok("screen", "two")


def test_a_list_shows_what_each_does_and_one_is_chosen_by_its_key_or_by_arrows(
    hold: Hold, open_terminal: Open
) -> None:
    hold.ok("send", "two", "--enter", "echo $((6*7))-runs; sleep 1000")
    hold.ok("wait", "two", "--for", "text:42-runs", "--timeout", "20")
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    terminal.type(LIST)
    terminal.until_shown("1 * one")
    assert "2   two    working: echo $((6*7))-runs" in terminal.screen.text()
    terminal.type(b"\x1b[B\r")
    shows(terminal, "two")
    terminal.type(LIST + b"3")
    shows(terminal, "three")
    terminal.type(LIST)
    terminal.until_shown("3 * three")
    terminal.type(b"q")
    terminal.until_true(lambda text: "go to:" not in text)
    terminal.type(b"echo still-$((40+2))\r")
    terminal.until_shown("still-42")
    assert "still-42" in hold.ok("screen", "three")


def test_a_full_screen_program_leaves_nothing_behind_in_the_next_session(
    hold: Hold, open_terminal: Open
) -> None:
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    terminal.type(b"printf '\\e[?1049h\\e[?1000h\\e[?2004h\\e[2J\\e[Hfull'; read -r\r")
    terminal.until_true(lambda text: text.startswith("full"))
    assert terminal.screen.mode(1000)
    terminal.type(NEXT)
    shows(terminal, "two")
    assert not terminal.screen.mode(1049) and not terminal.screen.mode(1000)
    terminal.type(PREVIOUS)
    terminal.until_true(lambda text: text.startswith("full"))
    assert terminal.screen.mode(1049) and terminal.screen.mode(1000)


def test_without_another_session_it_stays_and_says_so(
    fresh_home: Hold, open_terminal: Open
) -> None:
    for name in ("two", "three"):
        fresh_home.ok("end", name)
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    terminal.type(NEXT + b"echo never\r")
    terminal.until_shown("there is no other session")
    terminal.type(b"echo after-$((6*7))\r")
    terminal.until_shown("after-42")
    assert "never" not in fresh_home.ok("screen", "one")


def test_a_switch_goes_on_when_the_daemon_is_killed(hold: Hold, open_terminal: Open) -> None:
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)
    hold.ok("ls")
    terminal.type(NEXT)
    shows(terminal, "two")


# -- other terminals ----------------------------------------------------------------------------


def test_others_are_detached_and_told_by_whom(hold: Hold, open_terminal: Open) -> None:
    here, there = open_terminal("attach", "one"), open_terminal("attach", "one")
    watcher = open_terminal("attach", "one", "--observe")
    for terminal in (here, there, watcher):
        shows(terminal, "one")
    here.type(OTHERS)
    here.until_shown("detached 2 other terminals")
    for gone in (there, watcher):
        assert gone.wait() == 0
        assert b"detached from one by root" in gone.seen or os.getuid() != 0
    here.type(b"echo on-$((40+2))\r")
    here.until_shown("on-42")
    assert [each["kind"] for each in log(hold, "one")].count("detached_by") == 2
    here.type(OTHERS)
    here.until_shown("no other terminal is attached")


def test_a_verb_detaches_all_terminals_or_all_but_the_one_used_last(
    hold: Hold, open_terminal: Open
) -> None:
    first, second = open_terminal("attach", "one"), open_terminal("attach", "one")
    shows(first, "one")
    shows(second, "one")
    first.type(b"echo used-$((40+2))\r")
    first.until_shown("used-42")
    assert hold.json("detach", "one", "--others") == {"detached": 1, "left": 1}
    assert second.wait() == 0
    assert hold.ok("detach", "one").strip() == "detached 1 terminal from one"
    assert first.wait() == 0
    assert hold.ok("detach", "one").strip() == "detached 0 terminals from one"


@pytest.mark.requirement("A2")
def test_terminals_of_another_actor_are_detached_only_with_the_right_to_seize(
    hold: Hold, open_terminal: Open
) -> None:
    add_actor(hold, "bot")
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    hold.fails("not_permitted", "--as", "bot", "detach", "one")
    hold.ok("grant", "bot", "admin", "one")
    assert hold.json("--as", "bot", "detach", "one") == {"detached": 1, "left": 0}
    assert terminal.wait() == 0
    assert b"detached from one by bot" in terminal.seen


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.requirement("S3")
def test_a_session_is_renamed_under_those_who_are_attached_and_stays_so(
    hold: Hold, open_terminal: Open
) -> None:
    terminal = open_terminal("attach", "one")
    shows(terminal, "one")
    id = hold.json("show", "one")["id"]
    assert hold.json("rename", "one", "deploy")["id"] == id
    terminal.until_shown("called deploy now")
    hold.fails("no_such_session", "show", "one")
    hold.fails("name_taken", "rename", "deploy", "two")
    hold.fails("invalid_argument", "rename", "deploy", "")
    hold.fails("invalid_argument", "rename", "deploy", "not/a/name")
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)
    assert hold.ok("exec", "deploy", "--", "echo $((6*7))").strip() == "42"
    assert hold.json("show", "deploy")["id"] == id
    hold.shell("one")  # the old name is free
    (renamed,) = log(hold, "deploy", "--kind", "renamed")
    assert renamed["body"] == {"before": "one", "name": "deploy"}
    terminal.type(DETACH)
    assert terminal.wait() == 0 and b"detached from deploy" in terminal.seen


@pytest.mark.requirement("A2")
def test_renaming_needs_the_right_to_end_the_session(hold: Hold) -> None:
    add_actor(hold, "bot")
    hold.fails("not_permitted", "--as", "bot", "rename", "one", "mine")
    assert hold.json("show", "one")["name"] == "one"


def test_attach_without_a_name_takes_the_latest_and_a_beginning_is_enough(
    hold: Hold, open_terminal: Open
) -> None:
    latest = open_terminal("attach")
    shows(latest, "three")
    begun = open_terminal("attach", "on")
    shows(begun, "one")
    assert "no session is called on; attaching to one" in begun.seen.decode()
    several = open_terminal("attach", "t")
    assert several.wait() != 0
    assert b"no_such_session" in several.seen and b"did you mean" in several.seen


@pytest.mark.requirement("S2")
def test_what_is_typed_before_a_beginning_is_resolved_goes_to_no_session(
    hold: Hold, open_terminal: Open
) -> None:
    hold.ok("run", "-d", "--name", "meant-otherwise", "--", "cat")
    begun = open_terminal("attach", "meant")
    begun.type(b"typed blind\r")
    begun.until(b"attaching to meant-otherwise")
    begun.until_shown("attached to")
    begun.type(b"seen\r")
    hold.ok("wait", "meant-otherwise", "--for", "text:seen", "--timeout", "20")
    assert "typed blind" not in hold.ok("screen", "meant-otherwise", "--scrollback")
    hold.ok("end", "meant-otherwise")


@pytest.mark.requirement("S2")
def test_an_id_is_never_taken_for_the_beginning_of_a_name(hold: Hold, open_terminal: Open) -> None:
    unknown = "0" * 26
    hold.ok("run", "-d", "--name", f"{unknown}-2", "--", "cat")
    terminal = open_terminal("attach", unknown)
    assert terminal.wait() != 0 and b"no_such_session" in terminal.seen
    hold.ok("end", f"{unknown}-2")
