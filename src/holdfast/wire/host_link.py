"""What two hosts say to each other, inside a channel that one of them has a ticket for
(docs/channel.md). The host that dials is the *source*: it has something of a session to bring. The
other is the *target*.

    source                                 target
    LinkHello: which session, what for  ->
                                        <- LinkWelcome, or LinkRefused
    LinkMessage                        <->  LinkMessage      for whoever speaks over the link
    LinkTaken                          <->  LinkTaken        the window of these
    ImageOffer                          ->
                                        <- ImageWanted      chunks that it lacks
    ImagePiece ...                      ->
                                        <- ImageKept, or ImageRefused

One msgpack map each, as in frames.py, without a length.
"""

from __future__ import annotations

import hmac

import msgpack

from holdfast.model.device import KEY_BYTES, Device
from holdfast.model.errors import ProtocolViolation, TicketInvalid
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record
from holdfast.wire.base64url import decoded, encoded
from holdfast.wire.messages.base import Message
from holdfast.wire.stream_opening import TICKET_ID_BYTES

_PSK_DOMAIN = b"holdfast ticket psk v1\0"
_PROLOGUE_DOMAIN = b"holdfast host link v1\0"
SECRET_BYTES = 32


class LinkTicket(Record):
    """With this a source dials a target. Its repr, which may end up in logs, leaves out the
    secret."""

    id: bytes
    secret: bytes
    host: bytes  # the target's key
    static: bytes  # its key for channels
    binding: bytes  # its signature over these two
    name: str  # what people call it
    relays: tuple[str, ...]
    socket: str  # where it listens on its own machine
    session: str
    source: bytes  # key of the only host that may use it
    expires_at: float  # for the first time; in seconds since 1970

    def __repr__(self) -> str:
        return f"LinkTicket({self.id.hex()}, {self.name!r})"

    @property
    def device(self) -> Device:
        return Device(self.host, self.static, self.binding)

    def text(self) -> str:
        return encoded(bytes(msgpack.packb(self.pack())))

    @classmethod
    def of_text(cls, text: str) -> LinkTicket:
        """Raises TicketInvalid."""
        data = decoded(text)
        try:
            ticket = cls.unpack(msgpack.unpackb(data or b""))
            SessionId(ticket.session)
        except (ValueError, Malformed, msgpack.UnpackException, RecursionError) as error:
            raise TicketInvalid("that is no ticket of a host") from error
        sizes = len(ticket.id), len(ticket.secret), len(ticket.host), len(ticket.source)
        if sizes != (TICKET_ID_BYTES, SECRET_BYTES, KEY_BYTES, KEY_BYTES):
            raise TicketInvalid("a part of the ticket is missing or cut off")
        return ticket


def ticket_psk(secret: bytes) -> bytes:
    """What the handshake needs besides the keys of both hosts."""
    return hmac.digest(secret, _PSK_DOMAIN, "sha256")


def ticket_prologue(id: bytes, host: bytes) -> bytes:
    """Both ends must have the same: a handshake for one ticket of one host fits no other."""
    return _PROLOGUE_DOMAIN + id + host


# -- greeting ---------------------------------------------------------------------------------


class LinkHello(Message, tag="hello"):
    """The source's first message."""

    session: str
    what: str  # the service of the target that it wants, such as `move`
    name: str  # what people call the source
    actor: str  # at the source, who asked for it


class LinkWelcome(Message, tag="welcome"):
    """The link is for use."""

    actor: str  # at the target, who fetched the ticket


class LinkRefused(Message, tag="refused"):
    """It is not, and why."""

    code: str
    message: str
    hint: str = ""


# -- messages ---------------------------------------------------------------------------------


class LinkMessage(Message, tag="message"):
    """One message of whoever uses the link, or a piece of it."""

    data: bytes
    more: bool = False  # the rest of it follows


class LinkTaken(Message, tag="taken"):
    """So many bytes of messages were read; as many more may be sent."""

    size: int


# -- a checkpoint -----------------------------------------------------------------------------


class ImageOffer(Message, tag="offer"):
    """The source has this checkpoint of the session. The channel ends at the target, so what is
    secret here is sealed for the target alone."""

    id: str
    manifest: bytes  # as it is stored: signed by the source, encrypted
    manifest_key: bytes  # of the manifests of this one session
    session_key: bytes  # the private key that the session's id is derived from


class ImageWanted(Message, tag="wanted"):
    """The target lacks these chunks."""

    id: str
    names: tuple[str, ...]


class ImagePiece(Message, tag="piece"):
    """A part of a chunk, as it is stored. The parts of one chunk come one after the other."""

    id: str
    name: str
    data: bytes
    last: bool


class ImageKept(Message, tag="kept"):
    """All of it is in the target's own store."""

    id: str


class ImageRefused(Message, tag="image_refused"):
    """It is not, and why: from the target, or from the source when it cannot read a chunk."""

    id: str
    code: str
    message: str
    hint: str = ""


_BY_TAG: dict[str, type[Message]] = {
    each.tag: each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Message) and each.tag
}
_pack = msgpack.Packer(use_bin_type=True).pack


def encode(message: Message) -> bytes:
    body: bytes = _pack({"t": message.tag, **message.pack()})
    return body


def decode(body: bytes) -> Message:
    """Raises ProtocolViolation."""
    try:
        data = msgpack.unpackb(body, strict_map_key=True)
        kind = _BY_TAG.get(str(data.get("t"))) if type(data) is dict else None
        if kind is None:
            raise ProtocolViolation("a host does not say that over a link")
        return kind.unpack(data, kind.tag)
    except (ValueError, TypeError, Malformed, msgpack.UnpackException, RecursionError) as error:
        raise ProtocolViolation(f"not a message between hosts: {error}") from error
