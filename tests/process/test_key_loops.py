"""An attached client with the key loop in C and without it: the operator cannot tell which."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters import compiled
from holdfast.cli.attach.native_loop import CHOSEN_BY
from holdfast.model.native_builds import KEY_LOOP
from holdfast.model.size import Size
from process.commanding import Hold
from process.terminals import Terminal

LOOPS = ("native", "python")
FLOOD = 150_000  # numbers: 0.9 MiB
SEED = 20_251_116
Attach = Callable[[str], Terminal]


@pytest.fixture(params=LOOPS)
def attach(request: pytest.FixtureRequest, host_home: Hold) -> Iterator[Attach]:
    """Attach with one of the loops, past the hint: from then on everything is usual."""
    loop = request.param
    built = compiled.build(KEY_LOOP.name)
    if loop == "native" and not isinstance(built, Path):
        pytest.skip(f"the key loop cannot be built: {built}")
    opened: list[Terminal] = []

    def open_one(name: str) -> Terminal:
        chosen = Hold.__new__(Hold)
        chosen.env = {**host_home.env, CHOSEN_BY: loop}
        terminal = Terminal(chosen, "attach", name)
        opened.append(terminal)
        terminal.until_shown("attached to")
        terminal.until_true(lambda text: "attached to" not in text)
        maps = Path(f"/proc/{terminal.pid}/maps").read_text()
        assert ("key-loop" in maps) == (loop == "native")
        return terminal

    yield open_one
    for terminal in opened:
        terminal.close()


def kill_daemon(hold: Hold) -> None:
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)


def start(hold: Hold, attach: Attach, program: str) -> tuple[str, Terminal]:
    """A session running this, and a terminal on it."""
    name = f"loop-{len(hold.json('ls', '--all'))}"
    hold.ok("run", "-d", "--name", name, "--", "sh", "-c", program)
    return name, attach(name)


@pytest.mark.requirement("S1", "M1", "M6")
def test_single_keys_typed_fast_while_the_daemon_dies_arrive_once_and_in_order(
    host_home: Hold, attach: Attach
) -> None:
    name, terminal = start(host_home, attach, "stty raw -echo; cat -v")
    chance = random.Random(SEED)
    text = b"".join(b"%d," % number for number in range(600))
    kills = set(chance.sample(range(100, len(text) - 100), 6))
    for at in range(len(text)):
        terminal.type(text[at : at + 1])
        if at in kills:
            kill_daemon(host_home)
    terminal.until(b"599,")
    assert host_home.ok("tail", name).encode() == text


@pytest.mark.requirement("M1")
def test_what_is_echoed_while_the_daemon_dies_is_shown_once(
    host_home: Hold, attach: Attach
) -> None:
    _, terminal = start(host_home, attach, "stty raw -echo; cat -v")
    terminal.seen = b""
    for number in range(400):
        terminal.type(b"<%d>" % number)
        if number in (100, 101, 300):
            kill_daemon(host_home)
    shown = terminal.until(b"<399>")
    assert re.findall(rb"<\d+>", shown) == [b"<%d>" % number for number in range(400)]


def test_a_key_pressed_while_the_host_is_away_is_kept(host_home: Hold, attach: Attach) -> None:
    name, terminal = start(host_home, attach, "stty -echo; cat -v")
    daemon = host_home.json("daemon", "status")["daemon_pid"]
    terminal.type(b"one\r")
    terminal.until(b"one\r\n")
    os.kill(daemon, signal.SIGSTOP)  # it answers nobody; then it dies
    terminal.type(b"two\r")
    os.kill(daemon, signal.SIGKILL)
    terminal.type(b"three\rfour\r")
    terminal.until(b"four\r\n")
    assert host_home.ok("tail", name).split() == ["one", "two", "three", "four"]


def test_a_flood_and_keys_in_it_come_through(host_home: Hold, attach: Attach) -> None:
    # Less than the ring holds: of more, a terminal that falls behind is shown the end only.
    program = f"stty raw -echo; echo go; (seq {FLOOD} | tr '\\n' ' '); cat -v"
    _, terminal = start(host_home, attach, f"head -n 1 >/dev/null; {program}")
    terminal.seen = b""
    terminal.type(b"\r")
    terminal.until(b"go")
    terminal.type(b"<typed meanwhile>")
    shown = terminal.until(b"<typed meanwhile>")
    numbers = [int(word) for word in shown.split(b"<")[0].split()]
    assert numbers == list(range(1, FLOOD + 1))


def test_commands_after_the_prefix_work_among_other_keys(host_home: Hold, attach: Attach) -> None:
    name, terminal = start(host_home, attach, "stty raw -echo; cat -v")
    terminal.type(b"a\x1c\\b")
    terminal.until(b"a^\\b")
    terminal.type(b"c\x1c")
    terminal.until_shown("d detach")
    terminal.type(b"r")
    terminal.until_true(lambda text: "d detach" not in text)
    terminal.type(b"e")
    terminal.until_true(lambda text: text.rstrip().endswith("ce"))
    terminal.type(b"f\x1cd")
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.settings_before
    host_home.ok("wait", name, "--for", "text:cef", "--timeout", "20")


def test_a_resize_and_the_end_of_the_client_are_noticed(host_home: Hold, attach: Attach) -> None:
    name, terminal = start(host_home, attach, "exec bash --norc")
    terminal.type(b"echo one-$((40+2))\r")
    terminal.until(b"one-42")
    terminal.resize(Size(90, 20))
    host_home.sized(name, 90, 20)
    terminal.type(b"stty size\r")
    terminal.until(b"20 90")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.settings_before
    assert host_home.json("show", name)["state"] != "ended"


def test_the_end_of_the_session_is_told(host_home: Hold, attach: Attach) -> None:
    _, terminal = start(host_home, attach, "read x; exit 5")
    terminal.type(b"\r")
    assert terminal.wait() == 5
