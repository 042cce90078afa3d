"""The phases of one incarnation. The table is the truth; the diagram in ARCHITECTURE.md is drawn
from it."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Where an incarnation is in its life."""

    RUNNING = "running"  # its main process lives
    ENDING = "ending"  # an end was asked for; the tree is being taken down
    ENDED = "ended"  # the main process is gone; a tombstone says how. Nothing leads out of here


class Step(StrEnum):
    """What moves an incarnation from phase to phase."""

    END_ASKED = "end asked"
    MAIN_ENDED = "main process ended"
    HOST_LOST = "host lost"


TRANSITIONS: dict[tuple[Phase, Step], Phase] = {
    (Phase.RUNNING, Step.END_ASKED): Phase.ENDING,
    (Phase.RUNNING, Step.MAIN_ENDED): Phase.ENDED,
    (Phase.RUNNING, Step.HOST_LOST): Phase.ENDED,
    (Phase.ENDING, Step.END_ASKED): Phase.ENDING,  # asking twice is harmless
    (Phase.ENDING, Step.MAIN_ENDED): Phase.ENDED,
    (Phase.ENDING, Step.HOST_LOST): Phase.ENDED,
}
