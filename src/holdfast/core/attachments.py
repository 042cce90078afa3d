"""Who is attached to a session, whose size counts, and whose terminal answers.

Observers never write, resize or answer. A program's queries are answered by the terminal that the
turn's holder used last: its answer is typed into the program like everything else it types, and two
answers would be garbage. With the turn free, or its holder away, the emulator answers.
"""

from __future__ import annotations

from holdfast.model.ids import OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size


class Seat(Record):
    """One open channel of one operator. `raw` ones show no terminal, so they cannot answer."""

    operator: OperatorId
    channel: int
    observe: bool
    raw: bool = False
    actor: str = ""
    since: float = 0.0
    detachable: bool = False  # a terminal whose client knows what it means to be detached


class Attachments:
    """The seats, in order of activity: the latest last. What every key press asks for is kept
    ready: who answers, and who may only watch."""

    def __init__(self) -> None:
        self._seats: dict[tuple[OperatorId, int], Seat] = {}
        self._sizes: dict[tuple[OperatorId, int], Size] = {}  # of the seats' own terminals
        self._came: dict[OperatorId, float] = {}  # one that changes its seat was never away
        self._holder = ""
        self.answerer: Seat | None = None  # whose terminal answers; None: the emulator does
        self.only_observing: frozenset[OperatorId] = frozenset()  # here, and only to watch
        self.latest: OperatorId | None = None  # to be active

    def open(self, seat: Seat, size: Size | None = None) -> None:
        key = (seat.operator, seat.channel)
        self._seats.pop(key, None)
        self._seats[key] = seat
        self._came.setdefault(seat.operator, seat.since)
        self.has_size(seat.operator, seat.channel, size)
        self._changed()

    def close(self, operator: OperatorId, channel: int) -> Seat | None:
        self._sizes.pop((operator, channel), None)
        seat = self._seats.pop((operator, channel), None)
        if not self.seats_of(operator):
            self._came.pop(operator, None)
        self._changed()
        return seat

    def has(self, operator: OperatorId, channel: int) -> bool:
        return (operator, channel) in self._seats

    def seats_of(self, operator: OperatorId) -> int:
        """How many channels this operator has open."""
        return sum(1 for key in self._seats if key[0] == operator)

    def has_size(self, operator: OperatorId, channel: int, size: Size | None) -> None:
        """This seat's terminal has this size: somebody is at it."""
        seat = self._seats.get((operator, channel))
        if size is not None and seat is not None and not seat.observe:
            self._sizes[operator, channel] = size
            self.typed(operator)

    def size_at(self, operator: OperatorId, channel: int) -> Size | None:
        """Of this seat's own terminal."""
        return self._sizes.get((operator, channel))

    def size_of(self, actor: str) -> Size | None:
        """The size of the terminal this actor used last, if it has one."""
        found = [self._sizes.get(key) for key, seat in self._seats.items() if seat.actor == actor]
        sizes = [size for size in found if size is not None]
        return sizes[-1] if sizes else None

    def typed(self, operator: OperatorId) -> None:
        """This operator is active now: its seats move to the end."""
        for key in [key for key in self._seats if key[0] == operator]:
            self._seats[key] = self._seats.pop(key)
        self._changed()

    def turn_with(self, actor: str) -> None:
        """This actor holds the turn; "": nobody does."""
        self._holder = actor
        self._changed()

    def seats(self) -> tuple[Seat, ...]:
        return tuple(self._seats.values())

    def terminals(self) -> tuple[Seat, ...]:
        """Those that may be detached, the one used last at the end."""
        return tuple(seat for seat in self._seats.values() if seat.detachable)

    def operators(self) -> tuple[Seat, ...]:
        """Of each operator one seat, since it came; first come first."""
        seats = {seat.operator: seat for seat in self._seats.values()}
        by_time = sorted(self._came.items(), key=lambda came: came[1])
        return tuple(seats[operator].replace(since=since) for operator, since in by_time)

    def count(self) -> int:
        return len({seat.operator for seat in self._seats.values()})

    def observers(self) -> int:
        return len(self.only_observing)

    def _changed(self) -> None:
        seats = list(self._seats.values())
        able = [seat for seat in seats if not (seat.observe or seat.raw)]
        answering = [seat for seat in able if self._holder and seat.actor == self._holder]
        self.answerer = answering[-1] if answering else None
        self.latest = seats[-1].operator if seats else None
        writers = {seat.operator for seat in seats if not seat.observe}
        self.only_observing = frozenset(seat.operator for seat in seats) - writers
