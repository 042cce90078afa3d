"""What is lost is told to devices that joined, and to whoever knows nothing but an id (N9, A9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from process.commanding import PATIENCE_S, Hold
from process.reaching import Faraway
from process.recorded import damage, host_dies
from process.terminals import Terminal


@pytest.fixture
def faraway() -> Iterator[Faraway]:
    made = Faraway(more=("--all", "--delegations", "2"))
    yield made
    made.close()


@pytest.fixture
def stranger() -> Iterator[Hold]:
    made = Hold()
    yield made
    made.close()


def session_at(faraway: Faraway, name: str) -> str:
    session = faraway.host.ok("run", "-d", "--name", name, "--", "cat").strip()
    faraway.client.ok("wait", f"box/{session}", "--for", "input", "--timeout", "20")
    return session


def delegated(faraway: Faraway, stranger: Hold) -> None:
    """From here on the stranger acts as `bot`, by a part of the client's grant."""
    key = stranger.ok("actor", "key", "bot").strip()
    chain = faraway.client.ok("--on", "box", "delegate", key, "--role", "execute").strip()
    stranger.env |= {"HOLDFAST_AS": "bot", "HOLDFAST_GRANT": chain}


@pytest.mark.requirement("N9", "A9")
def test_a_device_and_whoever_knows_the_id_learn_of_the_loss_and_of_the_successor(
    faraway: Faraway, stranger: Hold
) -> None:
    old = session_at(faraway, "work")
    delegated(faraway, stranger)
    address = f"{old}@{faraway.relay.url}"
    stranger.ok("screen", address)
    watching = faraway.client.start("watch", f"box/{old}", "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["state"] == "input"
    host_dies(faraway.host)
    faraway.host.ok("up", "-d", "--no-relay")
    faraway.until_reached(2)

    told = [json.loads(line) for line in watching.stdout][-1]
    watching.communicate()
    assert (told["state"], told["ending"]["cause"]["kind"]) == ("lost", "keeper_lost")
    faraway.client.fails("session_lost", "send", f"box/{old}", "x")
    stranger.fails("session_lost", "send", address, "x")
    assert stranger.json("show", address)["ending"]["cause"]["kind"] == "keeper_lost"
    (listed,) = (each for each in faraway.client.json("ls") if each.get("machine") == "box")
    assert (listed["id"], listed["state"]) == (old, "lost")

    new = faraway.host.ok("run", "-d", "--name", "next", "--after", old, "--", "cat").strip()
    faraway.client.ok("wait", f"box/{new}", "--for", "input", "--timeout", "20")
    assert len(faraway.host.json("acknowledge", "--all")) == 1
    assert stranger.json("show", address)["ending"]["successor"] == new
    assert new in stranger.fails("session_lost", "send", address, "x")
    for client, name in ((faraway.client, f"box/{old}"), (stranger, address)):
        with closing(Terminal(client, "attach", name)) as terminal:
            terminal.until(f"attaching to its successor, {new}]".encode())
            terminal.until(b"\x1b[?2026l")
            terminal.type(b"\x1cd")
            terminal.until(b"detached from next")


@pytest.mark.requirement("N9")
def test_relays_forget_a_lost_session_that_was_acknowledged_and_has_no_successor(
    faraway: Faraway, stranger: Hold
) -> None:
    old = session_at(faraway, "work")
    delegated(faraway, stranger)
    host_dies(faraway.host)
    faraway.host.ok("up", "-d", "--no-relay")
    faraway.until_reached(2)
    address = f"{old}@{faraway.relay.url}"
    stranger.fails("session_lost", "send", address, "x")
    faraway.client.ok("acknowledge", f"box/{old}")
    shown = faraway.client.json("show", f"box/{old}")
    assert shown["acknowledged_by"] not in ("", "root")
    with Hold() as fresh:
        fresh.ok("actor", "key", "bot")
        fresh.env |= {name: stranger.env[name] for name in ("HOLDFAST_AS", "HOLDFAST_GRANT")}
        fresh.fails("no_such_session", "screen", address)


@pytest.mark.requirement("N9", "A9")
@pytest.mark.parametrize("kind", ["corruption", "conflicting_chains"])
def test_a_device_learns_that_a_record_is_damaged_and_who_follows(
    faraway: Faraway, stranger: Hold, kind: str
) -> None:
    old = session_at(faraway, "work")
    delegated(faraway, stranger)
    address = f"{old}@{faraway.relay.url}"
    stranger.ok("screen", address)
    terminal = Terminal(faraway.client, "attach", f"box/{old}")
    watching = [faraway.client.start("watch", f"box/{name}", "--json") for name in ("work", old)]
    try:
        terminal.until_shown("attached to")
        for each in watching:
            assert each.stdout is not None
            assert json.loads(each.stdout.readline())["session"] == old
        damage(faraway.host, old, kind)
        faraway.host.ok("daemon", "restart")
        new = faraway.host.json("show", "work")["id"]
        terminal.until(f"; followed by {new}]".encode())
        for each in watching:
            told = [
                json.loads(line) for line in each.communicate(timeout=PATIENCE_S)[0].splitlines()
            ]
            assert {line["session"] for line in told} == {old}
            assert (told[-1]["state"], told[-1]["ending"]["cause"]["kind"]) == ("lost", kind)
        stranger.fails("session_lost", "send", address, "x")
        shown = stranger.json("show", address)["ending"]
        assert (shown["cause"]["kind"], shown["successor"]) == (kind, new)
    finally:
        terminal.close()
        for each in watching:
            each.kill()
            each.communicate()
