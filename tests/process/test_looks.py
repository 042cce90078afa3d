"""What counts as a look, and so where the next catch-up begins (A6); and how much of a long journal
one catch-up reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host.session import handoff as handoffs
from holdfast.journal.entries import CommandBegan, CommandEnded, TurnMoved
from holdfast.model.limits import HANDOFF_COMMANDS, HANDOFF_MOVES
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.acting import add_actor, connected
from process.commanding import Hold
from unit.journaling import Journal


@pytest.fixture(scope="module", autouse=True)
def ann(host_home: Hold) -> None:
    add_actor(host_home, "ann", "execute", "--all")


def told(hold: Hold, session: str, *words: str) -> list[str]:
    """The commands that ann is told of."""
    handoff = hold.json("--as", "ann", "catchup", session, *words)
    return [each["text"] for each in handoff["commands"]]


def looked_and_missed(hold: Hold, session: str) -> None:
    """Ann has looked, and then somebody ran something."""
    hold.shell(session)
    hold.ok("--as", "ann", "catchup", session)
    hold.ok("exec", session, "--", ": while you were away")


def test_reading_the_output_is_no_look(host_home: Hold) -> None:
    looked_and_missed(host_home, "polled")
    assert "away" in host_home.ok("--as", "ann", "tail", "polled")
    with connected(host_home, "ann") as host:
        host.ask(m.Attach(0, "polled", 1, observe=True, raw=True, since=0), m.Attached)
        host.ask(m.Detach(0, 1), m.Done)
    assert told(host_home, "polled") == [": while you were away"]
    assert told(host_home, "polled") == []


@pytest.mark.parametrize("first", [1, 2], ids=["the terminal first", "the bytes first"])
def test_having_had_a_terminal_is_a_look_whatever_else_was_read(
    host_home: Hold, first: int
) -> None:
    name = f"watched-{first}"
    looked_and_missed(host_home, name)
    with connected(host_home, "ann") as host:
        host.ask(m.Attach(0, name, 1), m.Attached)
        host.ask(m.Attach(0, name, 2, raw=True), m.Attached)
        host.ask(m.Detach(0, first), m.Done)
        host.ask(m.Detach(0, 3 - first), m.Done)
        host.ask(turn_messages.GetTurn(0, name), turn_messages.TurnShown)
    assert told(host_home, name) == []


def test_asking_for_a_stretch_of_the_journal_is_no_look(host_home: Hold) -> None:
    looked_and_missed(host_home, "again")
    for _ in range(2):
        assert told(host_home, "again", "--since", "1") == [": while you were away"]
    assert told(host_home, "again") == [": while you were away"]
    assert told(host_home, "again") == []
    assert told(host_home, "again", "--since", "0") == [": while you were away"]


# -- a long journal ---------------------------------------------------------------------------


def test_of_a_long_journal_the_latest_records_are_read_and_the_cut_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handoffs, "HANDOFF_RECORDS", 500)
    journal = Journal(tmp_path).type(300)
    last = 0
    for number in range(1, 401):
        at = 2000.0 + number
        journal.writer.record(at, 1, "bob", CommandBegan(number, f": {number}", "/", 0, ("bob",)))
        journal.writer.record(at, 1, "", TurnMoved("request", "", "bob"))
        last = journal.writer.record(at + 0.5, 1, "", CommandEnded(number, 0, "/", 0))
    journal.sealed()

    found = handoffs._gathered(str(tmp_path), 1, last)
    assert found.first == last - 500 + 1
    assert found.cut_at == next(journal.reader.entries(found.first, found.first)).at
    assert list(found.commands) == list(range(401 - HANDOFF_COMMANDS, 401))
    assert found.commands[400].status == 0
    read = [each.body for each in journal.reader.entries(found.first, last)]
    began = sum(1 for body in read if isinstance(body, CommandBegan))
    assert found.commands_left_out == began - HANDOFF_COMMANDS > 0
    assert len(found.moves) == HANDOFF_MOVES

    whole = handoffs._gathered(str(tmp_path), last - 9, last)
    assert (whole.first, whole.cut_at, whole.commands_left_out) == (last - 9, None, 0)
