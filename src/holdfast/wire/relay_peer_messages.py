"""The messages between the relays of one cluster (docs/relay.md, *Several relays*). Sans-IO.

Each packet on the bus has a header: its sender, and on a link the link and the packet's number.
`beat`, `find` and its answer go to all relays; the rest goes over a link, which one relay makes to
another for its own operators. A link carries the relay protocol's messages (`data`, `credit`, ...)
as if the whole relay were one operator, and a few of its own.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Answer, Message, Request

LINK_VERSION = 1
_NAME = frozenset(b"0123456789abcdef")
_HEAD = struct.Struct(">BB16sQQ")  # version, kind, sender, link, number


class PeerKind(IntEnum):
    """What a packet is. A link has two ends: its maker and its server."""

    CLUSTER = 0  # not of a link
    MAKER_SAYS = 1  # the next message, numbered from 0
    SERVER_SAYS = 2
    MAKER_SAID = 3  # so many messages so far, so that a lost last one is noticed
    SERVER_SAID = 4
    MAKER_ENDS = 5  # the link is closed
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
            raise ProtocolViolation(f"a relay uses version {version} of the link protocol")
        if not _NAME.issuperset(sender):
            raise ProtocolViolation("a relay's name must be hexadecimal digits")
        return PeerKind(kind), sender.decode(), link, number, packet[_HEAD.size :]
    except (struct.error, ValueError) as error:
        raise ProtocolViolation(f"not a packet of a relay: {error}") from error


# -- to all -----------------------------------------------------------------------------------


class Beat(Message, tag="beat"):
    """This relay is alive."""

    leaving: bool = False  # it is stopping
    new: bool = False  # just started: answer with a beat


class Find(Message, tag="find"):
    """Which relay has this host, or this session?"""

    number: int
    host: bytes = b""
    session: SessionId | None = None


class SessionFound(Message, tag="found"):
    """To the relay that asked."""

    number: int
    here: bool
    epoch: int = 0  # of the session


# -- on a link --------------------------------------------------------------------------------


class PeerReach(Request, tag="reach"):
    """An operator of the maker wants a stream to a host of the server."""

    host: bytes
    session: SessionId | None
    window: int  # bytes that operator may have in flight, as it was told


class Reached(Answer, tag="reached"):
    """The stream is open; the other fields are those of `opened`."""

    stream: int
    window: int  # bytes the host may have in flight
    host: bytes
    epoch: int
    static: bytes
    binding: bytes
    session_key: bytes
    vouched: bytes


class PeerJoin(Request, tag="join"):
    """The first operator of the maker subscribes."""

    session: SessionId
    host: bytes  # which admitted it


class PeerJoined(Answer, tag="joined"):
    """From now on every broadcast is sent, once for all of the maker's operators."""

    epoch: int


class PeerLeave(Message, tag="leave"):
    """The last operator of the maker unsubscribed."""

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
