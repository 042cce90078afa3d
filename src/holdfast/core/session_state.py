"""The phases of one incarnation. The table is the truth; the diagram in ARCHITECTURE.md is drawn
from it."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Where an incarnation is in its life."""

    RUNNING = "running"  # its main process lives
    ENDING = "ending"  # an end was asked for; the tree is being taken down
    ENDED = "ended"  # the main process is gone; a tombstone says how. Nothing leads out of here


class StateStep(StrEnum):
    """What moves an incarnation from phase to phase."""

    END_ASKED = "end asked"
    MAIN_ENDED = "main process ended"
    HOST_LOST = "host lost"


TRANSITIONS: dict[tuple[Phase, StateStep], Phase] = {
    (Phase.RUNNING, StateStep.END_ASKED): Phase.ENDING,
    (Phase.RUNNING, StateStep.MAIN_ENDED): Phase.ENDED,
    (Phase.RUNNING, StateStep.HOST_LOST): Phase.ENDED,
    (Phase.ENDING, StateStep.END_ASKED): Phase.ENDING,  # asking twice is harmless
    (Phase.ENDING, StateStep.MAIN_ENDED): Phase.ENDED,
    (Phase.ENDING, StateStep.HOST_LOST): Phase.ENDED,
}
