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


class Forward(Request, tag="forward"):
    """Open a connection to a port, see *Connections to ports*. Answered by Forwarded."""

    session: str
    number: int  # the operator's number for the connection: 0 or more, and not in use
    port: int  # port on which a process of the session listens, 1 to 65535


class Forwarded(Answer, tag="forwarded"):
    """The connection is open. What the program sends comes after this."""

    number: int  # the number given in the request
    address: str  # address and port that were dialled
    pid: int  # the process that listens there, in the host's numbering
    process: str  # name of that process


class Carried(Message):
    """Base of what both ends send about a connection, by its number. One that is no longer open is
    ignored: the other end may not know yet."""

    session: str  # the session's whole id
    number: int  # the connection


class ForwardData(Carried, tag="forward_data"):
    """The next bytes."""

    data: bytes  # at most `FORWARD_PIECE_BYTES`, and no more than there is room for


class ForwardRoom(Carried, tag="forward_room"):
    """The sender has passed on this much of what it received, and can take as much more."""

    size: int  # in bytes; in all never more than was sent


class ForwardEnd(Carried, tag="forward_end"):
    """No more data comes from here."""


class ForwardClosed(Carried, tag="forward_closed"):
    """The connection was cut off."""

    code: str  # an error's, see errors.md
    message: str = ""  # for people


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
