"""R1 to R4, S4: a host behind a relay, and operators that come through it."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import urllib.request
from collections.abc import Iterator

import pytest

from process.commanding import Hold
from process.reaching import Faraway, pid_of_daemon
from process.terminals import Terminal


@pytest.fixture(scope="module")
def faraway() -> Iterator[Faraway]:
    made = Faraway()
    yield made
    made.close()


@pytest.fixture
def own() -> Iterator[Faraway]:
    """For tests that break something."""
    made = Faraway()
    yield made
    made.close()


def attached(hold: Hold, *words: str) -> Terminal:
    """A terminal that has drawn its first screen: from here on it is raw."""
    terminal = Terminal(hold, "attach", *words)
    terminal.until(b"\x1b[?2026l")
    return terminal


@pytest.mark.requirement("R1", "R2")
def test_every_verb_works_on_a_machine_that_opened_no_port(faraway: Faraway) -> None:
    client = faraway.client
    client.ok("--on", "box", "run", "-d", "--name", "work", "--", "cat")
    assert "box/work" in client.ok("ls")
    client.ok("send", "box/work", "from afar", "--enter")
    client.ok("wait", "box/work", "--for", "text:from afar", "--timeout", "20")
    assert client.ok("screen", "box/work").startswith("from afar")
    assert client.json("show", "box/work")["name"] == "work"
    assert "cat" in client.ok("graph", "box/work")
    assert "from afar" in client.ok("log", "box/work")
    client.ok("keys", "box/work", "C-d")
    client.ok("wait", "box/work", "--for", "exit", "--timeout", "20")
    assert "ended" in client.ok("ls", "--all")
    assert client.ok("screen", "box/work").startswith("from afar"), "after its end too"
    client.fails("session_ended", "send", "box/work", "too late")
    client.fails("no_such_session", "send", "box/nothing", "x")
    client.fails("no_such_machine", "send", "nowhere/work", "x")


@pytest.mark.requirement("R2")
@pytest.mark.requirement("R2", "R3")
def test_rights_are_asked_for_there_and_another_key_brings_none_of_who_joined(
    faraway: Faraway,
) -> None:
    faraway.host.shell("asked-there")
    faraway.host.ok("actor", "add", "helper")
    faraway.host.ok("grant", "helper", "read", "asked-there")
    shown = faraway.client.json("grant", "--ls", "box/asked-there")
    assert "helper" in [each["actor_name"] for each in shown]
    # Told by the host: who came by a grant hands on a part of that.
    faraway.client.fails("not_permitted", "grant", "helper", "execute", "box/asked-there")
    faraway.client.ok("actor", "key", "other")
    faraway.client.fails("no_such_actor", "--as", "other", "--on", "box", "ls")


def test_what_is_set_here_is_not_sent_there(faraway: Faraway) -> None:
    client = faraway.client
    client.env["SECRET_OF_MINE"] = "do not tell"
    try:
        words = ("--env", "WANTED=yes", "--", "sh", "-c", "env; pwd; cat")
        client.ok("--on", "box", "run", "-d", "--name", "bare", *words)
        client.ok("wait", "box/bare", "--for", "text:WANTED=yes", "--timeout", "20")
        screen = client.ok("screen", "box/bare", "--scrollback")
    finally:
        del client.env["SECRET_OF_MINE"]
    assert "do not tell" not in screen
    assert "PATH=/usr/local/sbin" in screen and "HOLDFAST_NAME=bare" in screen
    assert screen.rstrip().splitlines()[-1] == pwd.getpwuid(os.getuid()).pw_dir
    client.ok("end", "box/bare")


@pytest.mark.requirement("R3", "A1")
def test_what_is_done_from_afar_is_attributed_to_the_device(faraway: Faraway) -> None:
    faraway.client.ok("--on", "box", "run", "-d", "--name", "whose", "--", "cat")
    faraway.client.ok("send", "box/whose", "mine")
    (device,) = faraway.host.json("device", "ls")
    entries = [json.loads(line) for line in faraway.host.ok("log", "whose", "--json").splitlines()]
    typed = [each for each in entries if each["kind"] == "input"]
    assert {each["actor_name"] for each in typed} == {device["name"]}
    faraway.client.ok("end", "box/whose")


@pytest.mark.requirement("R3", "R5")
def test_an_invite_gives_no_more_than_it_says(faraway: Faraway) -> None:
    faraway.host.ok("run", "-d", "--name", "open", "--label", "shown", "--", "cat")
    faraway.host.ok("run", "-d", "--name", "closed", "--", "cat")
    reader = faraway.another_client(role="read", more=("--label", "shown"))
    listed = [each["name"] for each in reader.json("ls")]
    assert listed == ["open"]
    assert reader.ok("screen", "box/open") == ""
    reader.fails("not_permitted", "send", "box/open", "x")
    reader.fails("no_such_session", "screen", "box/closed")
    closed = faraway.host.json("show", "closed")["id"]
    reader.fails("no_such_session", "screen", f"box/{closed}")
    reader.fails("no_such_session", "send", f"box/{closed}", "x")
    reader.fails("not_permitted", "--on", "box", "run", "-d", "--", "true")
    reader.close()


@pytest.mark.requirement("R3")
def test_a_link_is_good_once(faraway: Faraway) -> None:
    link = faraway.link()
    first, second = Hold(), Hold()
    first.ok("join", link)
    said = second.fails("invite_used", "join", link)
    assert "ask for one of your own" in said
    wrong = link[:-50] + ("A" if link[-50] != "A" else "B") + link[-49:]
    second.fails("invite_invalid", "join", wrong)
    first.close()
    second.close()


@pytest.mark.requirement("R3")
def test_a_revoked_device_is_out_at_once_and_stays_out(faraway: Faraway) -> None:
    faraway.host.ok("run", "-d", "--name", "guarded", "--", "cat")
    guest = Hold()
    link = faraway.link()
    guest.ok("join", link, "--machine", "box", "--as", "guest")
    terminal = attached(guest, "box/guarded")
    terminal.type(b"hello")
    terminal.until_shown("hello")
    faraway.host.ok("device", "revoke", "guest")
    terminal.wait()
    assert "hello" in faraway.host.ok("screen", "guarded")
    assert guest("send", "box/guarded", "again").returncode != 0
    assert guest("--on", "box", "ls").returncode != 0
    terminal.close()
    guest.close()


@pytest.mark.requirement("S4", "R2")
def test_a_terminal_elsewhere_is_a_terminal_here(faraway: Faraway) -> None:
    script = 'read word; seq 3000; echo "done, $word"; cat'
    faraway.host.ok("run", "-d", "--name", "shared", "--", "sh", "-c", script)
    here = attached(faraway.host, "--observe", "shared")
    there = attached(faraway.client, "box/shared")
    there.type(b"typed there\r")
    for each in (here, there):
        each.until_shown("done, typed there")
    assert here.screen.text().split() == there.screen.text().split()
    there.type(b"\x1cd")
    assert there.wait() == 0
    assert faraway.host.json("show", "shared")["operators"] == 1
    for terminal in (here, there):
        terminal.close()


def broadcast_bytes(faraway: Faraway) -> int:
    """What hosts have sent to all readers, by the relay's own count."""
    with urllib.request.urlopen(f"{faraway.relay.url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (each for each in lines if re.match(r"\w*broadcast_bytes_total ", each))
    return int(float(line.split()[1]))


@pytest.mark.requirement("R4")
def test_a_terminal_reads_what_is_sent_to_all_also_after_it_was_repainted(
    faraway: Faraway,
) -> None:
    script = 'while read word; do seq 20000; echo "done, $word"; done'
    faraway.host.ok("run", "-d", "--name", "seen", "--", "sh", "-c", script)
    terminal = attached(faraway.client, "box/seen")
    for number in range(3):
        before = broadcast_bytes(faraway)
        terminal.type(b"word%d\r" % number)
        terminal.until_shown(f"done, word{number}")
        if number:  # the first may have come before the terminal had gone over
            assert broadcast_bytes(faraway) - before > 100_000, number
        terminal.type(b"\x1cr")
        terminal.until(b"\x1b[?2026l")
        # Its answers to what follows come after the new channel's.
        terminal.type(b"again%d\r" % number)
        terminal.until_shown(f"done, again{number}")
    terminal.close()


@pytest.mark.requirement("F5", "S4", "M6")
def test_a_relay_that_dies_costs_nothing_but_the_wait(own: Faraway) -> None:
    own.host.ok("run", "-d", "--name", "long", "--", "cat")
    terminal = attached(own.client, "box/long")
    terminal.type(b"before ")
    terminal.until_shown("before")
    own.relay.process.kill()
    terminal.type(b"meanwhile ")
    own.relay_again()
    terminal.until_shown("before meanwhile")
    terminal.type(b"after")
    terminal.until_shown("before meanwhile after")
    assert own.host.ok("screen", "long").strip() == "before meanwhile after"
    terminal.type(b"\x1cd")
    assert terminal.wait() == 0
    terminal.close()


@pytest.mark.requirement("S1", "S4", "M6")
def test_a_daemon_that_dies_is_found_again_from_afar(own: Faraway) -> None:
    own.host.ok("run", "-d", "--name", "long", "--", "cat")
    terminal = attached(own.client, "box/long")
    terminal.type(b"before ")
    terminal.until_shown("before")
    os.kill(pid_of_daemon(own.host), signal.SIGKILL)
    terminal.type(b"meanwhile ")
    own.until_reached(2)
    terminal.until_shown("before meanwhile")
    assert own.host.ok("screen", "long").strip() == "before meanwhile"
    terminal.close()
