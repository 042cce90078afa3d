"""What one end of a carried connection says to the other: the four words of `hold forward`."""

from __future__ import annotations

from holdfast.model.record import Record


class CarriedData(Record):
    """The next bytes."""

    data: bytes


class Room(Record):
    """So many bytes were taken on; there is room for so many more."""

    size: int


class CarriedEnd(Record):
    """No more data comes from here. When both ends have said so, the connection is over."""


class CarriedClosed(Record):
    """The connection was cut off: what came is not all there was. `code` is an error's."""

    code: str
    message: str


Word = CarriedData | Room | CarriedEnd | CarriedClosed
