"""The turn's states and what leads from one to another. The table is the truth; the diagram in
ARCHITECTURE.md is drawn from it, and `machine.py` refuses a step that is not in it."""

from __future__ import annotations

from enum import StrEnum


class TurnPhase(StrEnum):
    """What the turn looks like from outside."""

    FREE = "free"  # nobody holds it, so nobody waits
    HELD = "held"
    CONTESTED = "contested"  # held, and others wait


class TurnStepKind(StrEnum):
    """What happens to the turn."""

    REQUEST = "request"  # asked for, or simply written when free
    GRANT = "grant"  # the holder gives it to one who waits
    YIELD = "yield"  # the holder gives it up
    HAND_OFF = "hand off"  # the holder gives it to anybody
    REVOKE = "revoke"  # taken from the holder, for the next in the queue
    EXPIRE = "expire"  # the holder was idle too long
    SEIZE = "seize"  # taken, by the taker, at once
    WITHDRAW = "withdraw"  # one who waits waits no longer
    LEAVE = "leave"  # an actor's last connection went


FREE, HELD, CONTESTED = TurnPhase
# (state, step) -> where it may lead; which of these, depends on who else waits.
TRANSITIONS: dict[tuple[TurnPhase, TurnStepKind], frozenset[TurnPhase]] = {
    (FREE, TurnStepKind.REQUEST): frozenset({HELD}),
    (FREE, TurnStepKind.SEIZE): frozenset({HELD}),
    (FREE, TurnStepKind.LEAVE): frozenset({FREE}),
    (HELD, TurnStepKind.REQUEST): frozenset({HELD, CONTESTED}),
    (HELD, TurnStepKind.YIELD): frozenset({FREE}),
    (HELD, TurnStepKind.HAND_OFF): frozenset({HELD}),
    (HELD, TurnStepKind.REVOKE): frozenset({FREE}),
    (HELD, TurnStepKind.EXPIRE): frozenset({FREE}),
    (HELD, TurnStepKind.SEIZE): frozenset({HELD}),
    (HELD, TurnStepKind.LEAVE): frozenset({HELD, FREE}),
    (CONTESTED, TurnStepKind.REQUEST): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.GRANT): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.YIELD): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.HAND_OFF): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.REVOKE): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.EXPIRE): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.SEIZE): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.WITHDRAW): frozenset({CONTESTED, HELD}),
    (CONTESTED, TurnStepKind.LEAVE): frozenset({CONTESTED, HELD}),
}
