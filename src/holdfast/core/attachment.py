"""Who is attached to a session, whose size counts, and whose terminal answers.

Observers never write, resize or answer. Among the others the *latest active* one (attached or
typed last) is the one whose terminal answers a program's queries: two answers would be typed into
the program as garbage. With nobody there the emulator answers.
"""

from __future__ import annotations

from holdfast.model.ids import OperatorId
from holdfast.model.record import Record


class Seat(Record):
    """One open channel of one operator. `raw` ones show no terminal, so they cannot answer."""

    operator: OperatorId
    channel: int
    observe: bool
    raw: bool = False


class Attachments:
    """The seats, in order of activity: the latest last. What every key press asks for is kept
    ready: who answers, and who may only watch."""

    def __init__(self) -> None:
        self._seats: dict[tuple[OperatorId, int], Seat] = {}
        self.answerer: Seat | None = None  # whose terminal answers; None: the emulator does
        self.only_observing: frozenset[OperatorId] = frozenset()  # here, and only to watch
        self.latest: OperatorId | None = None  # to be active

    def open(self, seat: Seat) -> None:
        key = (seat.operator, seat.channel)
        self._seats.pop(key, None)
        self._seats[key] = seat
        self._changed()

    def close(self, operator: OperatorId, channel: int) -> Seat | None:
        seat = self._seats.pop((operator, channel), None)
        self._changed()
        return seat

    def typed(self, operator: OperatorId) -> None:
        """This operator is active now: its seats move to the end."""
        for key in [key for key in self._seats if key[0] == operator]:
            self._seats[key] = self._seats.pop(key)
        self._changed()

    def count(self) -> int:
        return len({seat.operator for seat in self._seats.values()})

    def observers(self) -> int:
        return len(self.only_observing)

    def _changed(self) -> None:
        seats = list(self._seats.values())
        answering = [seat for seat in seats if not (seat.observe or seat.raw)]
        self.answerer = answering[-1] if answering else None
        self.latest = seats[-1].operator if seats else None
        writers = {seat.operator for seat in seats if not seat.observe}
        self.only_observing = frozenset(seat.operator for seat in seats) - writers
