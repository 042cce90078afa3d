"""Typing to a host that is far away: keys are seen at once, and nothing that should not be."""

from __future__ import annotations

import json
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from process.commanding import PATIENCE_S, Hold
from process.delaying import DelayProxy
from process.reaching import Faraway
from process.terminals import Terminal

ONE_WAY_S = 0.15
UNDERLINED = b"\x1b[0;4m"
SECRET = "жшюяпароль"  # letters that nothing else prints


class Far(Faraway):
    """A host whose client has a long way to the relay."""

    def __init__(self) -> None:
        super().__init__()
        self.way = DelayProxy(self.relay.port, ONE_WAY_S)
        known = Path(self.client.home) / "machines.json"
        machines = json.loads(known.read_text())
        machines["machines"][0]["relays"] = [f"http://127.0.0.1:{self.way.port}"]
        known.write_text(json.dumps(machines))

    def close(self) -> None:
        self.way.close()
        super().close()


class Seen(Terminal):
    """A terminal that remembers all that was ever written to it."""

    everything = b""

    def _read(self) -> bool:
        before = len(self.seen)
        more = super()._read()
        self.everything += self.seen[before:]
        return more

    def read_for(self, seconds: float) -> None:
        """For what must not come: there is no event for that."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self._read()


Attach = Callable[..., Seen]


@pytest.fixture(scope="module")
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


@pytest.fixture
def attach(far: Far) -> Iterator[Attach]:
    """Attach from afar to a session with this program, past the hint."""
    opened: list[Seen] = []

    def open_one(*command: str, words: tuple[str, ...] = ()) -> Seen:
        name = f"far-{len(far.host.json('ls', '--all'))}"
        far.host.ok("run", "-d", "--name", name, "--", *command)
        terminal = Seen(far.client, "attach", f"box/{name}", *words)
        opened.append(terminal)
        terminal.until_shown("attached to")
        terminal.until_true(lambda text: "attached to" not in text)
        return terminal

    yield open_one
    far.way.hold_back(False)
    far.way.one_way_s = ONE_WAY_S
    for terminal in opened:
        terminal.close()


def bash(attach: Attach, *words: str) -> Seen:
    terminal = attach("bash", "--norc", words=words)
    terminal.until_shown("$")
    return terminal


def trusted(terminal: Seen) -> None:
    """Type until a key is seen before its echo: from here on this line is predicted."""
    deadline = time.monotonic() + PATIENCE_S
    while UNDERLINED not in terminal.seen:
        assert time.monotonic() < deadline, "nothing is predicted"
        terminal.seen = b""
        terminal.type(b"a")
        terminal.read_for(0.6)


def test_a_key_is_seen_long_before_its_echo_can_be_here(far: Far, attach: Attach) -> None:
    terminal = bash(attach)
    began = time.monotonic()
    terminal.type(b"z")  # on a line that is not trusted yet: it is seen when its echo is here
    terminal.until_true(lambda text: text.rstrip().endswith("z"))
    echo_s = time.monotonic() - began
    assert echo_s > 2 * ONE_WAY_S
    trusted(terminal)
    took = []
    for letter in b"bcdefghijk":
        terminal.seen = b""
        began = time.monotonic()
        terminal.type(bytes([letter]))
        terminal.until(UNDERLINED + bytes([letter]))
        took.append(time.monotonic() - began)
    print(f"seen after {sorted(round(each * 1000) for each in took)} ms; an echo: {echo_s:.3f} s")
    assert min(took) < echo_s / 2 and sorted(took)[len(took) // 2] < echo_s, (took, echo_s)
    terminal.until_true(lambda text: text.rstrip().endswith("bcdefghijk"))
    terminal.read_for(1.0)
    far.way.hold_back(True)  # now nothing can come back at all
    terminal.seen = b""
    terminal.type(b"XYZ")
    terminal.until_true(lambda text: text.rstrip().endswith("bcdefghijkXYZ"))
    terminal.type(b"\x7f\x7f\x1b[D-")
    terminal.until_true(lambda text: text.rstrip().endswith("bcdefghijk-X"))
    far.way.hold_back(False)
    terminal.type(b"\x1b[C\r")
    terminal.until_true(lambda text: "bcdefghijk-X: " in text)  # bash complains of this very word


def test_a_password_is_never_on_the_terminal(far: Far, attach: Attach) -> None:
    terminal = bash(attach)
    trusted(terminal)
    terminal.type(b"\x15")
    for command in (b"read -s -p 'Secret: ' x\r", asking()):
        for letter in command:
            terminal.type(bytes([letter]))
        terminal.until_true(lambda text: text.rstrip().endswith("Secret:"))
        for secret in SECRET:
            terminal.type(secret.encode())
            terminal.read_for(0.05)
        terminal.read_for(1.0)
        terminal.type(b"\r")
        terminal.until_true(lambda text: text.rstrip().endswith("$"))
    terminal.type(b"echo typed-${#x}\r")
    terminal.until_shown(f"typed-{len(SECRET)}")
    assert unseen(terminal)


def test_a_password_typed_before_its_prompt_is_here_is_never_on_the_terminal(
    far: Far, attach: Attach
) -> None:
    terminal = attach(sys.executable, "-c", ASKS_AFTER_EACH_LINE)
    trusted(terminal)
    terminal.type(b"\r" + SECRET.encode() + b"\r")  # at once
    terminal.until_shown("asked 1")
    trusted(terminal)
    terminal.type(b"b\r")
    for letter in SECRET:  # one by one, the prompt coming in between
        terminal.type(letter.encode())
        terminal.read_for(0.04)
    terminal.type(b"\r")
    terminal.until_shown("asked 2")
    assert unseen(terminal)


def test_a_password_after_a_single_key_is_hidden_once_its_prompt_is_here(attach: Attach) -> None:
    """Without Enter in between: it is the prompt that ends the trust."""
    terminal = attach(sys.executable, "-c", ASKS_AFTER_A_KEY)
    trusted(terminal)
    terminal.type(b"!")
    terminal.until_shown("Secret:")
    for letter in SECRET:
        terminal.type(letter.encode())
    terminal.type(b"\r")
    terminal.until_shown("asked")
    assert unseen(terminal)


def test_a_full_screen_program_is_left_alone(attach: Attach) -> None:
    vim = shutil.which("vim")
    if vim is None:
        pytest.skip("vim is not installed")
    terminal = bash(attach)
    trusted(terminal)
    terminal.type(b"\x15vim -u NONE -N -n\r")
    terminal.until_shown("~\n~")
    terminal.seen = b""
    for letter in b"ihello there":
        terminal.type(bytes([letter]))
        terminal.read_for(0.05)
    terminal.until_shown("hello there")
    assert UNDERLINED not in terminal.seen
    terminal.type(b"\x1b:q!\r")
    terminal.until_true(lambda text: "~\n~" not in text)


def test_never_means_never(attach: Attach) -> None:
    terminal = bash(attach, "--predict", "never")
    for letter in b"echo one-two":
        terminal.type(bytes([letter]))
        terminal.read_for(0.1)
    terminal.type(b"\r")
    terminal.until_shown("\none-two")
    assert UNDERLINED not in terminal.everything


def test_a_way_that_becomes_long_is_noticed(far: Far, attach: Attach) -> None:
    far.way.one_way_s = 0.0
    terminal = bash(attach)
    terminal.type(b"echo near\r")
    terminal.until_shown("\nnear")
    far.way.one_way_s = ONE_WAY_S
    trusted(terminal)


def test_nearby_nothing_of_it_is_even_loaded(host_home: Hold) -> None:
    host_home.shell("near")
    with closing(Seen(host_home, "attach", "near")) as terminal:
        terminal.until_shown("attached to")
        terminal.until_true(lambda text: "attached to" not in text)
        terminal.type(b"echo one-two\r")
        terminal.until_shown("\none-two")
        assert "ghostty" not in Path(f"/proc/{terminal.pid}/maps").read_text()
        assert UNDERLINED not in terminal.everything


def test_always_draws_nearby_too_and_leaves_nothing_behind(host_home: Hold) -> None:
    name = "always"
    host_home.ok("run", "-d", "--name", name, "--", sys.executable, "-c", ASKS_AFTER_EACH_LINE)
    with closing(Seen(host_home, "attach", name, "--predict", "always")) as terminal:
        terminal.until_shown("attached to")
        terminal.until_true(lambda text: "attached to" not in text)
        trusted(terminal)
        terminal.read_for(0.5)
        assert terminal.screen.text() == host_home.ok("screen", name).rstrip("\n")
        terminal.type(b"\x1cd")
        assert terminal.wait() == 0
        assert terminal.settings() == terminal.settings_before


def test_a_word_that_means_nothing_is_refused(host_home: Hold) -> None:
    host_home.shell("word")
    chosen = Hold.__new__(Hold)
    chosen.env = {**host_home.env, "HOLDFAST_PREDICT": "sometimes"}
    with closing(Seen(chosen, "attach", "word")) as terminal:
        terminal.until(b"(invalid_argument)")
        assert terminal.wait() != 0


def unseen(terminal: Seen) -> bool:
    return not any(letter.encode() in terminal.everything for letter in SECRET)


def asking() -> bytes:
    program = "import getpass; getpass.getpass(chr(83)+'ecret: ')"
    return f'{sys.executable} -c "{program}"\r'.encode()


# Raw, and echoing by itself: so what is typed ahead is never echoed by the kernel.
ASKS_AFTER_EACH_LINE = """
import os, tty
tty.setraw(0)
os.write(1, b"$ ")
asked, hidden = 0, False
while key := os.read(0, 1):
    if key == b"\\r" and hidden:
        asked += 1
        os.write(1, b"\\r\\nasked %d\\r\\n$ " % asked)
    elif key == b"\\r":
        os.write(1, b"\\r\\nSecret: ")
    elif not hidden:
        os.write(1, key)
    hidden ^= key == b"\\r"
"""
ASKS_AFTER_A_KEY = """
import os, tty
tty.setraw(0)
os.write(1, b"$ ")
while (key := os.read(0, 1)) != b"!":
    os.write(1, key)
os.write(1, b" Secret: ")
while (key := os.read(0, 1)) != b"\\r":
    pass
os.write(1, b"\\r\\nasked\\r\\n")
os.read(0, 1)
"""
