"""The turn's states and what leads from one to another. The table is the truth; the diagram in
ARCHITECTURE.md is drawn from it, and `turn.py` refuses a step that is not in it."""

from __future__ import annotations

from enum import StrEnum


class TurnState(StrEnum):
    """What the turn looks like from outside."""

    FREE = "free"  # nobody holds it, so nobody waits
    HELD = "held"
    CONTESTED = "contested"  # held, and others wait


class Step(StrEnum):
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


FREE, HELD, CONTESTED = TurnState
# (state, step) -> where it may lead; which of these, depends on who else waits.
TRANSITIONS: dict[tuple[TurnState, Step], frozenset[TurnState]] = {
    (FREE, Step.REQUEST): frozenset({HELD}),
    (FREE, Step.SEIZE): frozenset({HELD}),
    (FREE, Step.LEAVE): frozenset({FREE}),
    (HELD, Step.REQUEST): frozenset({HELD, CONTESTED}),
    (HELD, Step.YIELD): frozenset({FREE}),
    (HELD, Step.HAND_OFF): frozenset({HELD}),
    (HELD, Step.REVOKE): frozenset({FREE}),
    (HELD, Step.EXPIRE): frozenset({FREE}),
    (HELD, Step.SEIZE): frozenset({HELD}),
    (HELD, Step.LEAVE): frozenset({HELD, FREE}),
    (CONTESTED, Step.REQUEST): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.GRANT): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.YIELD): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.HAND_OFF): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.REVOKE): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.EXPIRE): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.SEIZE): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.WITHDRAW): frozenset({CONTESTED, HELD}),
    (CONTESTED, Step.LEAVE): frozenset({CONTESTED, HELD}),
}
