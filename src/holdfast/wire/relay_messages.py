"""The messages between hosts, operators and a relay (docs/relay.md): one msgpack map in one binary
WebSocket message. Sans-IO, like frames.py; the WebSocket keeps the messages apart, so there is no
length in front.

A relay cannot read the `data` of `data` and `broadcast`: it is sealed between operator and host
(docs/channel.md). Nothing here is secret, and nothing here grants a right.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import StrEnum

import msgpack

from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record
from holdfast.wire.messages.base import Answer, Message, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

RELAY_VERSION = 1
CHALLENGE_BYTES = 32
NUMBER_MAX = (1 << 63) - 1  # of a stream, a sequence, an epoch

_HOST = b"holdfast relay host v1\0"
_SESSION = b"holdfast relay session v1\0"


def host_text(challenge: bytes, relay: str) -> bytes:
    """What a host signs to prove its key: a challenge made for this connection, and the relay it
    dialled, so that a relay cannot pose as the host at another relay."""
    return _HOST + challenge + relay.encode()


def session_text(session: SessionId, host_key: bytes, epoch: int) -> bytes:
    """What a session's key signs: this host has this incarnation. It is useless to another host, so
    it needs no challenge, and is made once for all relays."""
    return _SESSION + session.encode() + host_key + epoch.to_bytes(8)


class Why(StrEnum):
    """Why a stream was closed or a subscription ended."""

    CLOSED = "closed"  # by the other end
    OPERATOR_GONE = "operator_gone"
    HOST_GONE = "host_gone"
    MOVED = "moved"  # the session has a later incarnation: look it up again
    WITHDRAWN = "withdrawn"  # the host no longer has the session
    OVERRUN = "overrun"  # more was sent than there was credit for
    FULL = "full"  # the relay holds as much as it may
    UNKNOWN = "unknown"  # there is no such stream here, or it is not yours


# -- greeting ---------------------------------------------------------------------------------


class Challenge(Message):
    """The relay's first message to a host."""

    tag: ClassVar[str] = "challenge"
    versions: tuple[int, ...]
    challenge: bytes  # 32 random bytes, good for this connection


class ProveHost(Message):
    """The host's first message."""

    tag: ClassVar[str] = "prove"
    version: int
    key: bytes  # Ed25519: which host it is
    relay: str  # the host and port it dialled, as in its URL
    signature: bytes  # by `key`
    static: bytes  # X25519: its key for channels
    binding: bytes  # the device's signature (docs/channel.md), by `key`. Operators check it


class Greet(Message):
    """An operator's first message. Only the host learns which actor it is."""

    tag: ClassVar[str] = "greet"
    versions: tuple[int, ...]


class Greeted(Message):
    """The relay's answer to `prove` and `greet`: its limits."""

    tag: ClassVar[str] = "greeted"
    version: int
    frame_max_bytes: int
    stream_window_bytes: int
    broadcast_window_bytes: int


# -- registry ---------------------------------------------------------------------------------


class Announced(Record):
    """One session of the announcing host."""

    key: bytes  # the session's public key, from which its id is derived
    epoch: int
    signature: bytes  # by the session's key


class Announce(Request):
    """A host has these sessions."""

    tag: ClassVar[str] = "announce"
    sessions: tuple[Announced, ...]


class AnnounceRefusal(Record):
    """A session that this relay does not route."""

    session: SessionId
    code: str
    epoch: int  # the highest epoch known, if that is why


class Registered(Answer):
    """From now on all but the refused ones are routed to this connection."""

    tag: ClassVar[str] = "registered"
    refused: tuple[AnnounceRefusal, ...] = ()


class WithdrawSession(Message):
    """The host no longer has this session."""

    tag: ClassVar[str] = "withdraw"
    session: SessionId


class Superseded(Message):
    """To a host: a later incarnation was announced by another connection. This one is no longer
    routed."""

    tag: ClassVar[str] = "superseded"
    session: SessionId
    epoch: int


# -- streams ----------------------------------------------------------------------------------


class Open(Request):
    """An operator wants a stream to a host, by its key or by a session it has."""

    tag: ClassVar[str] = "open"
    host: bytes = b""
    session: SessionId | None = None


class StreamOpened(Answer):
    """The stream is open; data may be sent at once. The operator must check the rest, which is only
    the relay's word: which host it is (`host`, `static`, `binding`), and that it has the session
    (`session_key`, `epoch`, `vouched`, as the host announced them)."""

    tag: ClassVar[str] = "opened"
    stream: int
    host: bytes
    epoch: int  # of the session; 0 when opened by host key
    static: bytes
    binding: bytes
    session_key: bytes = b""
    vouched: bytes = b""


class Incoming(Message):
    """To a host: an operator opened a stream."""

    tag: ClassVar[str] = "incoming"
    stream: int
    session: SessionId | None


class StreamData(Message):
    """Bytes through a stream, in order, or the stream closes."""

    tag: ClassVar[str] = "data"
    stream: int
    data: bytes


class Credit(Message):
    """To the sender: so many bytes have left the relay; as many more may be sent."""

    tag: ClassVar[str] = "credit"
    stream: int
    size: int


class Close(Message):
    """From either end: close the stream."""

    tag: ClassVar[str] = "close"
    stream: int


class StreamClosed(Message):
    """A stream is closed; what was on its way may be lost."""

    tag: ClassVar[str] = "closed"
    stream: int
    why: Why


# -- one to many ------------------------------------------------------------------------------


class Admit(Message):
    """From a host: the operator at the other end of this stream may subscribe to this session, for
    as long as the stream is open."""

    tag: ClassVar[str] = "admit"
    stream: int
    session: SessionId


class Subscribe(Request):
    """From an operator: send me what the host broadcasts of this session."""

    tag: ClassVar[str] = "subscribe"
    session: SessionId


class Subscribed(Answer):
    """From now on every broadcast is sent, or a gap."""

    tag: ClassVar[str] = "subscribed"
    epoch: int


class Unsubscribe(Message):
    """End a subscription."""

    tag: ClassVar[str] = "unsubscribe"
    session: SessionId


class SubscribersWanted(Message):
    """To a host: whether there are subscribers, whenever that changes. At first there are none."""

    tag: ClassVar[str] = "wanted"
    session: SessionId
    wanted: bool


class Broadcast(Message):
    """From a host, sent once; the relay sends it to every subscriber."""

    tag: ClassVar[str] = "broadcast"
    session: SessionId
    seq: int  # rises by one, within an incarnation
    data: bytes


class Taken(Message):
    """To a host: the fastest subscriber has been sent everything up to here."""

    tag: ClassVar[str] = "taken"
    session: SessionId
    seq: int


class BroadcastGap(Message):
    """To an operator that reads too slowly: these broadcasts were dropped."""

    tag: ClassVar[str] = "gap"
    session: SessionId
    first: int
    last: int


class SessionGone(Message):
    """To a subscriber: the subscription has ended."""

    tag: ClassVar[str] = "gone"
    session: SessionId
    why: Why


# -- ends -------------------------------------------------------------------------------------


class RelayFailed(Answer):
    """A request failed, or (id 0) the connection ends. The codes are in docs/errors.md."""

    tag: ClassVar[str] = "failed"
    code: str
    message: str
    hint: str = ""
    retry_after_s: float = 0.0


class GoingAway(Message):
    """The relay is stopping: use another one. Open streams stay open for this long."""

    tag: ClassVar[str] = "going_away"
    within_s: float


_KINDS: tuple[type[Message], ...] = (
    *(Challenge, ProveHost, Greet, Greeted),
    *(Announce, Registered, WithdrawSession, Superseded),
    *(Open, StreamOpened, Incoming, StreamData, Credit, Close, StreamClosed),
    *(
        Admit,
        Subscribe,
        Subscribed,
        Unsubscribe,
        SubscribersWanted,
        Broadcast,
        Taken,
        BroadcastGap,
        SessionGone,
    ),
    *(RelayFailed, GoingAway),
)
BY_TAG: dict[str, type[Message]] = {kind.tag: kind for kind in _KINDS}

_pack = msgpack.Packer(use_bin_type=True).pack


def encode(message: Message) -> bytes:
    """One WebSocket message."""
    body: bytes = _pack({"t": message.tag, **message.pack()})
    return body


@functools.lru_cache(maxsize=4096)
def _known_id(text: str) -> SessionId:
    """Checking an id takes longer than the rest of a broadcast, and most broadcasts have the same
    id."""
    try:
        return SessionId(text)
    except ValueError as error:
        raise ProtocolViolation(str(error)) from error


def decode(body: bytes, kinds: Mapping[str, type[Message]] = BY_TAG) -> Message:
    """The message in it, or ProtocolViolation. `kinds`: the messages allowed here."""
    try:
        data = msgpack.unpackb(body, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise ProtocolViolation(f"not a message: {error}") from error
    if type(data) is dict and data.get("t") == "broadcast" and "broadcast" in kinds:
        session, seq, payload = data.get("session"), data.get("seq"), data.get("data")
        if type(session) is str and type(seq) is int and type(payload) is bytes:
            return Broadcast(_known_id(session), seq, payload)
    kind = kinds.get(str(data.get("t"))) if type(data) is dict else None
    if kind is None:
        raise ProtocolViolation("not a known message")
    try:
        return (kind._unpacker or kind.unpack)(data, kind.tag)
    except Malformed as error:
        raise ProtocolViolation(str(error)) from error
