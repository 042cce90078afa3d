"""Messages from an operator: streams it opens, sessions it subscribes to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.model.errors import (
    HoldfastError,
    HostDown,
    LimitReached,
    NoSuchSession,
    NotPermitted,
    ProtocolViolation,
    RateLimited,
    VersionMismatch,
)
from holdfast.model.ids import SessionId
from holdfast.relay.peer_hosts import PeerHosts
from holdfast.relay.peer_operators import find
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import Subscribers
from holdfast.relay.websocket import WebSocketConnection
from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import (
    RELAY_VERSION,
    Close,
    Greet,
    Open,
    RelayFailed,
    SessionGone,
    StreamData,
    StreamOpened,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Why,
)

if TYPE_CHECKING:
    from holdfast.relay.host_end import HostEnd
    from holdfast.relay.rendezvous import Relay


async def greet(connection: WebSocketConnection) -> bool:
    """False when it disconnected. An operator proves nothing to a relay: hosts decide what it may
    do."""
    message = await connection.first()
    if message is None:
        return False
    if not isinstance(message, Greet):
        raise ProtocolViolation("the first message of an operator must be `greet`")
    if RELAY_VERSION not in message.versions:
        raise VersionMismatch(f"this relay supports version {RELAY_VERSION}")
    return True


class OperatorEnd:
    """One connected client; the relay does not know its actor."""

    is_peer = False

    def __init__(self, relay: Relay, connection: WebSocketConnection, address: str) -> None:
        self._relay, self.connection, self._address = relay, connection, address
        self.outbox = connection.outbox
        self.streams: dict[int, RelayStream] = {}
        self.admitted: dict[
            SessionId, RelayStream
        ] = {}  # by the stream at which its host admitted it
        self.subscribed: dict[SessionId, Subscribers] = {}
        self.opening = 0  # streams requested at another relay
        self.joining: set[SessionId] = set()  # the same for subscriptions
        self.gone = False

    async def serve(self) -> None:
        while (message := await self.connection.receive()) is not None:
            self._handle(message)

    def _handle(self, message: Message) -> None:
        match message:
            case StreamData():
                self._relay.streams.data(self, message)
            case Open() | Subscribe():
                self._request(message)
            case Close():
                self._relay.streams.close_by(self, message.stream)
            case Unsubscribe():
                self.joining.discard(message.session)
                if subscribers := self.subscribed.pop(message.session, None):
                    subscribers.leave(self)
            case _:
                raise ProtocolViolation(f"an operator may not send `{message.tag}`")

    def _request(self, message: Open | Subscribe) -> None:
        wait_s = 0.0
        try:
            if isinstance(message, Subscribe):
                self._subscribe(message)
                return
            wait_s = self._relay.opens.take(self._address, asyncio.get_running_loop().time())
            if wait_s:
                raise RateLimited("too many streams opened from this address")
            self._open(message)
        except HoldfastError as error:
            self.outbox.say(RelayFailed(message.id, error.code, error.message, error.hint, wait_s))

    def _open(self, message: Open) -> None:
        bounds, cluster = self._relay.bounds, self._relay.cluster
        if len(self.streams) + self.opening >= bounds.operator_streams:
            raise LimitReached(f"the limit of {bounds.operator_streams} open streams is reached")
        try:
            host, incarnation = find(self._relay, message.host, message.session)
        except (NoSuchSession, HostDown):
            if cluster is None:
                raise
            self.opening += 1
            cluster.open(self, message)
            return
        stream = self._relay.streams.open(self, host, incarnation)
        self.outbox.say(_opened(message.id, stream, host))

    def _subscribe(self, message: Subscribe) -> None:
        session, stream = message.session, self.admitted.get(message.session)
        if stream is None:
            raise _not_admitted()
        if len(self.subscribed) + len(self.joining) >= self._relay.bounds.subscriptions:
            raise LimitReached(
                f"the limit of {self._relay.bounds.subscriptions} subscriptions is reached"
            )
        if isinstance(stream.host, PeerHosts):
            stream.host.subscribe(self, message, stream)
            return
        incarnation = self._relay.incarnations.get(session)
        if incarnation is None or incarnation.host is not stream.host:
            raise _not_admitted()
        self.subscribed[session] = incarnation
        self.outbox.say(Subscribed(message.id, incarnation.epoch))
        incarnation.join(self)

    def admit(self, session: SessionId, stream: RelayStream) -> None:
        self.admitted[session] = stream

    def lose_admissions(self, stream: RelayStream, why: Why) -> None:
        """The stream is closed, so the admissions given through it end."""
        lost = [session for session, by in self.admitted.items() if by is stream]
        for session in lost:
            del self.admitted[session]
            if subscribers := self.subscribed.pop(session, None):
                subscribers.leave(self)
                self.outbox.say(SessionGone(session, why))


def _not_admitted() -> NotPermitted:
    """The same whether the session exists or not: knowing an id gives no right."""
    return NotPermitted(
        "its host has not admitted you to this session", hint="open a stream to it and ask"
    )


def _opened(number: int, stream: RelayStream, host: HostEnd) -> StreamOpened:
    """The host at the other end, as it described itself; operators check it (docs/relay.md)."""
    incarnation = stream.incarnation
    if incarnation is None:
        return StreamOpened(number, stream.number, host.key, 0, host.static, host.binding)
    of = incarnation.announced
    return StreamOpened(
        number, stream.number, host.key, of.epoch, host.static, host.binding, of.key, of.signature
    )
