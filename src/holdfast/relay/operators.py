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
from holdfast.relay.audience import Incarnation
from holdfast.relay.connection import Connection
from holdfast.relay.streams import Stream
from holdfast.wire.message import Message
from holdfast.wire.relay_messages import (
    RELAY_VERSION,
    Close,
    Data,
    Failed,
    Gone,
    Greet,
    Open,
    Opened,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Why,
)

if TYPE_CHECKING:
    from holdfast.relay.hosts import HostEnd
    from holdfast.relay.relay import Relay


async def greet(connection: Connection) -> bool:
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

    def __init__(self, relay: Relay, connection: Connection, address: str) -> None:
        self._relay, self.connection, self._address = relay, connection, address
        self.outbox = connection.outbox
        self.streams: dict[int, Stream] = {}
        self.admitted: dict[SessionId, Stream] = {}  # by whose host, for as long as it is open
        self.subscribed: dict[SessionId, Incarnation] = {}

    async def serve(self) -> None:
        while (message := await self.connection.receive()) is not None:
            self._handle(message)

    def _handle(self, message: Message) -> None:
        match message:
            case Data():
                self._relay.streams.data(self, message)
            case Open() | Subscribe():
                self._request(message)
            case Close():
                self._relay.streams.close_by(self, message.stream)
            case Unsubscribe():
                if incarnation := self.subscribed.pop(message.session, None):
                    incarnation.leave(self)
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
            self.outbox.say(Failed(message.id, error.code, error.message, error.hint, wait_s))

    def _open(self, message: Open) -> None:
        bounds = self._relay.bounds
        host, incarnation = self._find(message)
        if len(self.streams) >= bounds.operator_streams:
            raise LimitReached(f"{bounds.operator_streams} streams are open already")
        if len(host.streams) >= bounds.host_streams:
            raise LimitReached("that host has as many streams as a relay gives it")
        stream = self._relay.streams.open(self, host, incarnation)
        epoch = incarnation.epoch if incarnation is not None else 0
        self.outbox.say(Opened(message.id, stream.number, host.key, epoch))

    def _find(self, message: Open) -> tuple[HostEnd, Incarnation | None]:
        if self._relay.draining:
            raise LimitReached("this relay is about to end", hint="use another one")
        if message.session is not None:
            incarnation = self._relay.incarnations.get(message.session)
            if incarnation is None:
                raise NoSuchSession("no host here has this session")
            return incarnation.host, incarnation
        host = self._relay.hosts.get(message.host)
        if host is None:
            raise HostDown("this host is not connected here", hint="try another relay, or later")
        return host, None

    def _subscribe(self, message: Subscribe) -> None:
        incarnation = self._relay.incarnations.get(message.session)
        stream = self.admitted.get(message.session)
        if incarnation is None or stream is None or stream.host is not incarnation.host:
            # The same whether there is such a session or not: an id entitles to nothing.
            raise NotPermitted(
                "its host has not admitted you to this session",
                hint="open a stream to it and ask",
            )
        if len(self.subscribed) >= self._relay.bounds.subscriptions:
            raise LimitReached(f"{self._relay.bounds.subscriptions} subscriptions at once")
        self.subscribed[message.session] = incarnation
        self.outbox.say(Subscribed(message.id, incarnation.epoch))
        incarnation.join(self)

    def lose_admissions(self, stream: Stream, why: Why) -> None:
        """The stream is closed, and with it goes what its host allowed."""
        lost = [session for session, by in self.admitted.items() if by is stream]
        for session in lost:
            del self.admitted[session]
            if incarnation := self.subscribed.pop(session, None):
                incarnation.leave(self)
                self.outbox.say(Gone(session, why))
