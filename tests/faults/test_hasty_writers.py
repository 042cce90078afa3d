"""Clients that write and are gone before they can be told of it."""

from __future__ import annotations

import pytest

from faults.hosting import FaultHost
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.journal import entries
from holdfast.wire.messages import session as m
from process.waiting import until

WRITERS = 40


@pytest.mark.requirement("A3", "S1")
def test_an_input_of_a_client_that_is_gone_is_taken_under_its_own_turn(host: FaultHost) -> None:
    client = host.client()
    session = client.run(["cat"]).id
    for number in range(WRITERS):
        hasty = host.client()
        hasty.connection.send(m.Submit(1, session, 1, f"line-{number}"))
        hasty.close()  # the host learns of it when it tells that the turn was taken
    # In order, because a client that connects later is read later.
    until("all are typed", lambda: f"line-{WRITERS - 1}" in client.screen(session).text or None)
    client.end(session)
    holder, typed = "", 0
    for entry in JournalReader(str(host.home / "sessions" / session)).entries():
        if isinstance(entry.body, entries.TurnMoved):
            holder = entry.body.holder
        elif isinstance(entry.body, entries.InputEntry):
            assert entry.actor == holder, f"entry {entry.seq} was typed without the turn"
            typed += 1
    assert typed == WRITERS
