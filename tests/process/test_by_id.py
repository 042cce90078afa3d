"""A session reached by nothing but its id, a relay, and the client's own credentials."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from process.commanding import Hold
from process.reaching import Faraway, pid_of_daemon
from process.terminals import Terminal


@pytest.fixture(scope="module")
def faraway() -> Iterator[Faraway]:
    made = Faraway(more=("--all", "--delegations", "2"))
    yield made
    made.close()


@pytest.fixture
def stranger() -> Iterator[Hold]:
    """A client that has never heard of any machine, and has a key of its own called `bot`."""
    made = Hold()
    yield made
    made.close()


def session_at(faraway: Faraway, name: str) -> str:
    """A session there; gives its id once the relay knows it, which is a moment later."""
    session = faraway.host.ok("run", "-d", "--name", name, "--", "cat").strip()
    faraway.client.ok("wait", f"box/{session}", "--for", "input", "--timeout", "20")
    return str(faraway.host.json("show", name)["id"])


def delegated(faraway: Faraway, stranger: Hold, session: str, *more: str) -> None:
    """From here on the stranger acts as `bot`, which was handed a part of the client's grant."""
    key = stranger.ok("actor", "key", "bot").strip()
    words = ("--session", session, "--role", "execute", *more)
    chain = faraway.client.ok("--on", "box", "delegate", key, *words).strip()
    stranger.env |= {"HOLDFAST_AS": "bot", "HOLDFAST_GRANT": chain}


@pytest.mark.requirement("S2", "S4", "R3")
def test_an_id_a_relay_and_a_delegated_grant_are_enough_for_every_verb(
    faraway: Faraway, stranger: Hold
) -> None:
    session = session_at(faraway, "enough")
    delegated(faraway, stranger, session)
    assert not Path(stranger.home, "machines.json").exists()
    address = f"{session}@{faraway.relay.url}"
    stranger.ok("send", address, "from a stranger", "--enter")
    stranger.ok("wait", address, "--for", "text:from a stranger", "--timeout", "20")
    assert stranger.ok("screen", address).startswith("from a stranger")
    assert stranger.json("show", address)["id"] == session
    assert "from a stranger" in stranger.ok("log", address)
    assert [each["id"] for each in stranger.json("--on", address, "ls")] == [session]
    book = json.loads(Path(stranger.home, "machines.json").read_text())
    assert book["machines"] == [], "nothing was joined"
    assert book["epochs"] == {session: 1}, "but its epoch is never forgotten"
    faraway.host.ok("end", "enough")


@pytest.mark.requirement("S4")
def test_a_terminal_attaches_by_id_and_comes_back_when_the_daemon_was_killed(
    faraway: Faraway, stranger: Hold
) -> None:
    session = session_at(faraway, "attached")
    delegated(faraway, stranger, session)
    terminal = Terminal(stranger, "attach", session, "--relay", faraway.relay.url)
    terminal.until(b"\x1b[?2026l")
    terminal.type(b"before ")
    terminal.until_shown("before")
    log = Path(faraway.host.home, "host.log").read_text()
    reached = log.count(f"relay {faraway.relay.url}: connected")
    os.kill(pid_of_daemon(faraway.host), signal.SIGKILL)
    terminal.type(b"meanwhile ")
    faraway.until_reached(reached + 1)
    terminal.until_shown("before meanwhile")
    terminal.type(b"\x1cd")
    terminal.until(f"`hold attach {session}@{faraway.relay.url}` comes back".encode())
    assert terminal.wait() == 0
    terminal.close()
    faraway.host.ok("end", "attached")


@pytest.mark.requirement("R3")
def test_an_id_alone_entitles_to_nothing(faraway: Faraway, stranger: Hold) -> None:
    session = session_at(faraway, "closed")
    address = f"{session}@{faraway.relay.url}"
    assert "no key of its own" in stranger.fails("no_such_actor", "screen", address)
    stranger.ok("actor", "key", "device")
    assert "not known here" in stranger.fails("no_such_actor", "screen", address)
    other = session_at(faraway, "other")
    delegated(faraway, stranger, other)
    stranger.ok("screen", f"{other}@{faraway.relay.url}")
    stranger.fails("no_such_session", "screen", address)
    stranger.fails("no_such_session", "send", address, "x")
    for name in ("closed", "other"):
        faraway.host.ok("end", name)


@pytest.mark.requirement("S2")
def test_what_a_relay_cannot_find_is_said_to_be_unknown_there(
    faraway: Faraway, stranger: Hold
) -> None:
    stranger.ok("actor", "key", "device")
    nobody = "0" * 26
    said = stranger.fails("no_such_session", "screen", f"{nobody}@{faraway.relay.url}")
    assert f"no host at {faraway.relay.url} has the session" in said
    said = stranger.fails("invalid_argument", "screen", f"half@{faraway.relay.url}")
    assert "whole id" in said
    stranger.fails("invalid_argument", "screen", f"{nobody}@relay.example")
    stranger.fails("relay_unreachable", "screen", f"{nobody}@http://127.0.0.1:9")


@pytest.mark.requirement("F1")
def test_an_incarnation_older_than_one_this_client_has_seen_is_fenced(
    faraway: Faraway, stranger: Hold
) -> None:
    session = session_at(faraway, "older")
    delegated(faraway, stranger, session)
    address = f"{session}@{faraway.relay.url}"
    stranger.ok("send", address, "seen")
    path = Path(stranger.home, "machines.json")
    book = json.loads(path.read_text())
    path.write_text(json.dumps({**book, "epochs": {session: 2}}))
    assert "is over" in stranger.fails("fenced", "screen", address)
    faraway.host.ok("end", "older")


@pytest.mark.requirement("S4")
def test_a_machine_that_was_joined_lends_its_key_and_grant_to_the_same_hosts_sessions(
    faraway: Faraway,
) -> None:
    session = session_at(faraway, "joined")
    assert faraway.client.ok("screen", f"{session}@{faraway.relay.url}") == ""
    faraway.host.ok("end", "joined")


@pytest.mark.requirement("R3")
def test_a_revoked_grant_no_longer_leads_in(faraway: Faraway, stranger: Hold) -> None:
    session = session_at(faraway, "revoked")
    delegated(faraway, stranger, session)
    address = f"{session}@{faraway.relay.url}"
    stranger.ok("screen", address)
    actor = stranger.json("actor", "key", "bot")["id"]
    faraway.host.ok("device", "revoke", actor)
    stranger.fails("grant_revoked", "screen", address)
    faraway.host.ok("end", "revoked")
