"""Which input is new, which a repeat, and what is refused.

Every operator numbers its inputs to a session from 1 upwards. A number not above the last one taken
is a repeat (the answer was lost, not the input): it is answered as accepted and not typed again.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument, LimitReached
from holdfast.model.ids import ActorId, OperatorId
from holdfast.model.limits import INPUT_MAX_BYTES, INPUT_PENDING_BYTES, INTAKE_OPERATORS
from holdfast.model.record import Record


class Swift(Record):
    """Who may write the next key without being judged anew, and until when that holds. Whatever
    happens to the session in between ends it."""

    operator: OperatorId
    actor: ActorId
    until: float
    version: int


class Intake:
    """The last number taken from each operator, and how much waits to be taken."""

    def __init__(self, taken: dict[OperatorId, int]) -> None:
        self._taken = dict(taken)
        self._pending_bytes = 0

    def last(self, operator: OperatorId) -> int:
        return self._taken.get(operator, 0)

    def is_new(self, operator: OperatorId, seq: int, size: int) -> bool:
        """Whether this input was not taken before. Raises if it can be taken at no time, or not
        now."""
        if seq < 1:
            raise InvalidArgument("input sequence numbers start at 1")
        if size > INPUT_MAX_BYTES:
            raise InvalidArgument(
                f"an input of {size} bytes is over the limit of {INPUT_MAX_BYTES}",
                hint="send it in pieces",
            )
        if seq <= self.last(operator):
            return False
        if self._pending_bytes + size > INPUT_PENDING_BYTES:
            raise LimitReached(
                "the program does not read its input, and what waits for it fills the limit",
                hint="wait until it reads, or interrupt it with `hold keys NAME C-c`",
            )
        return True

    def offer(self, operator: OperatorId, seq: int, size: int) -> None:
        """A new input, judged and allowed. It counts as pending until `taken`."""
        self._pending_bytes += size
        self._remember(operator, seq)

    def next(self, operator: OperatorId) -> int:
        """The number of this operator's next input; 0 when others wait to be taken."""
        return 0 if self._pending_bytes else self._taken.get(operator, 0) + 1

    def take_next(self, operator: OperatorId, seq: int) -> None:
        """Its next input is taken, without having waited."""
        self._remember(operator, seq)

    def _remember(self, operator: OperatorId, seq: int) -> None:
        """The latest last; the longest silent operator goes when there are too many."""
        if self._taken.pop(operator, None) is None and len(self._taken) >= INTAKE_OPERATORS:
            del self._taken[next(iter(self._taken))]
        self._taken[operator] = seq

    def taken(self, size: int) -> None:
        """A pending input is in custody now."""
        self._pending_bytes -= size

    def not_taken(self, operator: OperatorId, seq: int, before: int, size: int) -> None:
        """A pending input could not be recorded, so it was not taken; `before` is the last that
        was."""
        self._pending_bytes -= size
        if self._taken.get(operator) == seq:
            self._taken[operator] = before
