"""What the journal of a session is owed when nothing more happens in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import check
from holdfast.journal import entries
from holdfast.wire.messages import session as m
from process.waiting import until

_HASTY_SEALS = """
import holdfast.model.limits as limits
limits.JOURNAL_SEAL_S = 0.3
"""


@pytest.fixture
def hasty() -> Iterator[FaultHost]:
    """A host that signs three times a second instead of every ten seconds."""
    with customized_host(_HASTY_SEALS) as host:
        yield host.up()


@pytest.mark.requirement("N7", "M8")
def test_what_was_done_last_is_signed_though_nothing_follows_it(hasty: FaultHost) -> None:
    client = hasty.client()
    session = client.run(["cat"]).id
    client.send(session, "the last thing done")
    reader = JournalReader(str(hasty.home / "sessions" / session))

    def is_signed() -> bool | None:
        verdict = reader.verify(session, check)
        inputs = [e.seq for e in reader.entries() if isinstance(e.body, entries.InputEntry)]
        return (bool(inputs) and verdict.signed_through > inputs[-1]) or None

    until("the input is under a seal", is_signed)


@pytest.mark.requirement("M1")
def test_an_operator_that_comes_back_is_recorded_with_how_long_it_was_away(
    host: FaultHost,
) -> None:
    client = host.client()
    session = client.run(["cat"]).id
    returning = host.client()
    for channel in (1, 2):
        ask = m.Attach(returning.connection.next_id(), session, channel)
        assert isinstance(returning.connection.ask(ask), m.Attached)
        returning.reconnect()
    until("both attachments are over", lambda: client.show(session).operators == 0 or None)
    found = list(JournalReader(str(host.home / "sessions" / session)).entries())
    came = [entry.body for entry in found if isinstance(entry.body, entries.AttachedEntry)]
    left = [entry for entry in found if isinstance(entry.body, entries.DetachedEntry)]
    assert [body.operator for body in came] == [came[0].operator] * 2, "the same operator"
    assert came[0].gap_s == 0.0
    assert 0.0 < came[1].gap_s < 20.0
    assert len(left) == 2
