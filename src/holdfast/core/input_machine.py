"""The life of an input, from being offered to being in custody; it owns the queue in between.

    offered      -> repeat: its number was used before; nothing happens again
                 -> refused: never acceptable, or not now (judged by core.session)
                 -> waiting
    waiting      -> refused: the turn moved, a halt, a fence, the end, or it could not be recorded
                 -> taking, in order, when the conduit has room for all of it
    taking       -> in custody: recorded, and held by the keeper; it survives every process
                 -> refused: it could not be recorded, so it was not taken

A rule that holds an input for approval goes into `next`: what is held keeps its place.

Every operator numbers its inputs to a session from 1 upwards. A number not above the last one taken
is a repeat (the answer was lost, not the input).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.core.events import InputOffered
from holdfast.model.errors import InvalidArgument, LimitReached
from holdfast.model.ids import OperatorId
from holdfast.model.limits import INPUT_MAX_BYTES, INPUT_PENDING_BYTES, INTAKE_OPERATORS


class InputMachine:
    """The queue of one session, and the last number of each operator."""

    def __init__(self, in_custody: dict[OperatorId, int]) -> None:
        self._offered = dict(in_custody)  # the last number that was not refused
        self._in_custody = dict(in_custody)  # the last number that was taken
        self._queue: deque[InputOffered] = deque()
        self._pending_bytes = 0

    def last(self, operator: OperatorId) -> int:
        """The last number that waits or was taken."""
        return self._offered.get(operator, 0)

    @property
    def is_empty(self) -> bool:
        return not self._queue

    def waits(self, operator: OperatorId, seq: int) -> bool:
        return any(each.operator == operator and each.seq == seq for each in self._queue)

    def is_new(self, offered: InputOffered) -> bool:
        """Whether this input was not offered before. Raises if it can be taken at no time, or not
        now."""
        seq, size = offered.seq, len(offered.data)
        if seq < 1:
            raise InvalidArgument("input sequence numbers start at 1")
        if size > INPUT_MAX_BYTES:
            raise InvalidArgument(
                f"an input of {size} bytes is over the limit of {INPUT_MAX_BYTES}",
                hint="send it in pieces",
            )
        if seq <= self._offered.get(offered.operator, 0):
            return False
        if self._pending_bytes + size > INPUT_PENDING_BYTES:
            raise LimitReached(
                "the program does not read its input, and what waits for it fills the limit",
                hint="wait until it reads, or interrupt it with `hold keys NAME C-c`",
            )
        return True

    def offer(self, offered: InputOffered) -> None:
        """A new input, judged and allowed, behind all others."""
        self._queue.append(offered)
        self._pending_bytes += len(offered.data)
        # The latest operator is last; the longest silent one goes when there are too many.
        last = self._offered.pop(offered.operator, None)
        if last is None and len(self._offered) >= INTAKE_OPERATORS:
            silent = next(iter(self._offered))
            del self._offered[silent]
            self._in_custody.pop(silent, None)
        self._offered[offered.operator] = offered.seq

    def next(self, room: int) -> InputOffered | None:
        """The first that waits, if the conduit has room for all of it. `taken` or `not_recorded`
        follows."""
        return self._queue[0] if self._queue and len(self._queue[0].data) <= room else None

    def taken(self, first: InputOffered) -> None:
        """It is in custody."""
        self._queue.popleft()
        self._pending_bytes -= len(first.data)
        self._in_custody[first.operator] = first.seq

    def not_recorded(self, first: InputOffered) -> tuple[InputOffered, ...]:
        """It could not be recorded, so it was not taken. Refused with it is what its operator sent
        behind it, which would otherwise overtake it."""
        return self.refuse(lambda waiting: waiting.operator == first.operator)

    def refuse(self, which: Callable[[InputOffered], bool]) -> tuple[InputOffered, ...]:
        """Take these out of the queue. Their numbers may be used again."""
        refused = tuple(filter(which, self._queue))
        if not refused:
            return refused
        self._queue = deque(each for each in self._queue if not which(each))
        self._pending_bytes -= sum(len(each.data) for each in refused)
        for operator in {each.operator for each in refused}:
            left = [each.seq for each in self._queue if each.operator == operator]
            self._offered[operator] = left[-1] if left else self._in_custody.get(operator, 0)
        return refused
