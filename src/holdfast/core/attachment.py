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
    """The seats, in order of activity: the latest last."""

    def __init__(self) -> None:
        self._seats: dict[tuple[OperatorId, int], Seat] = {}

    def open(self, seat: Seat) -> None:
        key = (seat.operator, seat.channel)
        self._seats.pop(key, None)
        self._seats[key] = seat

    def close(self, operator: OperatorId, channel: int) -> Seat | None:
        return self._seats.pop((operator, channel), None)

    def latest_is(self, operator: OperatorId) -> bool:
        """Whether this operator was the latest to be active already."""
        latest = next(reversed(self._seats), None)
        return latest is not None and latest[0] == operator

    def typed(self, operator: OperatorId) -> None:
        """This operator is active now: its seats move to the end."""
        for key in [key for key in self._seats if key[0] == operator]:
            self._seats[key] = self._seats.pop(key)

    def only_observes(self, operator: OperatorId) -> bool:
        """Whether this operator is here, and only to watch."""
        seats = [seat for seat in self._seats.values() if seat.operator == operator]
        return bool(seats) and all(seat.observe for seat in seats)

    def answerer(self) -> Seat | None:
        """The seat whose terminal answers queries, or None: then the emulator does."""
        for seat in reversed(self._seats.values()):
            if not (seat.observe or seat.raw):
                return seat
        return None

    def count(self) -> int:
        return len({seat.operator for seat in self._seats.values()})

    def observers(self) -> int:
        writers = {seat.operator for seat in self._seats.values() if not seat.observe}
        return len({seat.operator for seat in self._seats.values()} - writers)
