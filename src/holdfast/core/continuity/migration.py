"""A move of a session to another host (N1, F1): one machine for its source, one for its target.

The source freezes the tree, sends its image, and the target restores it while the source's still
stands there. Until the source releases its lease, whatever goes wrong ends with the source running
on as if nothing had happened. From then on the lease record alone decides: the target may claim
it, and so may the source, when the target is silent. A claim replaces the one revision in which it
was released, so one of them succeeds (`core/lease/machine.py`), and the other disposes of its
tree.

The rules. Most have a mutant in `tests/simulation/move_mutants.py` whose counterexample shows what
it is for.

- A tree runs only while a lease for it is held: both ends wait for the claim before they let
  theirs run.
- The source stops its tree before it asks the target to get ready, in a way that outlives CRIU and
  the daemon. A tree that ran on after its image was taken is never given up for that image.
- The source disposes of its tree only when it has seen the record of a later epoch. What the
  target says is not enough, nor is silence.
- The source releases only to a target that has all it needs on its own disk, so the target can do
  without the source from then on.
- A target that is ready is not discarded by silence, and one that claims not even by the source's
  word: only the record can tell it that the session lives elsewhere.
- A source whose tree is gone never takes the lease back.
- Input that comes meanwhile is held unanswered, in order. The target gets it before it is ready,
  and delivers it before anything else is let in; when the source runs on, the source does. What
  came too late for the target is dropped unanswered: its client sends it again, under its number.
- Whatever is delivered or sent again is known by operator and number to the ledger that moved with
  the tree, so nothing is taken twice.

What `kept` gives is stored before the effects of an event are carried out. The source's held
inputs are not part of it: nobody was told that they are safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.move_table import (
    SOURCE_TRANSITIONS,
    TARGET_TRANSITIONS,
    SourceState,
    SourceStep,
    TargetState,
    TargetStep,
)
from holdfast.model.limits import (
    MOVE_ASK_S,
    MOVE_CUTOVER_S,
    MOVE_HELD_BYTES,
    MOVE_HELD_INPUTS,
    MOVE_LOOK_S,
    MOVE_RESTORE_S,
    MOVE_SILENCE_S,
    MOVE_SNAPSHOT_S,
)
from holdfast.model.record import Record

_NEVER = float("inf")


class SavedSource(Record):
    """Of the source's machine, what its daemon's successor needs. No times: they are given anew."""

    state: SourceState
    epoch: int
    successor: str
    released: bool
    overdue: bool
    tree: bool
    reason: str


class SavedTarget(Record):
    """Of the target's machine."""

    state: TargetState
    heir_of: int
    incarnation: str
    held: tuple[ev.HeldInput, ...]
    tree: bool
    epoch: int
    reason: str


class SourceMove:
    """The move as the host has it that the session leaves. `epoch` is that of the incarnation here;
    `successor` is the one that the target, which has agreed to the move, will be."""

    __slots__ = (
        "deadline", "epoch", "held", "held_bytes", "look_at", "overdue", "reason", "released",
        "state", "successor", "tree",
    )  # fmt: skip

    def __init__(self, epoch: int, successor: str) -> None:
        self.epoch, self.successor = epoch, successor
        self.state = SourceState.SNAPSHOT
        self.released = False  # the record certainly says so
        self.overdue = False  # the target failed or was silent; take it back once it is released
        self.tree = True
        self.reason = ""  # why it was rolled back
        self.held: tuple[ev.HeldInput, ...] = ()
        self.held_bytes = 0
        self.deadline = _NEVER
        self.look_at = _NEVER

    @classmethod
    def of(cls, kept: SavedSource) -> SourceMove:
        """The one that another daemon kept; Recovered follows."""
        move = cls(kept.epoch, kept.successor)
        move.state, move.released, move.overdue = kept.state, kept.released, kept.overdue
        move.tree, move.reason = kept.tree, kept.reason
        return move

    def kept(self) -> SavedSource:
        return SavedSource(
            self.state, self.epoch, self.successor, self.released, self.overdue, self.tree,
            self.reason,
        )  # fmt: skip

    @property
    def is_over(self) -> bool:
        return self.state in _SOURCE_OVER

    @property
    def holds_input(self) -> bool:
        return not self.is_over and self.state is not SourceState.COMPLETE

    def wakes_at(self) -> float | None:
        """When a MoveTick would do something; None when no time would."""
        at = min(self.deadline, self.look_at)
        return at if at < _NEVER else None

    def begin(self, now: float) -> list[ev.MoveEffect]:
        self.deadline = now + MOVE_SNAPSHOT_S
        return [ev.TakeImage()]

    def handle(self, event: ev.MoveEvent) -> list[ev.MoveEffect]:
        """The only way in."""
        handler = _SOURCE_HANDLERS.get(type(event))
        return handler(self, event) if handler is not None else []

    # -- the way forward --------------------------------------------------------------------------

    def _image_taken(self, event: ev.ImageTaken) -> list[ev.MoveEffect]:
        if not self._enter(SourceStep.TAKEN):
            return []
        self.deadline = event.now + MOVE_SILENCE_S
        return [ev.SendImage()]

    def _progress(self, event: ev.Progress) -> list[ev.MoveEffect]:
        if self.state is SourceState.TRANSFER:
            self.deadline = event.now + MOVE_SILENCE_S
        return []

    def _noted(self, event: ev.Noted) -> list[ev.MoveEffect]:
        match event.note:
            case ev.MoveNote.RESTORING if self._enter(SourceStep.ARRIVED):
                self.deadline = event.now + MOVE_RESTORE_S
            case ev.MoveNote.RESTORED if self._enter(SourceStep.RESTORED):
                self.deadline = event.now + MOVE_SILENCE_S
                return [ev.StopTree(), ev.SendRest(self.held)]
            case ev.MoveNote.PRIMED if self._enter(SourceStep.PRIMED):
                return self._release(event.now)
            case ev.MoveNote.FAILED:
                return self._fail(event.now, event.reason)
            case ev.MoveNote.ASKS if self.state is SourceState.ROLLED_BACK:
                return [ev.Tell(ev.MoveNote.CALLED_OFF, self.reason)]
        return []

    def _release(self, now: float) -> list[ev.MoveEffect]:
        self.deadline = now + MOVE_CUTOVER_S
        return [ev.ReleaseLease(self.successor)]

    def _lease_released(self, event: ev.LeaseReleased) -> list[ev.MoveEffect]:
        if self.state is not SourceState.CUTOVER:
            return []
        self.released = True
        return [ev.Tell(ev.MoveNote.RELEASED), *self._look(), *self._reclaim_if_overdue()]

    def _record_is(self, event: ev.RecordIs) -> list[ev.MoveEffect]:
        if event.epoch > self.epoch and not event.ours and self._enter(SourceStep.CLAIMED):
            return self._complete(event.epoch)
        if event.epoch > self.epoch and event.ours and not self.tree:
            return self._close_as_lost()  # taken back, and then the machine restarted
        self._look_again(event.now)
        return []

    def _complete(self, epoch: int) -> list[ev.MoveEffect]:
        self.deadline = self.look_at = _NEVER
        self.held, self.held_bytes = (), 0
        return [ev.DisposeOfTree(epoch)]

    def _disposed(self, event: ev.Disposed) -> list[ev.MoveEffect]:
        self._enter(SourceStep.DISPOSED)
        return []

    # -- the way back -----------------------------------------------------------------------------

    def _failed(self, event: ev.MoveFailed) -> list[ev.MoveEffect]:
        return self._fail(event.now, event.reason)

    def _fail(self, now: float, reason: str) -> list[ev.MoveEffect]:
        if self.state is SourceState.CUTOVER:
            self.overdue, self.reason, self.deadline = True, self.reason or reason, _NEVER
            return self._reclaim_if_overdue()
        if self.state is SourceState.RECLAIM or not self._enter(SourceStep.FAILED):
            return []
        self.reason = reason
        return self._run_on()

    def _reclaim_if_overdue(self) -> list[ev.MoveEffect]:
        """Not before the release is certain: a lease is one machine's at a time."""
        if not (self.overdue and self.released and self.tree):
            return []
        self._enter(SourceStep.FAILED)
        self.look_at = _NEVER
        return [ev.ReclaimLease(self.epoch)]

    def _reclaimed(self, event: ev.Reclaimed) -> list[ev.MoveEffect]:
        if not self._enter(SourceStep.RECLAIMED):
            return []
        self.epoch = event.epoch
        return self._run_on()

    def _lease_lost(self, event: ev.FencedBeforeRelease) -> list[ev.MoveEffect]:
        if self.state is not SourceState.CUTOVER:
            return self._fail(event.now, event.reason)
        if self.released:
            return []
        if not self.tree:
            return self._close_as_lost()
        self._enter(SourceStep.LEASE_LOST)
        self.reason = event.reason
        return self._run_on()

    def _close_as_lost(self) -> list[ev.MoveEffect]:
        self.deadline = self.look_at = _NEVER
        return [ev.CloseAsLost()] if self._enter(SourceStep.TREE_LOST) else []

    def _reclaim_ousted(self, event: ev.ReclaimOusted) -> list[ev.MoveEffect]:
        return self._complete(self.epoch + 1) if self._enter(SourceStep.CLAIMED) else []

    def _run_on(self) -> list[ev.MoveEffect]:
        """As before the move: what was held is delivered here, before anything newer."""
        self.deadline = self.look_at = _NEVER
        held, self.held, self.held_bytes = self.held, (), 0
        return [
            ev.RunOnHere(self.epoch, self.reason),
            ev.DeliverHeld(held),
            ev.Tell(ev.MoveNote.CALLED_OFF, self.reason),
        ]

    # -- time, and daemons that come back ---------------------------------------------------------

    def _tick(self, event: ev.MoveTick) -> list[ev.MoveEffect]:
        if event.now >= self.deadline:
            return self._fail(event.now, f"the move got no further in its phase {self.state!r}")
        if event.now >= self.look_at:
            return self._look()
        return []

    def _look_failed(self, event: ev.RecordUnknown) -> list[ev.MoveEffect]:
        self._look_again(event.now)
        return []

    def _look(self) -> list[ev.MoveEffect]:
        self.look_at = _NEVER
        return [ev.LookAtRecord()]

    def _look_again(self, now: float) -> None:
        if self.state is SourceState.CUTOVER or (
            self.state is SourceState.RECLAIM and not self.tree
        ):
            self.look_at = now + MOVE_LOOK_S

    def _recovered(self, event: ev.Recovered) -> list[ev.MoveEffect]:
        self.tree = event.tree
        match self.state:
            case SourceState.CUTOVER:
                self.deadline = event.now + MOVE_CUTOVER_S if self.tree else _NEVER
                return [ev.ReleaseLease(self.successor), *(self._look() if self.released else [])]
            case SourceState.RECLAIM:
                return [ev.ReclaimLease(self.epoch)] if self.tree else self._look()
            case SourceState.COMPLETE:
                return [ev.DisposeOfTree(self.epoch + 1)]
            case SourceState.ROLLED_BACK if self.tree:
                return [ev.RunOnHere(self.epoch, self.reason)]
            case SourceState.LOST:
                return [ev.CloseAsLost()]
        if self.is_over:
            return []
        if self.tree:
            return self._fail(event.now, "the daemon of the source ended during the move")
        has_a_tree = self.state is SourceState.REPLAY  # the target
        lost = self._close_as_lost()
        return self._release(_NEVER) if has_a_tree else lost

    # -- input ------------------------------------------------------------------------------------

    def _input_came(self, event: ev.InputCame) -> list[ev.MoveEffect]:
        new = event.held
        if not self.holds_input:
            return []
        if any(each.operator == new.operator and each.seq >= new.seq for each in self.held):
            return []  # sent again: it waits already
        size = self.held_bytes + len(new.data)
        if len(self.held) >= MOVE_HELD_INPUTS or size > MOVE_HELD_BYTES:
            return [ev.AnswerInput(new, "the session is moving, and what waits fills the limit")]
        self.held, self.held_bytes = (*self.held, new), size
        return []

    def _enter(self, step: SourceStep) -> bool:
        after = SOURCE_TRANSITIONS.get((self.state, step))
        if after is not None:
            self.state = after
        return after is not None


class TargetMove:
    """The move as the host has it that the session comes to. `incarnation` is what it will be here;
    the lease of epoch `heir_of` is what it inherits."""

    __slots__ = (
        "deadline", "epoch", "heir_of", "held", "incarnation", "look_at", "reason", "restoring",
        "state", "tree",
    )  # fmt: skip

    def __init__(self, heir_of: int, incarnation: str) -> None:
        self.heir_of, self.incarnation = heir_of, incarnation
        self.state = TargetState.RECEIVING
        self.held: tuple[ev.HeldInput, ...] = ()
        self.tree = False  # restored, and still there
        self.restoring = False
        self.epoch = 0  # ours, once claimed
        self.reason = ""  # why it was discarded
        self.deadline = _NEVER
        self.look_at = _NEVER

    @classmethod
    def of(cls, kept: SavedTarget) -> TargetMove:
        """The one that another daemon kept; Recovered follows."""
        move = cls(kept.heir_of, kept.incarnation)
        move.state, move.held, move.tree = kept.state, kept.held, kept.tree
        move.epoch, move.reason = kept.epoch, kept.reason
        return move

    def kept(self) -> SavedTarget:
        return SavedTarget(
            self.state, self.heir_of, self.incarnation, self.held, self.tree, self.epoch,
            self.reason,
        )  # fmt: skip

    @property
    def is_over(self) -> bool:
        return self.state in (TargetState.LIVE, TargetState.DISCARDED)

    def wakes_at(self) -> float | None:
        """When a MoveTick would do something; None when no time would."""
        at = min(self.deadline, self.look_at)
        return at if at < _NEVER else None

    def begin(self, now: float) -> list[ev.MoveEffect]:
        self.deadline = now + MOVE_SNAPSHOT_S + MOVE_SILENCE_S
        return []

    def handle(self, event: ev.MoveEvent) -> list[ev.MoveEffect]:
        """The only way in."""
        handler = _TARGET_HANDLERS.get(type(event))
        return handler(self, event) if handler is not None else []

    # -- the way forward --------------------------------------------------------------------------

    def _progress(self, event: ev.Progress) -> list[ev.MoveEffect]:
        if self.state is TargetState.RECEIVING:
            self.deadline = event.now + MOVE_SILENCE_S
        return []

    def _image_arrived(self, event: ev.ImageArrived) -> list[ev.MoveEffect]:
        if not self._enter(TargetStep.ARRIVED):
            return []
        self.deadline = event.now + MOVE_RESTORE_S
        return [ev.Tell(ev.MoveNote.RESTORING), *self._restore()]

    def _tree_restored(self, event: ev.TreeRestored) -> list[ev.MoveEffect]:
        self.tree, self.restoring = True, False
        if self._enter(TargetStep.RESTORED):
            self.deadline = event.now + MOVE_SILENCE_S
            return [ev.Tell(ev.MoveNote.RESTORED)]
        if self.state in (TargetState.PRIMED, TargetState.CLAIMING):  # restored once more
            return self._look()
        return self._deliver() if self.state is TargetState.DELIVERING else []

    def _rest_arrived(self, event: ev.RestArrived) -> list[ev.MoveEffect]:
        if self._enter(TargetStep.REST_ARRIVED):
            self.held = event.held
            self._wait_for_release(event.now)
        again = self.state in (TargetState.PRIMED, TargetState.CLAIMING)
        return [ev.Tell(ev.MoveNote.PRIMED)] if again else []

    def _record_is(self, event: ev.RecordIs) -> list[ev.MoveEffect]:
        if self.state is not TargetState.PRIMED:
            return []
        if event.epoch > self.heir_of and event.incarnation != self.incarnation:
            return self._discard(TargetStep.OUSTED, "the session lives elsewhere")
        ours = event.released_to == self.incarnation or event.incarnation == self.incarnation
        if ours and self.tree:
            self._enter(TargetStep.RELEASED)
            self.deadline = self.look_at = _NEVER
            return [ev.ClaimLease(self.heir_of)]
        self.look_at = event.now + MOVE_LOOK_S if event.released_to else self.deadline
        return []

    def _claimed(self, event: ev.Claimed) -> list[ev.MoveEffect]:
        if not self._enter(TargetStep.CLAIMED):
            return []
        self.epoch = event.epoch
        return self._deliver()

    def _deliver(self) -> list[ev.MoveEffect]:
        return [ev.AdoptEpoch(self.epoch), ev.DeliverHeld(self.held)]

    def _delivered(self, event: ev.Delivered) -> list[ev.MoveEffect]:
        if not self._enter(TargetStep.DELIVERED):
            return []
        self.held = ()
        return [ev.LiveHere()]

    # -- the way back -----------------------------------------------------------------------------

    def _noted(self, event: ev.Noted) -> list[ev.MoveEffect]:
        match event.note:
            case ev.MoveNote.RELEASED if self.state is TargetState.PRIMED:
                return self._look()
            case ev.MoveNote.CALLED_OFF:
                return self._discard(TargetStep.CALLED_OFF, event.reason)
        return []

    def _failed(self, event: ev.MoveFailed) -> list[ev.MoveEffect]:
        self.restoring = False
        tell = ev.Tell(ev.MoveNote.FAILED, event.reason)
        discard = self._discard(TargetStep.FAILED, event.reason)
        if not discard and not self.tree and self.state is TargetState.PRIMED:
            # It was restored once, and now is not: the source, if it is there, takes it back.
            return [tell]
        return [tell, *discard] if discard else []

    def _claim_ousted(self, event: ev.ClaimOusted) -> list[ev.MoveEffect]:
        return self._discard(TargetStep.OUSTED, "the source took the session back")

    def _discard(self, step: TargetStep, reason: str) -> list[ev.MoveEffect]:
        if not self._enter(step):
            return []
        self.deadline = self.look_at = _NEVER
        self.held, self.tree, self.reason = (), False, reason
        return [ev.Discard(reason)]

    # -- time, and daemons that come back ---------------------------------------------------------

    def _tick(self, event: ev.MoveTick) -> list[ev.MoveEffect]:
        if self.state is TargetState.PRIMED:
            effects: list[ev.MoveEffect] = []
            if event.now >= self.deadline:
                self.deadline = event.now + MOVE_ASK_S
                effects = [ev.Tell(ev.MoveNote.ASKS), *([] if self.tree else self._restore())]
            return [*effects, *(self._look() if event.now >= self.look_at else [])]
        if event.now < self.deadline:
            return []
        reason = f"nothing was heard of the source in the state {self.state!r}"
        tell = ev.Tell(ev.MoveNote.FAILED, reason)
        return [tell, *self._discard(TargetStep.FAILED, reason)]

    def _wait_for_release(self, now: float) -> None:
        self.deadline = self.look_at = now + MOVE_ASK_S

    def _look_failed(self, event: ev.RecordUnknown) -> list[ev.MoveEffect]:
        if self.state is TargetState.PRIMED:
            self.look_at = event.now + MOVE_LOOK_S
        return []

    def _look(self) -> list[ev.MoveEffect]:
        if self.state is TargetState.CLAIMING:
            return [ev.ClaimLease(self.heir_of)]
        self.look_at = _NEVER
        return [ev.LookAtRecord()]

    def _restore(self) -> list[ev.MoveEffect]:
        if self.restoring:
            return []
        self.restoring = True
        return [ev.RestoreTree()]

    def _recovered(self, event: ev.Recovered) -> list[ev.MoveEffect]:
        """A tree that never ran can be restored again from the same image, with nothing lost."""
        self.tree = self.tree and event.tree
        if self.state is TargetState.DISCARDED:
            return [ev.Discard(self.reason)]
        if self.state is TargetState.LIVE:
            return [ev.LiveHere()] if self.tree else []
        if self.state in (TargetState.RECEIVING, TargetState.RESTORING, TargetState.RESTORED):
            reason = "the daemon of the target ended during the move"
            tell = ev.Tell(ev.MoveNote.FAILED, reason)
            return [tell, *self._discard(TargetStep.FAILED, reason)]
        if self.state is TargetState.PRIMED:
            self._wait_for_release(event.now)
        if not self.tree:
            return self._restore()
        return self._deliver() if self.state is TargetState.DELIVERING else self._look()

    def _enter(self, step: TargetStep) -> bool:
        after = TARGET_TRANSITIONS.get((self.state, step))
        if after is not None:
            self.state = after
        return after is not None


_SOURCE_OVER = (SourceState.MOVED, SourceState.ROLLED_BACK, SourceState.LOST)

_SOURCE_HANDLERS: dict[type[ev.MoveEvent], Callable[[SourceMove, Any], list[ev.MoveEffect]]] = {
    ev.ImageTaken: SourceMove._image_taken,
    ev.Progress: SourceMove._progress,
    ev.Noted: SourceMove._noted,
    ev.MoveFailed: SourceMove._failed,
    ev.LeaseReleased: SourceMove._lease_released,
    ev.FencedBeforeRelease: SourceMove._lease_lost,
    ev.RecordIs: SourceMove._record_is,
    ev.RecordUnknown: SourceMove._look_failed,
    ev.Reclaimed: SourceMove._reclaimed,
    ev.ReclaimOusted: SourceMove._reclaim_ousted,
    ev.Disposed: SourceMove._disposed,
    ev.MoveTick: SourceMove._tick,
    ev.Recovered: SourceMove._recovered,
    ev.InputCame: SourceMove._input_came,
}

_TARGET_HANDLERS: dict[type[ev.MoveEvent], Callable[[TargetMove, Any], list[ev.MoveEffect]]] = {
    ev.Progress: TargetMove._progress,
    ev.ImageArrived: TargetMove._image_arrived,
    ev.TreeRestored: TargetMove._tree_restored,
    ev.RestArrived: TargetMove._rest_arrived,
    ev.Noted: TargetMove._noted,
    ev.MoveFailed: TargetMove._failed,
    ev.RecordIs: TargetMove._record_is,
    ev.RecordUnknown: TargetMove._look_failed,
    ev.Claimed: TargetMove._claimed,
    ev.ClaimOusted: TargetMove._claim_ousted,
    ev.Delivered: TargetMove._delivered,
    ev.MoveTick: TargetMove._tick,
    ev.Recovered: TargetMove._recovered,
}
