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


class Challenge(Message, tag="challenge"):
    """The relay's first message to a host."""

    versions: tuple[int, ...]
    challenge: bytes  # 32 random bytes, good for this connection


class ProveHost(Message, tag="prove"):
    """The host's first message."""

    version: int
    key: bytes  # Ed25519: which host it is
    relay: str  # the host and port it dialled, as in its URL
    signature: bytes  # by `key`
    static: bytes  # X25519: its key for channels
    binding: bytes  # the device's signature (docs/channel.md), by `key`. Operators check it


class Greet(Message, tag="greet"):
    """An operator's first message. Only the host learns which actor it is."""

    versions: tuple[int, ...]


class Greeted(Message, tag="greeted"):
    """The relay's answer to `prove` and `greet`: its limits."""

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


class Announce(Request, tag="announce"):
    """A host has these sessions."""

    sessions: tuple[Announced, ...]


class AnnounceRefusal(Record):
    """A session that this relay does not route."""

    session: SessionId
    code: str
    epoch: int  # the highest epoch known, if that is why


class Registered(Answer, tag="registered"):
    """From now on all but the refused ones are routed to this connection."""

    refused: tuple[AnnounceRefusal, ...] = ()


class WithdrawSession(Message, tag="withdraw"):
    """The host no longer has this session."""

    session: SessionId


class Superseded(Message, tag="superseded"):
    """To a host: a later incarnation was announced by another connection. This one is no longer
    routed."""

    session: SessionId
    epoch: int


# -- streams ----------------------------------------------------------------------------------


class Open(Request, tag="open"):
    """An operator wants a stream to a host, by its key or by a session it has."""

    host: bytes = b""
    session: SessionId | None = None


class StreamOpened(Answer, tag="opened"):
    """The stream is open; data may be sent at once. The operator must check the rest, which is only
    the relay's word: which host it is (`host`, `static`, `binding`), and that it has the session
    (`session_key`, `epoch`, `vouched`, as the host announced them)."""

    stream: int
    host: bytes
    epoch: int  # of the session; 0 when opened by host key
    static: bytes
    binding: bytes
    session_key: bytes = b""
    vouched: bytes = b""


class Incoming(Message, tag="incoming"):
    """To a host: an operator opened a stream."""

    stream: int
    session: SessionId | None


class StreamData(Message, tag="data"):
    """Bytes through a stream, in order, or the stream closes."""

    stream: int
    data: bytes


class Credit(Message, tag="credit"):
    """To the sender: so many bytes have left the relay; as many more may be sent."""

    stream: int
    size: int


class Close(Message, tag="close"):
    """From either end: close the stream."""

    stream: int


class StreamClosed(Message, tag="closed"):
    """A stream is closed; what was on its way may be lost."""

    stream: int
    why: Why


# -- one to many ------------------------------------------------------------------------------


class Admit(Message, tag="admit"):
    """From a host: the operator at the other end of this stream may subscribe to this session, for
    as long as the stream is open."""

    stream: int
    session: SessionId


class Subscribe(Request, tag="subscribe"):
    """From an operator: send me what the host broadcasts of this session."""

    session: SessionId


class Subscribed(Answer, tag="subscribed"):
    """From now on every broadcast is sent, or a gap."""

    epoch: int


class Unsubscribe(Message, tag="unsubscribe"):
    """End a subscription."""

    session: SessionId


class SubscribersWanted(Message, tag="wanted"):
    """To a host: whether there are subscribers, whenever that changes. At first there are none."""

    session: SessionId
    wanted: bool


class Broadcast(Message, tag="broadcast"):
    """From a host, sent once; the relay sends it to every subscriber."""

    session: SessionId
    seq: int  # rises by one, within an incarnation
    data: bytes


class Taken(Message, tag="taken"):
    """To a host: the fastest subscriber has been sent everything up to here."""

    session: SessionId
    seq: int


class BroadcastGap(Message, tag="gap"):
    """To an operator that reads too slowly: these broadcasts were dropped."""

    session: SessionId
    first: int
    last: int


class SessionGone(Message, tag="gone"):
    """To a subscriber: the subscription has ended."""

    session: SessionId
    why: Why


# -- ends -------------------------------------------------------------------------------------


class RelayFailed(Answer, tag="failed"):
    """A request failed, or (id 0) the connection ends. The codes are in docs/errors.md."""

    code: str
    message: str
    hint: str = ""
    retry_after_s: float = 0.0


class GoingAway(Message, tag="going_away"):
    """The relay is stopping: use another one. Open streams stay open for this long."""

    within_s: float


BY_TAG: dict[str, type[Message]] = {
    each.tag: each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Message) and each.tag
}

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
