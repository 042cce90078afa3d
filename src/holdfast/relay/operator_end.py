"""What an operator says: streams it opens, sessions it subscribes to."""

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
from holdfast.relay.peer_hosts import FarHosts
from holdfast.relay.peer_operators import find
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import Audience
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
    """Whether it stayed. An operator proves nothing here: what it may do, hosts decide."""
    message = await connection.first()
    if message is None:
        return False
    if not isinstance(message, Greet):
        raise ProtocolViolation("an operator begins with `greet`")
    if RELAY_VERSION not in message.versions:
        raise VersionMismatch(f"this relay speaks version {RELAY_VERSION}")
    return True


class OperatorEnd:
    """A client, whoever it is."""

    far = False

    def __init__(self, relay: Relay, connection: WebSocketConnection, address: str) -> None:
        self._relay, self.connection, self._address = relay, connection, address
        self.outbox = connection.outbox
        self.streams: dict[int, RelayStream] = {}
        self.admitted: dict[SessionId, RelayStream] = {}  # by whose host, for as long as it is open
        self.subscribed: dict[SessionId, Audience] = {}
        self.opening = 0  # streams asked for at another relay
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
                if audience := self.subscribed.pop(message.session, None):
                    audience.leave(self)
            case _:
                raise ProtocolViolation(f"`{message.tag}` is not for an operator to say")

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
            raise LimitReached(f"{bounds.operator_streams} streams are open already")
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
            raise LimitReached(f"{self._relay.bounds.subscriptions} subscriptions at once")
        if isinstance(stream.host, FarHosts):
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
        """The stream is closed, and with it goes what its host allowed."""
        lost = [session for session, by in self.admitted.items() if by is stream]
        for session in lost:
            del self.admitted[session]
            if audience := self.subscribed.pop(session, None):
                audience.leave(self)
                self.outbox.say(SessionGone(session, why))


def _not_admitted() -> NotPermitted:
    """The same whether there is such a session or not: an id entitles to nothing."""
    return NotPermitted(
        "its host has not admitted you to this session", hint="open a stream to it and ask"
    )


def _opened(number: int, stream: RelayStream, host: HostEnd) -> StreamOpened:
    """Who is at the other end, as that one said it: operators check it (docs/relay.md)."""
    incarnation = stream.incarnation
    if incarnation is None:
        return StreamOpened(number, stream.number, host.key, 0, host.static, host.binding)
    of = incarnation.announced
    return StreamOpened(
        number, stream.number, host.key, of.epoch, host.static, host.binding, of.key, of.signature
    )
