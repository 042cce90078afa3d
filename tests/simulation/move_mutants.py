"""The machines of a move, or their hosts, with one rule broken each: what the checkers must find. A
checker that finds nothing in these has not looked."""

from __future__ import annotations

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import (
    _SOURCE_HANDLERS,
    _TARGET_HANDLERS,
    SourceMove,
    TargetMove,
)
from holdfast.core.continuity.move_table import SourceState, SourceStep, TargetState, TargetStep
from holdfast.core.lease.machine import Lease
from holdfast.model.lease import LeaseRecord
from simulation.move_orders import Bounds
from simulation.move_world import Rules


class Source(SourceMove):
    """Its handlers can be overridden."""

    __slots__ = ()

    def handle(self, event: ev.MoveEvent) -> list[ev.MoveEffect]:
        handler = _SOURCE_HANDLERS.get(type(event))
        effects: list[ev.MoveEffect] = getattr(self, handler.__name__)(event) if handler else []
        return effects


class Target(TargetMove):
    """The same."""

    __slots__ = ()

    def handle(self, event: ev.MoveEvent) -> list[ev.MoveEffect]:
        handler = _TARGET_HANDLERS.get(type(event))
        effects: list[ev.MoveEffect] = getattr(self, handler.__name__)(event) if handler else []
        return effects


class RunsOnBeforeTheClaim(Source):
    """A silent target is taken for a dead one: the source runs on without asking the store."""

    __slots__ = ()

    def _reclaim_if_overdue(self) -> list[ev.MoveEffect]:
        if not (self.overdue and self.released and self.tree):
            return []
        self.state = SourceState.ROLLED_BACK
        return self._run_on()


class BelievesTheTarget(Source):
    """The source disposes of its tree when the target says that it is ready."""

    __slots__ = ()

    def _release(self, now: float) -> list[ev.MoveEffect]:
        released = super()._release(now)
        self._enter(SourceStep.CLAIMED)
        return [*released, *self._complete(self.epoch + 1)]


class DisposesAfterSilence(Source):
    """Released, and nothing heard: so the target must have it."""

    __slots__ = ()

    def _reclaim_if_overdue(self) -> list[ev.MoveEffect]:
        if not (self.overdue and self.released):
            return []
        self._enter(SourceStep.CLAIMED)
        return self._complete(self.epoch + 1)


class ReleasesBeforeItIsReady(Source):
    """Released as soon as the target has a tree."""

    __slots__ = ()

    def _noted(self, event: ev.Noted) -> list[ev.MoveEffect]:
        effects = super()._noted(event)
        if event.note is ev.MoveNote.RESTORED and self.state is SourceState.REPLAY:
            self._enter(SourceStep.PRIMED)
            return [*effects, *self._release(event.now)]
        return effects


class StopsAfterReady(Source):
    """The tree is stopped only when the target is ready."""

    __slots__ = ()

    def _noted(self, event: ev.Noted) -> list[ev.MoveEffect]:
        effects = super()._noted(event)
        return [each for each in effects if not isinstance(each, ev.StopTree)]

    def _release(self, now: float) -> list[ev.MoveEffect]:
        return [ev.StopTree(), *super()._release(now)]


class TakesBackWithoutATree(Source):
    """The source takes the lease back though its machine was restarted."""

    __slots__ = ()

    def _recovered(self, event: ev.Recovered) -> list[ev.MoveEffect]:
        if self.state is SourceState.CUTOVER and not event.tree:
            effects = super()._recovered(event)
            self.deadline = event.now
            return effects
        return super()._recovered(event)

    def _reclaim_if_overdue(self) -> list[ev.MoveEffect]:
        self.tree = True
        return super()._reclaim_if_overdue()


class ForgetsWhatIsHeld(Source):
    """What was held is told to its client as taken, and sent nowhere."""

    __slots__ = ()

    def _noted(self, event: ev.Noted) -> list[ev.MoveEffect]:
        return [
            ev.SendRest(()) if isinstance(each, ev.SendRest) else each
            for each in super()._noted(event)
        ]


class DeliversTheNewestFirst(Target):
    """Held inputs are delivered in no order."""

    __slots__ = ()

    def _deliver(self) -> list[ev.MoveEffect]:
        return [ev.AdoptEpoch(self.epoch), ev.DeliverHeld(self.held[::-1])]


class RunsBeforeTheClaim(Target):
    """The target lets its tree run as soon as it sees the release."""

    __slots__ = ()

    def _record_is(self, event: ev.RecordIs) -> list[ev.MoveEffect]:
        effects = super()._record_is(event)
        return [*effects, ev.LiveHere()] if self.state is TargetState.CLAIMING else effects


class TakesSilenceForTheEnd(Target):
    """A target that is ready gives up when its source is silent."""

    __slots__ = ()

    def _tick(self, event: ev.MoveTick) -> list[ev.MoveEffect]:
        if self.state is TargetState.PRIMED and event.now >= self.deadline:
            self.state = TargetState.RESTORED
            return self._discard(TargetStep.FAILED, "silence")
        return super()._tick(event)


class GivesUpWhileItClaims(Target):
    """A claim that takes long is given up, although it may be written already."""

    __slots__ = ()

    def _record_is(self, event: ev.RecordIs) -> list[ev.MoveEffect]:
        effects = super()._record_is(event)
        if self.state is TargetState.CLAIMING:
            self.deadline = event.now + 1
        return effects

    def _tick(self, event: ev.MoveTick) -> list[ev.MoveEffect]:
        if self.state is TargetState.CLAIMING:
            self.state = TargetState.RESTORED
        return super()._tick(event)


class LetsInBeforeItDelivers(Target):
    """Operators are let in before the held inputs are delivered."""

    __slots__ = ()

    def _claimed(self, event: ev.Claimed) -> list[ev.MoveEffect]:
        if not self._enter(TargetStep.CLAIMED):
            return []
        self.epoch = event.epoch
        self._enter(TargetStep.DELIVERED)
        self.deadline = event.now + 1
        return [ev.AdoptEpoch(self.epoch), ev.LiveHere()]

    def _tick(self, event: ev.MoveTick) -> list[ev.MoveEffect]:
        if self.state is not TargetState.LIVE:
            return super()._tick(event)
        held, self.held, self.deadline = self.held, (), float("inf")
        return [ev.DeliverHeld(held)]


class InheritsWhateverIsThere(Lease):
    """An heir claims over any released record, not only over that of the epoch it inherits."""

    __slots__ = ()

    def _seen_by_heir(self, event):  # type: ignore[no-untyped-def]
        return self._sight(event)

    def _is_handed_over(self, record: LeaseRecord) -> bool:
        return bool(self.heir_of) or super()._is_handed_over(record)


_PLAIN = Bounds(crashes=0, failures=0, strays=0, inputs=0)
_GONE = Bounds(crashes=0, failures=0, strays=0, inputs=0, gone=1)
_CRASH = Bounds(crashes=1, failures=0, strays=0, inputs=0)
MUTANTS: dict[str, tuple[Rules, Bounds]] = {
    "a source that runs on without the lease": (Rules(RunsOnBeforeTheClaim), _PLAIN),
    "a source that believes the target": (Rules(BelievesTheTarget), _GONE),
    "a source that disposes after silence": (Rules(DisposesAfterSilence), _GONE),
    "a release to a target that is not ready": (Rules(ReleasesBeforeItIsReady), _CRASH),
    "a tree that is not stopped": (Rules(stops=False), _CRASH),
    "a tree that is stopped late": (Rules(StopsAfterReady), _CRASH),
    "a lease taken back without a tree": (
        Rules(TakesBackWithoutATree),
        _PLAIN._replace(restarts=1),
    ),
    "held input that is sent nowhere": (Rules(ForgetsWhatIsHeld), _PLAIN._replace(inputs=1)),
    "held input that is delivered in no order": (
        Rules(target=DeliversTheNewestFirst),
        _PLAIN._replace(inputs=2),
    ),
    "a target that runs before its claim": (Rules(target=RunsBeforeTheClaim), _PLAIN),
    "a ready target that silence discards": (
        Rules(target=TakesSilenceForTheEnd),
        _GONE,
    ),
    "a claiming target that gives up": (Rules(target=GivesUpWhileItClaims), _PLAIN),
    "operators let in before held input": (
        Rules(target=LetsInBeforeItDelivers),
        _PLAIN._replace(inputs=2),
    ),
    "no ledger": (Rules(ledger=False), _PLAIN._replace(inputs=1)),
    "effects before what is kept": (Rules(stores_first=False), _CRASH),
    "an heir that does not mind whose the record is": (
        Rules(lease=InheritsWhateverIsThere),
        _PLAIN,
    ),
}
