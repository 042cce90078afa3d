"""A person at a terminal: attach, type, detach, come back; the terminal is left as it was."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from holdfast.model.size import Size
from process.commanding import Hold
from process.terminals import SIZE, Terminal
from process.waiting import until

DETACH = b"\x1cd"
Open = Callable[..., Terminal]


@pytest.fixture
def open_terminal(host_home: Hold) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*words: str, size: Size = SIZE) -> Terminal:
        opened.append(Terminal(host_home, *words, size=size))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def kill_daemon(hold: Hold) -> None:
    os.kill(hold.json("daemon", "status")["daemon_pid"], signal.SIGKILL)


@pytest.mark.requirement("S3")
def test_what_is_typed_runs_in_the_session_and_detaching_leaves_it(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("typed")
    before = host_home.json("show", "typed")["pid"]
    terminal = open_terminal("attach", "typed")
    terminal.until_shown("$")
    terminal.type(b"echo one-$((40+2))\r")
    terminal.until(b"one-42")
    terminal.type(DETACH)
    assert terminal.wait() == 0
    assert b"detached from typed" in terminal.seen
    assert terminal.settings() == terminal.settings_before
    assert host_home.json("show", "typed")["pid"] == before


def test_the_hint_says_how_to_detach_and_goes_away(host_home: Hold, open_terminal: Open) -> None:
    host_home.shell("hinted")
    terminal = open_terminal("attach", "hinted")
    terminal.until_shown("C-\\ d detaches")
    terminal.type(b"echo gone\r")
    terminal.until_shown("\ngone")
    assert "detaches" not in terminal.screen.text()


@pytest.mark.requirement("S3")
def test_what_scrolled_off_is_not_written_to_the_terminal_again_unless_asked_for(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("scrolled")
    host_home.ok("exec", "scrolled", "--", "seq -f line-%.0f 1 200")
    plain = open_terminal("attach", "scrolled")
    drawn = plain.until(b"attached to")  # it goes away again
    assert b"line-3\r" not in drawn and b"line-199" in drawn
    plain.until_shown("line-200")
    whole = open_terminal("attach", "--scrollback", "scrolled")
    whole.until_shown("line-200")
    assert b"line-3\r" in whole.seen


@pytest.mark.requirement("S5")
def test_coming_back_shows_the_very_screen_with_its_modes(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("full")
    first = open_terminal("attach", "full")
    first.until_shown("$")
    first.type(b"less /etc/services\r")
    first.until_true(lambda text: first.screen.mode(1049) and text.endswith("/etc/services"))
    first.type(b"/^imap2\r")
    # Without the client's own line: what less scrolls takes a hint along until it is painted over.
    first.until_true(
        lambda text: text.startswith("imap2") and text.endswith(":") and "hold" not in text
    )
    shown = first.screen.text()
    first.type(DETACH)
    first.wait()
    again = open_terminal("attach", "full")
    # All of it: a screen that is half drawn begins the same.
    again.until_true(lambda text: text.splitlines()[:-1] == shown.splitlines()[:-1])
    assert again.screen.mode(1049), "the alternate screen is not entered"
    again.type(b"q")
    again.until_shown("$")
    assert not again.screen.mode(1049)


@pytest.mark.requirement("S1", "M1")
def test_keys_typed_while_the_daemon_dies_arrive_once_and_in_order(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.ok("run", "-d", "--name", "killed", "--", "sh", "-c", "stty -echo; cat -v")
    terminal = open_terminal("attach", "killed")
    terminal.until_shown("attached to")  # from here on keys are its own
    for number in range(300):
        terminal.type(b"%d\r" % number)
        if number in (50, 51, 150, 250):
            kill_daemon(host_home)
    terminal.until(b"\r\n299\r\n")
    lines = host_home.ok("tail", "killed").split()
    assert lines == [str(number) for number in range(300)]


@pytest.mark.requirement("M1")
def test_output_of_a_replaced_daemon_continues_without_a_gap(
    host_home: Hold, open_terminal: Open
) -> None:
    counting = "read go; for i in $(seq 2000); do echo n$i; done; echo all; read x"
    host_home.ok("run", "-d", "--name", "counting", "--", "sh", "-c", counting)
    terminal = open_terminal("attach", "counting")
    terminal.until_shown("attached to")  # from here on keys are its own
    terminal.type(b"\r")
    terminal.until(b"n5\r\n")
    kill_daemon(host_home)
    rest = terminal.until(b"\nall\r\n")
    numbers = [word for word in rest.split() if word.startswith(b"n") and word[1:].isdigit()]
    assert numbers == [b"n%d" % i for i in range(6, 2001)]


def test_a_long_paste_arrives_whole(host_home: Hold, open_terminal: Open) -> None:
    program = "stty raw -echo; echo ready; head -c 300000 | sha256sum; read x"
    host_home.ok("run", "-d", "--name", "paste", "--", "bash", "-c", program)
    terminal = open_terminal("attach", "paste")
    terminal.until(b"ready")
    text = bytes(range(32, 127)) * (300_000 // 95 + 1)
    text = text[:300_000].replace(b"\x1c", b"x")
    terminal.type(text)
    terminal.until(hashlib.sha256(text).hexdigest().encode())


def test_the_sessions_size_follows_the_terminal_but_never_an_observer(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("sized")
    terminal = open_terminal("attach", "sized")
    terminal.until_shown("$")
    assert host_home.json("show", "sized")["size"] == {"cols": 100, "rows": 30}
    observer = open_terminal("attach", "sized", "--observe", size=Size(40, 10))
    observer.until(b"$")
    observer.resize(Size(50, 12))
    terminal.resize(Size(90, 20))
    host_home.sized("sized", 90, 20)
    terminal.type(b"stty size\r")
    terminal.until(b"20 90")
    assert host_home.json("show", "sized")["size"] == {"cols": 90, "rows": 20}


def test_an_observer_sees_everything_and_changes_nothing(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("watched")
    observer = open_terminal("attach", "watched", "--observe")
    observer.until(b"observing watched")
    observer.type(b"echo intruder\r")
    observer.until(b"keys are not sent")
    host_home.ok("exec", "watched", "--", "echo seen-by-all")
    observer.until(b"seen-by-all")
    assert "intruder" not in host_home.ok("screen", "watched")


def test_the_end_of_the_session_is_told_with_its_true_status(
    host_home: Hold, open_terminal: Open
) -> None:
    terminal = open_terminal("run", "--name", "ending", "--", "sh", "-c", "read x; exit 7")
    terminal.until(b"attached to ending")
    terminal.type(b"\r")
    assert terminal.wait() == 7
    assert b"ending ended: exit 7" in terminal.seen
    assert terminal.settings() == terminal.settings_before


def test_a_session_that_dies_by_a_signal_says_so(host_home: Hold, open_terminal: Open) -> None:
    terminal = open_terminal("run", "--name", "signalled", "--", "sh", "-c", "read x; kill -9 $$")
    terminal.until(b"attached to signalled")
    terminal.type(b"\r")
    assert terminal.wait() == 137
    assert b"signal SIGKILL" in terminal.seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_client_ended_by_a_signal_puts_the_terminal_back(
    host_home: Hold, open_terminal: Open, number: int
) -> None:
    name = f"client-{number}"
    host_home.shell(name)
    terminal = open_terminal("attach", name)
    terminal.until_shown("$")
    terminal.type(b"printf '\\e[?1000h\\e[?1049h\\e[?25l'; sleep 1000\r")
    terminal.until(b"\x1b[?25l")
    terminal.signal(number)
    assert terminal.wait() == 0
    assert terminal.settings() == terminal.settings_before
    assert not any(terminal.screen.mode(mode) for mode in (1000, 1049))
    assert terminal.screen.mode(25)
    assert host_home.json("show", name)["state"] == "working"


def test_a_stopped_client_comes_back_to_the_right_screen(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("stopped")
    terminal = open_terminal("attach", "stopped")
    terminal.until_shown("$")
    terminal.signal(signal.SIGSTOP)
    host_home.ok("exec", "stopped", "--", "seq 1 100000; clear; echo fresh")
    terminal.signal(signal.SIGCONT)
    terminal.until_shown("fresh")


_COUNTS_SIGNALS = """
import os, signal, tty
told = 0
def on_winch(*_):
    global told
    told += 1
signal.signal(signal.SIGWINCH, on_winch)
tty.setraw(0)
print("\\x1b[?1049hup", end="", flush=True)
while key := os.read(0, 1):
    print(f"<{key.decode()}{told}>", end="", flush=True)
"""


def test_a_full_screen_program_gets_no_signal_when_somebody_comes_at_the_size_it_has(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.ok("run", "-d", "--name", "nudged", "--", "python3", "-c", _COUNTS_SIGNALS)
    host_home.ok("wait", "nudged", "--for", "text:up", "--timeout", "20")
    host_home.ok("resize", "nudged", "100x30")
    host_home.ok("send", "nudged", "x")  # two signals at once would be one
    host_home.ok("wait", "nudged", "--for", "text:<x1>", "--timeout", "20")
    terminal = open_terminal("attach", "nudged")
    terminal.until_shown("attached to")
    terminal.type(b"a")  # takes our line away: the screen is asked for again
    terminal.until(b"<a1>")
    terminal.type(b"\x1crb")
    terminal.until(b"<b1>")


def test_the_prefix_itself_can_be_sent(host_home: Hold, open_terminal: Open) -> None:
    host_home.ok("run", "-d", "--name", "prefix", "--", "sh", "-c", "stty raw -echo; cat -v")
    terminal = open_terminal("attach", "prefix")
    terminal.until_shown("attached to")  # from here on keys are its own
    terminal.type(b"\x1c\\x")
    terminal.until(b"^\\x")


def test_the_prefix_with_an_unknown_key_never_reaches_the_program(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.ok("run", "-d", "--name", "unharmed", "--", "sh", "-c", "stty raw -echo; cat -v")
    terminal = open_terminal("attach", "unharmed", "--prefix", "C-a")
    terminal.until_shown("C-a d detaches")
    terminal.type(b"[\x01\\\x1c\x01c\x01\x1b[A]")
    terminal.until(b"[^A^\\]")
    terminal.type(b"\x01c")
    terminal.until_shown("not a key of ours")


def test_a_program_that_asks_the_terminal_gets_one_answer(
    host_home: Hold, open_terminal: Open
) -> None:
    ask = "stty raw -echo; printf '\\033[6n'; head -c 6 | cat -v; printf all-read; sleep 1000"
    host_home.ok("run", "-d", "--name", "asked", "--", "bash", "-c", f"read go; {ask}")
    observer = open_terminal("attach", "asked", "--observe")
    first, second = open_terminal("attach", "asked"), open_terminal("attach", "asked")
    host_home.attached("asked", operators=3)
    second.until_shown("attached to")
    second.type(b"\r")
    second.until(b"\x1b[6n")
    # The emulators of this test answer nothing by themselves: the second terminal does, once.
    second.type(b"\x1b[1;1R")
    second.until(b"^[[1;1R")
    for other in (first, observer):
        assert b"\x1b[6n" not in other.until(b"all-read")


def test_attaching_a_session_to_itself_is_refused(host_home: Hold, open_terminal: Open) -> None:
    host_home.shell("inner")
    nested = {**host_home.env, "HOLDFAST_SESSION": host_home.json("show", "inner")["id"]}
    before, host_home.env = host_home.env, nested
    try:
        again = open_terminal("attach", "inner")
    finally:
        host_home.env = before
    assert again.wait() == 64
    assert b"inside that very session" in again.seen


def test_of_two_terminals_of_one_user_the_one_in_use_gives_the_size(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("two")
    small = open_terminal("attach", "two", size=Size(80, 24))
    small.until_shown("attached to")
    large = open_terminal("attach", "two", size=Size(120, 40))
    large.until_shown("attached to")
    host_home.sized("two", 120, 40)
    small.type(b"x")
    host_home.sized("two", 80, 24)
    large.resize(Size(110, 30))
    host_home.sized("two", 110, 30)
    small.resize(Size(90, 20))
    host_home.sized("two", 90, 20)
    large.type(b"x")
    host_home.sized("two", 110, 30)


def test_attaching_from_a_taller_terminal_shows_the_screen_of_that_size(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("taller")
    host_home.ok("resize", "taller", "80x24")
    host_home.ok("exec", "taller", "--", "seq 60")
    terminal = open_terminal("attach", "taller")
    terminal.until_true(lambda text: text.count("\n") >= 29 and text.endswith("$"))
    terminal.until_true(lambda text: "attached to" not in text)
    assert terminal.screen.text() == host_home.ok("screen", "taller").rstrip("\n")


def test_leaving_puts_the_cursor_below_everything_and_takes_our_line_along(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("leaving")
    host_home.ok("exec", "leaving", "--", "seq 100")
    terminal = open_terminal("attach", "leaving")
    terminal.until_shown("100")
    terminal.type(DETACH)
    terminal.wait()
    lines = terminal.screen.text().splitlines()
    assert lines[-1].startswith("[detached from leaving")
    assert not any("repaint" in line for line in lines)
    assert lines[0].isdecimal() or lines[1].isdecimal()


@pytest.mark.parametrize(("command", "status"), [("echo hi-$((1+1))", 0), ("ls /nope; exit 3", 3)])
def test_a_command_too_short_to_attach_to_shows_its_output_and_status(
    open_terminal: Open, command: str, status: int
) -> None:
    terminal = open_terminal("run", "--", "sh", "-c", command)
    assert terminal.wait() == status
    assert (b"hi-2" if status == 0 else b"/nope") in terminal.seen
    assert f"ended: exit {status}".encode() in terminal.seen


def test_keys_typed_while_the_host_is_away_are_not_lost(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.ok("run", "-d", "--name", "away", "--", "sh", "-c", "stty -echo; cat -v")
    terminal = open_terminal("attach", "away")
    terminal.until(b"attached to away")
    daemon = host_home.json("daemon", "status")["daemon_pid"]
    os.kill(daemon, signal.SIGSTOP)  # it answers nobody; then it dies
    terminal.type(b"one\r")
    os.kill(daemon, signal.SIGKILL)
    terminal.type(b"two\rthree\r")
    terminal.until(b"three")
    assert host_home.ok("tail", "away").split() == ["one", "two", "three"]


def test_tail_on_a_terminal_does_not_ask_it_what_a_program_asked(
    host_home: Hold, open_terminal: Open
) -> None:
    asking = "printf 'before\\033[6n\\033[>cafter\\n'"
    session = host_home.ok("run", "-d", "--name", "asking", "--", "sh", "-c", asking).strip()
    host_home.ok("wait", session, "--for", "exit", "--timeout", "20")
    terminal = open_terminal("tail", session)
    assert terminal.wait() == 0
    assert b"beforeafter" in terminal.seen


@pytest.mark.requirement("A6")
def test_a_shell_that_reports_no_more_is_said_on_attaching_with_who_shaped_it(
    host_home: Hold, open_terminal: Open
) -> None:
    host_home.shell("unhooked")
    host_home.ok("send", "--enter", "unhooked", "PROMPT_COMMAND=()")
    shaped = until("it is known", lambda: host_home.json("show", "unhooked")["shaped_by"])
    terminal = open_terminal("attach", "unhooked")
    terminal.until(b"whose shell does not report")  # it goes away again
    terminal.until(f"shaped by {shaped[0]}".encode())
