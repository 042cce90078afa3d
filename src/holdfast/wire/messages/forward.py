"""Connections to ports of a session's own programs, carried to an operator (`hold forward`).

Each begins with a request, which is judged, recorded and, through a relay, signed. What goes
through it afterwards is said by both ends alike, in messages that are not answered: data, room for
more of it, the end of one direction, a cut. Neither end sends more than the other has
said it has room for, so nothing piles up for one that does not take it.
"""

from __future__ import annotations

from holdfast.model.forward_words import CarriedClosed, CarriedData, CarriedEnd, Room
from holdfast.wire.messages.base import Answer, Message, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.forward_words import Word


class Forward(Request):
    """Open a connection to this port, where a process of the session's own tree must listen.
    Answered by Forwarded. `number` is what the operator calls it, and none that it has open; its
    data may follow at once, and reaches nobody if the answer is a refusal."""

    tag = "forward"
    session: str
    number: int
    port: int


class Forwarded(Answer):
    """It is open, to this address and this process."""

    tag = "forwarded"
    number: int
    address: str
    pid: int
    process: str


class Carried(Message):
    """Base of what both ends say about a connection, by its number. One that is not open any more
    is passed over: the other end may not know yet."""

    session: str
    number: int


class ForwardData(Carried):
    """The next bytes, no more than the limit of one piece and the room there is."""

    tag = "forward_data"
    data: bytes


class ForwardRoom(Carried):
    """So many bytes were taken on here; there is room for so many more."""

    tag = "forward_room"
    size: int


class ForwardEnd(Carried):
    """No more data comes from here; what the other end says is still taken. When both have said so
    and all is taken, the connection is over."""

    tag = "forward_end"


class ForwardClosed(Carried):
    """The connection was cut off: what came is not all there was. `code` is an error's."""

    tag = "forward_closed"
    code: str
    message: str = ""


def message_of(session: str, number: int, word: Word) -> Carried:
    """A word of a connection as it goes over the wire."""
    if isinstance(word, CarriedData):
        return ForwardData(session, number, word.data)
    if isinstance(word, Room):
        return ForwardRoom(session, number, word.size)
    if isinstance(word, CarriedEnd):
        return ForwardEnd(session, number)
    return ForwardClosed(session, number, word.code, word.message)


def word_of(message: Carried) -> Word:
    """And back."""
    if isinstance(message, ForwardData):
        return CarriedData(message.data)
    if isinstance(message, ForwardRoom):
        return Room(message.size)
    if isinstance(message, ForwardClosed):
        return CarriedClosed(message.code, message.message)
    return CarriedEnd()
