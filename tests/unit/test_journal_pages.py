"""A journal read from the host page by page, and the entry from which on it is young enough."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.journal.pages import Pages
from holdfast.journal.chain import Chain
from holdfast.journal.entries import ResumedEntry
from holdfast.journal.framing import FRAME_BYTES
from holdfast.model.ids import SessionId
from holdfast.wire.messages import journal as journal_messages
from unit.journaling import session_id


class Shown:
    """A host that answers with so many records at once, and counts how often it is asked."""

    def __init__(self, times: list[float], each: int = 3) -> None:
        chain = Chain(session_id())
        self.records = [chain.extend(at, 1, "", ResumedEntry())[1][FRAME_BYTES:] for at in times]
        self.each, self.asked = each, 0

    def ask(self, request: journal_messages.GetJournal, kind: Any) -> journal_messages.JournalShown:
        self.asked += 1
        count = 1 if request.max_bytes == 1 else self.each
        found = self.records[request.since_seq - 1 :]
        names = {"x": "somebody"}
        return journal_messages.JournalShown(
            1, SessionId(session_id()), tuple(found[:count]), len(found) > count, names
        )


def pages(host: Shown) -> Pages:
    return Pages(host, "name")  # type: ignore[arg-type]


def test_every_entry_comes_once_whatever_the_pages() -> None:
    for each in (1, 2, 5, 100):
        found = list(pages(Shown([float(n) for n in range(11)], each)).entries())
        assert [kept.entry.seq for kept in found] == list(range(1, 12))
    reader = pages(Shown([float(n) for n in range(11)]))
    assert [kept.entry.seq for kept in reader.entries(4, 8)] == [4, 5, 6, 7, 8]
    assert (reader.session, reader.name("x"), reader.name("")) == (
        session_id(),
        "somebody",
        "(host)",
    )
    assert reader.unlinked == 0


def test_a_link_that_is_wrong_is_noticed_between_and_within_pages() -> None:
    for broken in range(1, 8):
        host = Shown([float(n) for n in range(8)])
        other = Shown([float(n) + 0.5 for n in range(8)])
        host.records[broken:] = other.records[broken:]
        reader = pages(host)
        assert len(list(reader.entries())) == 8
        assert reader.unlinked == broken + 1


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 100])
def test_the_first_entry_not_older_than_a_moment_is_found_in_few_looks(size: int) -> None:
    times = [10.0 * (number // 2) for number in range(size)]  # each moment twice
    for moment in [-1.0, *{at + by for at in times for by in (-5.0, 0.0, 5.0)}, 1e9]:
        host = Shown(times)
        expected = next((i for i, at in enumerate(times, 1) if at >= moment), None)
        found = pages(host).first_since(moment)
        assert found == expected if expected else found > size
        assert host.asked <= 2 * (size.bit_length() + 1) + 2
