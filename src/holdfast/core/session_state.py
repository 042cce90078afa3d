"""What a session is at a moment, as one table. The diagram in ARCHITECTURE.md is drawn from it.

Two states carry the one below them: a *fenced* session goes back to what it was when its lease is
held again, and an *ending* one ends from what it was. A step for which they have no row of their
own happens to the state below. The set of actors whose processes alone are halted is data of the
session machine, not a state.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class Phase(StrEnum):
    """Where an incarnation is in its life."""

    RUNNING = "running"  # its main process lives, input is taken
    HALTING = "halting"  # a halt was asked for: input is refused from here on
    HALTED = "halted"  # and the kernel has confirmed that the tree does not run
    RESUMING = "resuming"  # asked to run on; input is refused until the kernel has confirmed it
    # its tree stands still and is written away; input waits, and is taken when it is over
    CHECKPOINTING = "checkpointing"
    # its record is on its way to another host: nothing may happen here until it is known which of
    # the two it goes on at. Input waits
    MOVING = "moving"
    FENCED = "fenced"  # its lease is lost: nothing may be done here but to end it
    ENDING = "ending"  # an end was asked for; the tree is being taken down
    ENDED = "ended"  # the main process is gone, a tombstone says how. Nothing leads out of here
    # the tree was ended with its checkpoint: this incarnation is over, the session is not
    ASLEEP = "asleep"
    LOST = "lost"  # nobody can know how it ended: its keeper or its machine is gone


class StateStep(StrEnum):
    """What moves an incarnation from phase to phase."""

    HALT_ASKED = "halt asked"
    FREEZE_CONFIRMED = "freeze confirmed"
    FREEZE_FAILED = "freeze failed"
    RESUME_ASKED = "resume asked"
    THAW_CONFIRMED = "thaw confirmed"
    THAW_FAILED = "thaw failed"
    CHECKPOINT_ASKED = "checkpoint asked"
    CHECKPOINT_OVER = "checkpoint over"
    ENDED_IN_CHECKPOINT = "ended with its checkpoint"
    MOVE_SEALED = "move sealed"
    LEASE_LOST = "lease lost"
    LEASE_HELD = "lease held"
    END_ASKED = "end asked"
    MAIN_ENDED = "main process ended"
    HOST_LOST = "host lost"


_LAST = (Phase.ENDED, Phase.ASLEEP, Phase.LOST)
_LIVES = tuple(phase for phase in Phase if phase not in _LAST)
_OVER = {
    StateStep.MAIN_ENDED: Phase.ENDED,
    StateStep.ENDED_IN_CHECKPOINT: Phase.ASLEEP,
    StateStep.HOST_LOST: Phase.LOST,
}

# What is not in the table changes nothing.
TRANSITIONS: dict[tuple[Phase, StateStep], Phase] = {
    (Phase.RUNNING, StateStep.HALT_ASKED): Phase.HALTING,
    (Phase.RUNNING, StateStep.CHECKPOINT_ASKED): Phase.CHECKPOINTING,
    (Phase.RUNNING, StateStep.LEASE_LOST): Phase.FENCED,
    (Phase.RUNNING, StateStep.END_ASKED): Phase.ENDING,
    (Phase.HALTING, StateStep.FREEZE_CONFIRMED): Phase.HALTED,
    (Phase.HALTING, StateStep.RESUME_ASKED): Phase.RESUMING,
    (Phase.HALTING, StateStep.LEASE_LOST): Phase.FENCED,
    (Phase.HALTING, StateStep.END_ASKED): Phase.ENDING,
    (Phase.HALTED, StateStep.HALT_ASKED): Phase.HALTING,
    (Phase.HALTED, StateStep.FREEZE_FAILED): Phase.HALTING,
    (Phase.HALTED, StateStep.RESUME_ASKED): Phase.RESUMING,
    (Phase.HALTED, StateStep.LEASE_LOST): Phase.FENCED,
    (Phase.HALTED, StateStep.END_ASKED): Phase.ENDING,
    # A halt asked for during a resume is the later word: the thaw that is still reported ends a
    # halt only in RESUMING.
    (Phase.RESUMING, StateStep.HALT_ASKED): Phase.HALTING,
    (Phase.RESUMING, StateStep.THAW_CONFIRMED): Phase.RUNNING,
    (Phase.RESUMING, StateStep.THAW_FAILED): Phase.HALTED,
    (Phase.RESUMING, StateStep.LEASE_LOST): Phase.FENCED,
    (Phase.RESUMING, StateStep.END_ASKED): Phase.ENDING,
    # A halt counts at once; the tree is frozen for it when CRIU has let go of it.
    (Phase.CHECKPOINTING, StateStep.HALT_ASKED): Phase.HALTING,
    (Phase.CHECKPOINTING, StateStep.CHECKPOINT_OVER): Phase.RUNNING,
    (Phase.CHECKPOINTING, StateStep.MOVE_SEALED): Phase.MOVING,
    (Phase.CHECKPOINTING, StateStep.LEASE_LOST): Phase.FENCED,
    (Phase.CHECKPOINTING, StateStep.END_ASKED): Phase.ENDING,
    # The lease alone decides from here on; it comes back to running, or is disposed of.
    (Phase.MOVING, StateStep.CHECKPOINT_OVER): Phase.RUNNING,
    (Phase.FENCED, StateStep.END_ASKED): Phase.ENDING,
    **{(phase, step): after for phase in _LIVES for step, after in _OVER.items()},
}

CARRIES = (Phase.FENCED, Phase.ENDING)
# Steps that a carrying state answers itself: it goes back to the state below, or stays.
GOES_BACK = {(Phase.FENCED, StateStep.LEASE_HELD)}
STAYS = {
    (Phase.FENCED, StateStep.LEASE_LOST),
    (Phase.FENCED, StateStep.RESUME_ASKED),  # refused: nothing runs on without a lease
    (Phase.FENCED, StateStep.MOVE_SEALED),  # refused: neither may move any more
    (Phase.ENDING, StateStep.MOVE_SEALED),
    (Phase.ENDING, StateStep.END_ASKED),
    (Phase.ENDING, StateStep.LEASE_HELD),  # what ends does not run again
}


class State(Record):
    """A phase, and for a carrying one the state below it."""

    phase: Phase
    under: State | None = None

    def after(self, step: StateStep) -> State:
        at = (self.phase, step)
        if at in GOES_BACK and self.under is not None:
            return self.under
        if at in STAYS:
            return self
        next_phase = TRANSITIONS.get(at)
        if next_phase is not None:
            return State(next_phase, self if next_phase in CARRIES else None)
        if self.under is not None:
            return State(self.phase, self.under.after(step))
        return self

    def has(self, *phases: Phase) -> bool:
        """Whether it is one of these, or one of these is below it."""
        return self.phase in phases or (self.under is not None and self.under.has(*phases))

    @property
    def is_over(self) -> bool:
        """This incarnation is. A session that is asleep may be restored, in another one."""
        return self.phase in _LAST

    @property
    def is_lost(self) -> bool:
        return self.phase is Phase.LOST

    @property
    def is_asleep(self) -> bool:
        return self.phase is Phase.ASLEEP

    @property
    def is_checkpointing(self) -> bool:
        return self.phase is Phase.CHECKPOINTING

    @property
    def is_moving(self) -> bool:
        return self.phase is Phase.MOVING

    @property
    def is_fenced(self) -> bool:
        return self.phase is Phase.FENCED or (self.under is not None and self.under.is_fenced)

    @property
    def is_halted(self) -> bool:
        """A halt is in force: input is refused."""
        return self.has(Phase.HALTING, Phase.HALTED, Phase.RESUMING)

    @property
    def is_stopped(self) -> bool:
        """The tree does not run, or is about to be stopped: nothing is typed into it."""
        return self.is_halted or self.is_fenced

    @property
    def shows_halted(self) -> bool:
        """The kernel has confirmed that the tree does not run."""
        return self.has(Phase.HALTED, Phase.RESUMING, Phase.FENCED)


RUNNING = State(Phase.RUNNING)


def carried_on(
    *,
    halted: bool,
    confirmed: bool,
    fenced: bool,
    checkpointing: bool = False,
    moving: bool = False,
) -> State:
    """The state in which a new daemon finds a session."""
    if moving:
        return State(Phase.MOVING)
    state = State(Phase.CHECKPOINTING) if checkpointing else RUNNING
    if halted:
        state = State(Phase.HALTED if confirmed else Phase.HALTING)
    return state.after(StateStep.LEASE_LOST) if fenced else state
