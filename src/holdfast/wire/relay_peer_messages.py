"""What the relays of one cluster say to each other (docs/relay.md, *Several relays*). Sans-IO.

Each packet of the bus has a head: who sent it, and for a link which one and its number there. To
all go `beat`, `find` and its answer; the rest is said on a link, which one relay makes to another
for its own operators, and which carries the relay protocol's messages (`data`, `credit`, ...)
as if the whole relay were one operator, and a few of its own.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Answer, Message, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

LINK_VERSION = 1
_NAME = frozenset(b"0123456789abcdef")
_HEAD = struct.Struct(">BB16sQQ")  # version, kind, sender, link, number


class PeerKind(IntEnum):
    """What a packet is. A link has two ends: the one that made it, and the one that serves it."""

    CLUSTER = 0  # not of a link
    MAKER_SAYS = 1  # the next message, numbered from 0
    SERVER_SAYS = 2
    MAKER_SAID = 3  # so many messages so far: a lost last one is noticed
    SERVER_SAID = 4
    MAKER_ENDS = 5  # there is no such link any more
    SERVER_ENDS = 6


def pack(
    kind: PeerKind, sender: str, link: int = 0, number: int = 0, body: bytes | memoryview = b""
) -> bytes:
    return b"".join((_HEAD.pack(LINK_VERSION, kind, sender.encode(), link, number), body))


def unpack(packet: bytes) -> tuple[PeerKind, str, int, int, bytes]:
    """Kind, sender, link, number, body; or ProtocolViolation."""
    try:
        version, kind, sender, link, number = _HEAD.unpack_from(packet)
        if version != LINK_VERSION:
            raise ProtocolViolation(f"a relay speaks version {version} of links")
        if not _NAME.issuperset(sender):
            raise ProtocolViolation("a relay's name is of hexadecimal digits")
        return PeerKind(kind), sender.decode(), link, number, packet[_HEAD.size :]
    except (struct.error, ValueError) as error:
        raise ProtocolViolation(f"not a packet of a relay: {error}") from error


# -- to all -----------------------------------------------------------------------------------


class Beat(Message):
    """This relay is there."""

    tag: ClassVar[str] = "beat"
    leaving: bool = False  # no longer
    new: bool = False  # just came: say that you are there


class Find(Message):
    """Who has this host, or this session?"""

    tag: ClassVar[str] = "find"
    number: int
    host: bytes = b""
    session: SessionId | None = None


class SessionFound(Message):
    """To the one that asked."""

    tag: ClassVar[str] = "found"
    number: int
    here: bool
    epoch: int = 0  # of the session


# -- on a link --------------------------------------------------------------------------------


class PeerReach(Request):
    """An operator of the maker wants a stream to a host of the server."""

    tag: ClassVar[str] = "reach"
    host: bytes
    session: SessionId | None
    window: int  # what that operator may have on the way, as it was told


class Reached(Answer):
    """There it is; the rest as in `opened`."""

    tag: ClassVar[str] = "reached"
    stream: int
    window: int  # what the host may have on the way
    host: bytes
    epoch: int
    static: bytes
    binding: bytes
    session_key: bytes
    vouched: bytes


class PeerJoin(Request):
    """The first operator of the maker subscribes."""

    tag: ClassVar[str] = "join"
    session: SessionId
    host: bytes  # which admitted it


class PeerJoined(Answer):
    """What is broadcast from now on comes, once for all of the maker's operators."""

    tag: ClassVar[str] = "joined"
    epoch: int


class PeerLeave(Message):
    """The last one left."""

    tag: ClassVar[str] = "leave"
    session: SessionId


_CLUSTER: tuple[type[Message], ...] = (Beat, Find, SessionFound)
_FROM_MAKER: tuple[type[Message], ...] = (
    r.StreamData,
    r.Credit,
    r.StreamClosed,
    PeerReach,
    PeerJoin,
    PeerLeave,
    r.Taken,
)
_FROM_SERVER: tuple[type[Message], ...] = (
    *(r.StreamData, r.Credit, r.StreamClosed, Reached, r.Admit),
    *(PeerJoined, r.Broadcast, r.BroadcastGap, r.SessionGone, r.RelayFailed),
)
KINDS: dict[PeerKind, dict[str, type[Message]]] = {
    kind: {message.tag: message for message in messages}
    for kind, messages in (
        (PeerKind.CLUSTER, _CLUSTER),
        (PeerKind.MAKER_SAYS, _FROM_MAKER),
        (PeerKind.SERVER_SAYS, _FROM_SERVER),
    )
}


def decode(kind: PeerKind, body: bytes) -> Message:
    """The message in a packet of this kind, or ProtocolViolation."""
    return r.decode(body, KINDS[kind])
