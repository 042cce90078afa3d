"""Who is at a session: in which order they came, and whose terminal gives the size."""

from __future__ import annotations

from holdfast.core.attachments import Attachments, Seat
from holdfast.model.ids import OperatorId
from holdfast.model.size import Size

ANN, BOB = OperatorId("a" * 32), OperatorId("b" * 32)


def seat(operator: OperatorId, channel: int, since: float) -> Seat:
    return Seat(operator, channel, observe=False, actor="root", since=since)


def test_one_that_takes_another_seat_was_never_away() -> None:
    here = Attachments()
    here.open(seat(ANN, 1, 1.0))
    here.open(seat(BOB, 1, 2.0))
    here.open(seat(ANN, 2, 3.0))
    here.close(ANN, 1)
    assert [(one.operator, one.since) for one in here.operators()] == [(ANN, 1.0), (BOB, 2.0)]
    here.close(ANN, 2)
    here.open(seat(ANN, 1, 4.0))
    assert [(one.operator, one.since) for one in here.operators()] == [(BOB, 2.0), (ANN, 4.0)]


def test_the_terminal_that_is_typed_in_or_resized_gives_the_size() -> None:
    here = Attachments()
    here.open(seat(ANN, 1, 1.0), Size(80, 24))
    here.open(seat(BOB, 1, 2.0), Size(120, 40))
    assert here.size_of("root") == Size(120, 40)
    here.typed(ANN)
    assert here.size_of("root") == Size(80, 24)
    here.has_size(BOB, 1, Size(110, 30))
    assert here.size_of("root") == Size(110, 30)
