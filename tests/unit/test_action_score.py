"""The score of an action, and an actor's record on its host."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.cli.text.action import score_text
from holdfast.core.gate.action_score import (
    INVALID,
    REFUSED,
    UNKNOWN,
    mean,
    score,
    together,
    unmeasured,
    with_action,
)
from holdfast.host.gate import score_book
from holdfast.host.gate.score_book import ScoreBook
from holdfast.model.gate_facts import Score
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import SCORE_DAYS, SCORE_RECENT, UNINTENDED_KEPT
from holdfast.model.measured import (
    ActionScore,
    DayScore,
    Deviation,
    ScoreTotals,
    UnintendedEffects,
)

OTTO = ActorId.of_key(b"\1" * 32)
CLEAN = score((), ())
LACKS = (Deviation("file", "out"),)
DAY_S = 86400.0


def effects(count: int) -> tuple[Deviation, ...]:
    return tuple(Deviation("file_created", f"/{number}") for number in range(count))


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("missing", "unexpected", "expected"),
    [((), 0, 1.0), ((), 1, 0.75), ((), 3, 0.625), (LACKS, 0, 0.5), (LACKS, 1, 0.25)],
)
def test_the_formula(missing: tuple[Deviation, ...], unexpected: int, expected: float) -> None:
    one = score(missing, effects(unexpected))
    assert (one.valid, one.success, one.side_effects) == (True, not missing, unexpected)
    assert one.score == expected
    assert one.kinds == ({"file_created": unexpected} if unexpected else {})


def test_what_was_refused_counts_as_nothing_done_well() -> None:
    assert (REFUSED.valid, REFUSED.success, REFUSED.score) == (False, False, 0.0)
    assert {"invalid_argument", "not_permitted", "gate_refused"} <= INVALID
    assert not {"turn_held", "session_busy", "input_unknown", "host_lost"} & INVALID


def test_what_is_not_known_is_not_judged() -> None:
    assert unmeasured(None, 0) == unmeasured(0, 0) == UNKNOWN
    assert unmeasured(1, 0).success is False and unmeasured(1, 0).score is None
    totals = with_action(ScoreTotals(), unmeasured(1, 0))
    assert totals == ScoreTotals(actions=1, valid=1)
    assert mean(totals) is None


def test_actions_are_counted() -> None:
    totals = ScoreTotals()
    for one in (CLEAN, score((), effects(3)), score(LACKS, ()), REFUSED, UNKNOWN):
        totals = with_action(totals, one)
    assert totals == ScoreTotals(5, 4, 3, 2, 2, 3, 1.0 + 0.625 + 0.5, 4)
    assert mean(totals) == 2.125 / 4
    two = (DayScore("2026-01-01", totals), DayScore("2026-01-02", totals))
    assert together(two).actions == 10 and mean(together(two)) == mean(totals)


# -- kept on the host -------------------------------------------------------------------------


class Clock:
    """The host's time of day, in the test's hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 1_800_000_000.0
        monkeypatch.setattr(score_book, "now", lambda: self.at)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def added(state: Path, *actions: ActionScore) -> ScoreBook:
    """A book with these added, closed: it still answers."""

    async def add() -> ScoreBook:
        book = ScoreBook(str(state), lambda actor: "otto")
        for one in actions:
            book.add(OTTO, one)
        book.close()
        return book

    return asyncio.run(add())


def test_a_record_survives_its_daemon(tmp_path: Path, clock: Clock) -> None:
    before = added(tmp_path, CLEAN, REFUSED).of(OTTO)
    again = added(tmp_path).of(OTTO)
    assert again == before
    assert (again.name, again.score, again.recent, again.recent_count) == ("otto", 0.5, 0.5, 2)
    assert [day.totals.actions for day in again.days] == [2]


def test_an_actor_without_a_record_has_no_score(tmp_path: Path, clock: Clock) -> None:
    found = added(tmp_path).of(OTTO)
    assert (found.score, found.recent, found.totals) == (None, None, ScoreTotals())


def test_a_day_is_a_day_and_old_ones_go(tmp_path: Path, clock: Clock) -> None:
    for _ in range(SCORE_DAYS + 5):
        book = added(tmp_path, CLEAN)
        clock.at += DAY_S
    clock.at -= DAY_S
    assert len(book.of(OTTO, SCORE_DAYS).days) == SCORE_DAYS
    assert len(book.of(OTTO, 7).days) == 7
    assert book.of(OTTO, 1).totals.actions == 1
    clock.at += 40 * DAY_S
    assert book.of(OTTO, 30).score is None


@pytest.mark.requirement("G5")
def test_a_record_that_breaks_shows_at_once(tmp_path: Path, clock: Clock) -> None:
    book = added(tmp_path, *[CLEAN] * 1000)
    assert book.of(OTTO).recent == 1.0
    book = added(tmp_path, *[score(LACKS, effects(9))] * 5)
    found = book.of(OTTO)
    assert found.score is not None and found.score > 0.99
    assert found.recent is not None and found.recent < 0.8
    assert found.recent_count == SCORE_RECENT
    assert book.score(OTTO) == Score(76, 1005), "as policies see it"


def test_policies_see_no_record_as_none(tmp_path: Path, clock: Clock) -> None:
    assert added(tmp_path).score(OTTO) == Score(0, 0)
    assert added(tmp_path, CLEAN).score(OTTO) == Score(100, 1)


def test_a_clock_set_back_over_midnight_starts_no_day_twice(tmp_path: Path, clock: Clock) -> None:
    added(tmp_path, CLEAN)
    clock.at -= DAY_S
    book = added(tmp_path, CLEAN)
    clock.at += DAY_S
    assert [day.totals.actions for day in book.of(OTTO).days] == [2]


@pytest.mark.parametrize("spoilt", [b"", b"{", b'{"days": 3}', b'{"days": [], "recent": ["x"]}'])
def test_a_file_that_cannot_be_read_is_no_record(
    tmp_path: Path, clock: Clock, spoilt: bytes
) -> None:
    added(tmp_path, CLEAN)
    (path,) = (tmp_path / "scores").iterdir()
    path.write_bytes(spoilt)
    assert added(tmp_path).of(OTTO).score is None
    assert added(tmp_path, CLEAN).of(OTTO).totals.actions == 1
    assert json.loads(path.read_bytes())["recent"] == [1.0]


def test_a_full_disk_stops_nobody(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "scores").write_bytes(b"in the way")
    assert added(tmp_path, CLEAN).of(OTTO).totals.actions == 1


@pytest.mark.requirement("G5")
def test_what_was_not_intended_is_kept_with_its_action_the_latest_first(
    tmp_path: Path, clock: Clock
) -> None:
    session = SessionId("s" * 26)

    def unintended(number: int) -> UnintendedEffects:
        command, path = f"make {number}", (Deviation("file_created", "/x"),)
        return UnintendedEffects(clock.at, session, f"{number:016x}", command, path, 1)

    async def add() -> None:
        book = ScoreBook(str(tmp_path), lambda actor: "otto")
        for number in range(UNINTENDED_KEPT + 3):
            book.add(OTTO, score((), effects(1)), unintended(number))
        book.add(OTTO, CLEAN)
        book.close()

    asyncio.run(add())
    found = added(tmp_path).of(OTTO)
    assert [each.command for each in found.unintended] == [
        f"make {number}" for number in range(UNINTENDED_KEPT + 2, 2, -1)
    ]
    assert "make 22: file created /x" in score_text(found)
    clock.at += 40 * DAY_S
    assert added(tmp_path).of(OTTO, 30).unintended == ()
