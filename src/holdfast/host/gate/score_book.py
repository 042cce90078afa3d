"""How each actor's actions went, day by day, kept on this host.

One small file for each actor, written a moment after it changes: a daemon that is killed loses that
moment. The file is a count and no evidence: each action and its score is in the journal of its
session. If a file is lost or cannot be read, that actor's record starts over, which gives it no
autonomy that it did not earn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from holdfast.core.gate.action_score import mean, together, with_action
from holdfast.host import json_file
from holdfast.host.clock import now
from holdfast.model.errors import StorageFailed
from holdfast.model.gate_facts import Score
from holdfast.model.ids import ActorId
from holdfast.model.limits import SCORE_DAYS, SCORE_RECENT, SCORE_WRITE_S, UNINTENDED_KEPT
from holdfast.model.measured import (
    ActionScore,
    ActorScore,
    DayScore,
    ScoreTotals,
    UnintendedEffects,
)
from holdfast.model.record import Record

log = logging.getLogger(__name__)


class _Kept(Record):
    """What one file holds."""

    days: tuple[DayScore, ...] = ()  # oldest first
    recent: tuple[float, ...] = ()  # the latest last
    unintended: tuple[UnintendedEffects, ...] = ()  # the latest last


class ScoreBook:
    """Of one host; implements ports.actor_scores.ActorScores."""

    def __init__(self, state: str, name: Callable[[str], str]) -> None:
        self._directory, self._name = f"{state}/scores", name
        self._kept: dict[str, _Kept] = {}
        self._unwritten: set[str] = set()
        self._write_at: asyncio.TimerHandle | None = None

    def of(self, actor: ActorId, days: int = 30) -> ActorScore:
        kept = self._of(actor)
        first = _day(now(), -max(0, min(days, SCORE_DAYS) - 1))
        shown = tuple(day for day in kept.days if day.day >= first)
        totals, recent = together(shown), kept.recent
        return ActorScore(
            actor,
            self._name(actor),
            mean(totals),
            sum(recent) / len(recent) if recent else None,
            len(recent),
            totals,
            shown,
            tuple(each for each in reversed(kept.unintended) if _day(each.at) >= first),
        )

    def score(self, actor: ActorId) -> Score:
        """For policies."""
        kept = self.of(actor)
        return Score(int(100 * (kept.recent or 0.0)), kept.totals.scored)

    def add(
        self, actor: str, one: ActionScore, unintended: UnintendedEffects | None = None
    ) -> None:
        """One more action of this actor."""
        kept, today = self._of(actor), _day(now())
        days = list(kept.days)
        if not days or days[-1].day < today:
            days.append(DayScore(today, ScoreTotals()))
        last = days[-1]  # the clock may have gone back over midnight
        days[-1] = last.replace(totals=with_action(last.totals, one))
        recent = kept.recent if one.score is None else (*kept.recent, one.score)
        all_unintended = (*kept.unintended, *((unintended,) if unintended is not None else ()))
        self._kept[actor] = _Kept(
            tuple(days[-SCORE_DAYS:]), recent[-SCORE_RECENT:], all_unintended[-UNINTENDED_KEPT:]
        )
        self._unwritten.add(actor)
        if self._write_at is None:
            loop = asyncio.get_running_loop()
            self._write_at = loop.call_later(SCORE_WRITE_S, self._write_soon)

    def _of(self, actor: str) -> _Kept:
        if actor not in self._kept:
            kept = None
            try:
                path = self._path(actor)
                kept = json_file.read(path, _Kept, without="this actor's record starts over")
            except StorageFailed as error:
                log.error("scores of %s: %s", actor, error)
            self._kept[actor] = kept or _Kept()
        return self._kept[actor]

    def _path(self, actor: str) -> str:
        return f"{self._directory}/{actor}.json"

    def _write_soon(self) -> None:
        self._write_at = None
        asyncio.get_running_loop().run_in_executor(None, self._write, self._taken())

    def _taken(self) -> dict[str, _Kept]:
        taken = {actor: self._kept[actor] for actor in self._unwritten}
        self._unwritten.clear()
        return taken

    def _write(self, taken: dict[str, _Kept]) -> None:
        for actor, kept in taken.items():
            try:
                os.makedirs(self._directory, mode=0o700, exist_ok=True)
                json_file.write(self._path(actor), kept)
            except OSError as error:
                log.error("scores of %s are not written: %s", actor, error)

    def close(self) -> None:
        if self._write_at is not None:
            self._write_at.cancel()
        with contextlib.suppress(OSError):
            self._write(self._taken())


def _day(at: float, later: int = 0) -> str:
    return (datetime.fromtimestamp(at, UTC) + timedelta(days=later)).date().isoformat()
