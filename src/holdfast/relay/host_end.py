"""Messages from a host: its proof, its sessions, and its side of streams and broadcasts."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from holdfast.model.errors import (
    BadSignature,
    CoordinationDown,
    Fenced,
    LimitReached,
    ProtocolViolation,
    RateLimited,
    StorageFailed,
    VersionMismatch,
)
from holdfast.model.ids import SessionId
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import RoutedIncarnation
from holdfast.relay.websocket import WebSocketConnection
from holdfast.wire.ed25519 import check
from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import (
    CHALLENGE_BYTES,
    NUMBER_MAX,
    RELAY_VERSION,
    Admit,
    Announce,
    Announced,
    AnnounceRefusal,
    Broadcast,
    Challenge,
    Close,
    ProveHost,
    Registered,
    StreamData,
    Superseded,
    Why,
    WithdrawSession,
    host_text,
    session_text,
)

if TYPE_CHECKING:
    from holdfast.relay.rendezvous import Relay

KEY_BYTES = 32
SIGNATURE_BYTES = 64
_AT_ONCE = 8  # sessions of one announcement registered before other connections are served
_REGISTRY_QUEUE = 16  # waiting announcements and withdrawals of one host; then it is not read


async def prove(connection: WebSocketConnection, names: frozenset[str]) -> ProveHost | None:
    """The host's proof, checked; None when it disconnected."""
    challenge = os.urandom(CHALLENGE_BYTES)
    connection.outbox.say(Challenge((RELAY_VERSION,), challenge))
    message = await connection.first()
    if message is None:
        return None
    if not isinstance(message, ProveHost):
        raise ProtocolViolation("the first message of a host must be `prove`")
    if message.version != RELAY_VERSION:
        raise VersionMismatch(f"this relay supports version {RELAY_VERSION}, not {message.version}")
    if (len(message.static), len(message.binding)) != (KEY_BYTES, SIGNATURE_BYTES):
        raise ProtocolViolation("a host's device must be a key of 32 bytes and a signature of 64")
    if names and message.relay not in names:
        raise BadSignature(
            f"the proof is for the relay {message.relay[:80]!r}, which is not this one",
            hint="dial this relay by the name it was given",
        )
    if not _signed(message.key, host_text(challenge, message.relay), message.signature):
        raise BadSignature("the challenge is not signed with the host's key")
    return message


def _signed(key: bytes, text: bytes, signature: bytes) -> bool:
    sizes = (len(key), len(signature))
    return sizes == (KEY_BYTES, SIGNATURE_BYTES) and check(key, text, signature)


class HostEnd:
    """A host that proved its key."""

    is_peer = False

    def __init__(
        self, relay: Relay, connection: WebSocketConnection, proof: ProveHost, address: str
    ) -> None:
        self._relay, self.connection, self._address = relay, connection, address
        self.key, self.static, self.binding = proof.key, proof.static, proof.binding
        self.outbox = connection.outbox
        self.streams: dict[int, RelayStream] = {}
        self.sessions: dict[SessionId, RoutedIncarnation] = {}
        self.gone = False
        self._down = ""  # why the coordination point did not answer during this announcement
        self._registry: asyncio.Queue[Announce | WithdrawSession] = asyncio.Queue(_REGISTRY_QUEUE)

    async def serve(self) -> None:
        """Registration may wait for the coordination point; streams do not wait for it."""
        try:
            async with asyncio.TaskGroup() as both:
                registering = both.create_task(self._register_all())
                while (message := await self.connection.receive()) is not None:
                    if isinstance(message, Announce | WithdrawSession):
                        await self._registry.put(message)
                    else:
                        self._handle(message)
                registering.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _register_all(self) -> None:
        """In order of arrival."""
        while True:
            message = await self._registry.get()
            if isinstance(message, Announce):
                await self._announce(message)
            elif incarnation := self.sessions.get(message.session):
                self._relay.unroute(incarnation, Why.WITHDRAWN)

    def _handle(self, message: Message) -> None:
        match message:
            case StreamData():
                self._relay.streams.data(self, message)
            case Broadcast():
                self._broadcast(message)
            case Close():
                self._relay.streams.close_by(self, message.stream)
            case Admit():
                self._admit(message)
            case _:
                raise ProtocolViolation(f"a host may not send `{message.tag}`")

    def _broadcast(self, message: Broadcast) -> None:
        """Ignored if the session is not (or no longer) routed to this host."""
        incarnation = self.sessions.get(message.session)
        if incarnation is None:
            return
        if not incarnation.last < message.seq <= NUMBER_MAX:
            raise ProtocolViolation("the numbers of broadcasts must rise")
        self._relay.metrics.count("broadcast_frames_total")
        self._relay.metrics.count("broadcast_bytes_total", len(message.data))
        incarnation.broadcast(message)

    def _admit(self, message: Admit) -> None:
        stream, incarnation = self.streams.get(message.stream), self.sessions.get(message.session)
        if stream is not None and incarnation is not None:
            stream.operator.admit(message.session, stream)

    async def _announce(self, message: Announce) -> None:
        if len(message.sessions) > self._relay.bounds.announce_max:
            raise ProtocolViolation(
                f"more than {self._relay.bounds.announce_max} sessions in one announcement"
            )
        refused: list[AnnounceRefusal] = []
        self._down = ""
        for first in range(0, len(message.sessions), _AT_ONCE):
            some = message.sessions[first : first + _AT_ONCE]
            outcomes = await asyncio.gather(*map(self._register, some))
            refused += filter(None, outcomes)
            await asyncio.sleep(0)
        self.outbox.say(Registered(message.id, tuple(refused)))

    async def _register(self, one: Announced) -> AnnounceRefusal | None:
        if not 0 < one.epoch <= NUMBER_MAX or len(one.key) != KEY_BYTES:
            raise ProtocolViolation("an announced session must have a key of 32 bytes and an epoch")
        session = SessionId.of_key(one.key)
        routed = self.sessions.get(session)
        if routed is not None and routed.epoch == one.epoch:
            return None
        if not _signed(one.key, session_text(session, self.key, one.epoch), one.signature):
            # A check costs the relay more than a lie costs the host, so it counts as a failed
            # proof.
            if self._relay.proofs.take(self._address, asyncio.get_running_loop().time()):
                raise BadSignature("too many announced sessions are not signed with their own keys")
            return AnnounceRefusal(session, BadSignature.code, 0)
        if session not in self.sessions and self._relay.full_of_sessions(self):
            return AnnounceRefusal(session, LimitReached.code, 0)
        if self._rises_too_often(session, one.epoch):
            return AnnounceRefusal(session, RateLimited.code, 0)
        if self._down:  # it did not answer for another session just now: do not wait again
            return AnnounceRefusal(session, self._down, 0)
        try:
            floor = await self._relay.floors.rise(session, one.epoch, self.key)
        except (CoordinationDown, StorageFailed) as error:
            self._down = error.code
            return AnnounceRefusal(session, error.code, 0)
        if not floor.admits(one.epoch, self.key):
            self._relay.metrics.count("fenced_total")
            return AnnounceRefusal(session, Fenced.code, floor.epoch)
        if session not in self.sessions and self._relay.full_of_sessions(self):
            return AnnounceRefusal(session, LimitReached.code, 0)
        if not self.gone:
            self._relay.route(session, one, self)
        return None

    def _rises_too_often(self, session: SessionId, epoch: int) -> bool:
        """What is written to a coordination point stays there, and anybody can create sessions."""
        floors = self._relay.floors
        known = floors.known(session)
        if not floors.lasting or (known is not None and known.epoch >= epoch):
            return False
        return bool(self._relay.rises.take(self._address, asyncio.get_running_loop().time()))

    def supersede(self, session: SessionId, epoch: int) -> None:
        self.outbox.say(Superseded(session, epoch))
