"""The lease machine with one rule broken each: what the checker must find. A checker that finds
nothing in these has not looked."""

from __future__ import annotations

from holdfast.core.lease.events import (
    LeaseEvent,
    LeaseOutcome,
    LeaseWritten,
    RecordSeen,
    WriteUnknown,
)
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import HELD, RELEASED
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.wire.epochs import EpochFloor
from simulation.fencing import DRIFT, LENGTH, PINNED, Rules


class NoWait(Lease):
    """A successor does not wait for the time to be over."""

    __slots__ = ()

    def _free_at(self) -> float:
        return self.since


class WaitsForTheFirstSight(Lease):
    """The wait is counted from the first sight of any revision, not of this one."""

    __slots__ = ()

    def _sight(self, event: RecordSeen) -> list[LeaseOutcome]:
        began, known = self.since, self.revision >= 0
        outcomes = super()._sight(event)
        self.since = began if known else self.since
        return outcomes


class CountsFromTheAnswer(Lease):
    """The holder's time begins when it hears of it."""

    __slots__ = ()

    def _usable_until(self, answer: LeaseWritten) -> float:
        return answer.now + self.terms.usable_s()


class TrustsItsTimer(Lease):
    """Whether the time is over is judged when a timer fires, not at each effect."""

    __slots__ = ()

    def usable(self, now: float) -> bool:
        return self.state is HELD


class TakesSilenceForYes(Lease):
    """A renewal without an answer counts."""

    __slots__ = ()

    def handle(self, event: LeaseEvent) -> list[LeaseOutcome]:
        outcomes = super().handle(event)
        if type(event) is WriteUnknown and self.state is HELD:
            self.deadline = self.sent + self.terms.usable_s()
        return outcomes


class StopsAfterTelling(Lease):
    """A holder that releases goes on until the release is confirmed."""

    __slots__ = ()

    def usable(self, now: float) -> bool:
        return super().usable(now) or (self.state is RELEASED and not self.settled)


class ForcesWhateverIsThere(Lease):
    """That one epoch is gone is taken for all."""

    __slots__ = ()

    def _free_at(self) -> float:
        return self.since if self.forced is not None else super()._free_at()


class KeepsTheEpoch(Lease):
    """A successor goes on with the epoch it found."""

    __slots__ = ()

    def _claim(self) -> LeaseRecord:
        claim = super()._claim()
        return claim.replace(epoch=claim.epoch - 1)


class TakesPinnedByTime(Lease):
    """A pinned lease lapses like any other."""

    __slots__ = ()

    def _free_at(self) -> float:
        return min(super()._free_at(), self.since + LENGTH)


class TakesAbsenceForFree(Lease):
    """Where there is no record there was never a holder."""

    __slots__ = ()

    def _free_at(self) -> float:
        return self.since if self.record is None else super()._free_at()


class WaitOfT(LeaseTerms):
    """The successor waits T: the margin for drift is only the holder's, so half of it."""

    def wait_s(self, length_s: float) -> float:
        return length_s


class UsableForT(LeaseTerms):
    """The holder acts for T: the margin is only the successor's."""

    def usable_s(self) -> float:
        return LENGTH


class NoMargin(WaitOfT, UsableForT):
    """Both count T on their own clocks."""


class NoFloor(EpochFloor):
    """The client does not mind epochs."""

    def check(self, epoch: int) -> None:
        return None


_TIMES = (LENGTH, 0.0, DRIFT, 0.0, 0.0)
MUTANTS: dict[str, Rules] = {
    "a successor that does not wait": Rules(NoWait),
    "a successor that waits T": Rules(terms=WaitOfT(*_TIMES)),
    "a holder that acts for T": Rules(terms=UsableForT(*_TIMES), usable=LENGTH),
    "both count T": Rules(terms=NoMargin(*_TIMES), usable=LENGTH),
    "a wait that a new revision does not begin anew": Rules(WaitsForTheFirstSight),
    "time counted from the answer": Rules(CountsFromTheAnswer),
    "a clock that stops in sleep": Rules(suspend=True, monotonic=True),
    "no check of the time at each effect": Rules(TrustsItsTimer),
    "a renewal without an answer taken for done": Rules(TakesSilenceForYes),
    "a release told before the stop": Rules(StopsAfterTelling),
    "a force that outlives its epoch": Rules(
        ForcesWhateverIsThere, terms=PINNED, rates=(), force=True
    ),
    "an epoch that does not rise": Rules(KeepsTheEpoch),
    "a pinned lease taken by time": Rules(TakesPinnedByTime, terms=PINNED),
    "absence of a record taken for freedom": Rules(
        TakesAbsenceForFree, terms=PINNED, rates=(), forgets=True
    ),
    "a write over whatever stands there": Rules(blind=True),
    "a client that does not mind epochs": Rules(floor=NoFloor, terms=PINNED, rates=(), frames=True),
}
