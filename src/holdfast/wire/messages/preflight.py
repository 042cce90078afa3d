"""Whether a session could be moved: what stands in the way here, and on another machine."""

from __future__ import annotations

from holdfast.model.movability import Movability, MoveTarget, NeededFile
from holdfast.wire.messages.base import Answer, Request


class CanMove(Request, tag="can_move"):
    """What a checkpoint of the session would meet now; nothing is touched. Answered by
    CanMoveShown."""

    session: str
    files: bool = False  # also which programs and libraries another machine must have
    target: MoveTarget | None = None  # judge for this machine, which was asked before


class CanMoveShown(Answer, tag="can_move_shown"):
    movability: Movability  # the whole answer


class CanTake(Request, tag="can_take"):
    """Whether this host could take in a session that uses these files. Answered by CanTakeShown."""

    files: tuple[NeededFile, ...]  # as `can_move_shown` has them, of the machine it is on


class CanTakeShown(Answer, tag="can_take_shown"):
    target: MoveTarget  # this host, by no name
