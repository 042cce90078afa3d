"""The states of a move, as its source and as its target see it. The tables are the truth; the
diagrams in docs/migration.md are drawn from them."""

from __future__ import annotations

from enum import StrEnum


class MovePhase(StrEnum):
    """The six phases that both ends go through."""

    SNAPSHOT = "snapshot"
    TRANSFER = "transfer"
    RESTORE = "restore"
    REPLAY = "replay"  # of inputs that came meanwhile; never of state
    CUTOVER = "cutover"
    COMPLETE = "complete"


class Superposition(StrEnum):
    """How many trees of the session there are; which is to say, where it is."""

    PRE_MIGRATION = "pre-migration"  # only the source's
    TRANSFERRING = "transferring"  # only the source's, which stands still
    DUAL_ACTIVE = "dual-active"  # two, both standing still; the lease decides which may run
    POST_CUTOVER = "post-cutover"  # the target's runs, the source's is being disposed of
    SETTLED = "settled"  # one again


class SourceState(StrEnum):
    """Where the host stands that the session leaves."""

    SNAPSHOT = "snapshot"  # its tree is frozen and its image taken; input is held from here on
    TRANSFER = "transfer"  # the image is on its way
    RESTORE = "restore"  # the target has all of it, and makes a tree of it
    REPLAY = "replay"  # the rest of the journal and the held inputs are on their way
    CUTOVER = "cutover"  # released to the target: from here the lease record decides
    RECLAIM = "reclaim"  # the target was silent, or failed: the lease is asked for again
    COMPLETE = "complete"  # the record is the target's: what is left here is disposed of
    MOVED = "moved"  # nothing is left here
    ROLLED_BACK = "rolled back"  # it runs here
    LOST = "lost"  # its tree went with the machine before the target had enough to go on


class SourceStep(StrEnum):
    """What moves the source on."""

    TAKEN = "image taken"
    ARRIVED = "image arrived"
    RESTORED = "tree restored"
    PRIMED = "target ready"
    CLAIMED = "record is the target's"
    FAILED = "failed, or silent"
    RECLAIMED = "record is ours again"
    LEASE_LOST = "lease lost"
    TREE_LOST = "machine restarted"
    DISPOSED = "tree disposed of"


S = SourceState
SOURCE_TRANSITIONS: dict[tuple[SourceState, SourceStep], SourceState] = {
    (S.SNAPSHOT, SourceStep.TAKEN): S.TRANSFER,
    (S.TRANSFER, SourceStep.ARRIVED): S.RESTORE,
    (S.RESTORE, SourceStep.RESTORED): S.REPLAY,
    (S.REPLAY, SourceStep.PRIMED): S.CUTOVER,
    (S.CUTOVER, SourceStep.CLAIMED): S.COMPLETE,
    (S.COMPLETE, SourceStep.DISPOSED): S.MOVED,
    (S.CUTOVER, SourceStep.FAILED): S.RECLAIM,
    (S.RECLAIM, SourceStep.CLAIMED): S.COMPLETE,
    (S.RECLAIM, SourceStep.RECLAIMED): S.ROLLED_BACK,
    (S.SNAPSHOT, SourceStep.FAILED): S.ROLLED_BACK,
    (S.TRANSFER, SourceStep.FAILED): S.ROLLED_BACK,
    (S.RESTORE, SourceStep.FAILED): S.ROLLED_BACK,
    (S.REPLAY, SourceStep.FAILED): S.ROLLED_BACK,
    # Lost before it was released: nobody can have claimed it. It goes on as any fenced session.
    (S.CUTOVER, SourceStep.LEASE_LOST): S.ROLLED_BACK,
    (S.SNAPSHOT, SourceStep.TREE_LOST): S.LOST,
    (S.TRANSFER, SourceStep.TREE_LOST): S.LOST,
    (S.RESTORE, SourceStep.TREE_LOST): S.LOST,
    # There is nothing to roll back to, and the target has a tree.
    (S.REPLAY, SourceStep.TREE_LOST): S.CUTOVER,
    (S.CUTOVER, SourceStep.TREE_LOST): S.LOST,
    (S.RECLAIM, SourceStep.TREE_LOST): S.LOST,
}


class TargetState(StrEnum):
    """Where the host stands that the session comes to."""

    RECEIVING = "receiving"  # the image comes in
    RESTORING = "restoring"  # a tree is made of it, which stands still
    RESTORED = "restored"  # waits for the rest of the journal and the held inputs
    PRIMED = "primed"  # has everything on its disk: waits for the release, for as long as it takes
    CLAIMING = "claiming"  # it was released to us: the lease is asked for
    DELIVERING = "delivering"  # the lease is ours: the held inputs are put into custody
    LIVE = "live"  # an ordinary session of this host
    DISCARDED = "discarded"  # nothing of it is left here


class TargetStep(StrEnum):
    """What moves the target on."""

    ARRIVED = "image arrived"
    RESTORED = "tree restored"
    REST_ARRIVED = "rest arrived"
    RELEASED = "released to us"
    CLAIMED = "record is ours"
    DELIVERED = "inputs delivered"
    FAILED = "failed, or silent"
    CALLED_OFF = "source called it off"
    OUSTED = "record is another's"


T = TargetState
TARGET_TRANSITIONS: dict[tuple[TargetState, TargetStep], TargetState] = {
    (T.RECEIVING, TargetStep.ARRIVED): T.RESTORING,
    (T.RESTORING, TargetStep.RESTORED): T.RESTORED,
    (T.RESTORED, TargetStep.REST_ARRIVED): T.PRIMED,
    (T.PRIMED, TargetStep.RELEASED): T.CLAIMING,
    (T.CLAIMING, TargetStep.CLAIMED): T.DELIVERING,
    (T.DELIVERING, TargetStep.DELIVERED): T.LIVE,
    (T.RECEIVING, TargetStep.FAILED): T.DISCARDED,
    (T.RESTORING, TargetStep.FAILED): T.DISCARDED,
    (T.RESTORED, TargetStep.FAILED): T.DISCARDED,
    (T.RECEIVING, TargetStep.CALLED_OFF): T.DISCARDED,
    (T.RESTORING, TargetStep.CALLED_OFF): T.DISCARDED,
    (T.RESTORED, TargetStep.CALLED_OFF): T.DISCARDED,
    # Silence does not lead out of here: the source may have released it, and be gone.
    (T.PRIMED, TargetStep.CALLED_OFF): T.DISCARDED,
    (T.PRIMED, TargetStep.OUSTED): T.DISCARDED,
    # Nor does the source's word out of here: a claim may be written already.
    (T.CLAIMING, TargetStep.OUSTED): T.DISCARDED,
}

# What is shown of each state: which of the six phases, and the superposition.
PHASES: dict[SourceState | TargetState, tuple[MovePhase | None, Superposition]] = {
    S.SNAPSHOT: (MovePhase.SNAPSHOT, Superposition.PRE_MIGRATION),
    S.TRANSFER: (MovePhase.TRANSFER, Superposition.TRANSFERRING),
    S.RESTORE: (MovePhase.RESTORE, Superposition.DUAL_ACTIVE),
    S.REPLAY: (MovePhase.REPLAY, Superposition.DUAL_ACTIVE),
    S.CUTOVER: (MovePhase.CUTOVER, Superposition.DUAL_ACTIVE),
    S.RECLAIM: (MovePhase.CUTOVER, Superposition.DUAL_ACTIVE),
    S.COMPLETE: (MovePhase.COMPLETE, Superposition.POST_CUTOVER),
    S.MOVED: (None, Superposition.SETTLED),
    S.ROLLED_BACK: (None, Superposition.SETTLED),
    S.LOST: (None, Superposition.SETTLED),
    T.RECEIVING: (MovePhase.TRANSFER, Superposition.TRANSFERRING),
    T.RESTORING: (MovePhase.RESTORE, Superposition.DUAL_ACTIVE),
    T.RESTORED: (MovePhase.REPLAY, Superposition.DUAL_ACTIVE),
    T.PRIMED: (MovePhase.CUTOVER, Superposition.DUAL_ACTIVE),
    T.CLAIMING: (MovePhase.CUTOVER, Superposition.DUAL_ACTIVE),
    T.DELIVERING: (MovePhase.COMPLETE, Superposition.POST_CUTOVER),
    T.LIVE: (None, Superposition.SETTLED),
    T.DISCARDED: (None, Superposition.SETTLED),
}


def phase_of(state: SourceState | TargetState) -> MovePhase | None:
    """Which of the six phases; None: the move is over."""
    return PHASES[state][0]


def superposition_of(state: SourceState | TargetState | None) -> Superposition:
    """Where the session is; None: no move was begun."""
    return Superposition.PRE_MIGRATION if state is None else PHASES[state][1]
