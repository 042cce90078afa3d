"""The four events that one end of a forwarded connection sends to the other."""

from __future__ import annotations

from holdfast.model.record import Record


class CarriedData(Record):
    """The next bytes."""

    data: bytes


class Room(Record):
    """So many bytes were taken; as many more may be sent."""

    size: int


class CarriedEnd(Record):
    """This end sends no more data. When both ends have said so, the connection is closed."""


class CarriedClosed(Record):
    """The connection was reset: data may be missing. `code` is an error code."""

    code: str
    message: str


Word = CarriedData | Room | CarriedEnd | CarriedClosed
