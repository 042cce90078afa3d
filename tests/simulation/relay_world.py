"""Several relays in one process over a bus that loses packets, with hosts and operators that write
down what they hear. The relays are the real ones, from their ends' messages to the bus."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from holdfast.adapters.memory.coordination import MemoryCoordination, MemoryStore
from holdfast.adapters.memory.relay_bus import MemoryBus, MemoryHub
from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.relay.cluster import Cluster
from holdfast.relay.epoch_floors import SharedFloors
from holdfast.relay.host_end import HostEnd
from holdfast.relay.limits import Bounds
from holdfast.relay.operator_end import OperatorEnd
from holdfast.relay.outbox import Outbox, OutboxSocket
from holdfast.relay.rendezvous import Relay
from holdfast.relay.server_frame import body_of
from holdfast.relay.websocket import WebSocketConnection
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Message

BOUNDS = Bounds(beat_s=0.01, silence_s=0.5, find_s=0.2, opens=1_000_000)
PATIENCE_S = 5.0


class Client(OutboxSocket):
    """One that reads at once, or not at all."""

    def __init__(self, relay: Relay) -> None:
        self.heard: list[Message] = []
        self.reads = True
        self.outbox = Outbox(self, relay.bounds, relay.held, relay.metrics)
        self.more = asyncio.Event()

    def ready(self, size: int) -> bool:
        return self.reads

    def write(self, frame: bytes) -> None:
        self.heard.append(r.decode(bytes(body_of(frame))))
        self.more.set()

    async def drain(self) -> None:
        while not self.reads:
            await asyncio.sleep(0.001)

    def abort(self) -> None:
        raise AssertionError("nobody here is cut off")

    def of(self, kind: type[Message]) -> list[Any]:
        return [message for message in self.heard if isinstance(message, kind)]

    async def hears(self, kind: type[Message], count: int = 1) -> Any:
        """The last of so many of this kind."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.of(kind)) < count:
                self.more.clear()
                await self.more.wait()
        return self.of(kind)[count - 1]


class SimHost(Client):
    def __init__(self, relay: Relay) -> None:
        super().__init__(relay)
        self.key = SigningKey.generate()
        proof = r.ProveHost(1, self.key.public, "", b"", self.key.public, bytes(64))
        self.end = HostEnd(relay, cast("WebSocketConnection", self), proof, "here")
        self._relay = relay
        relay.add_host(self.end)

    async def has(self, key: SigningKey, epoch: int = 1) -> SessionId:
        session = SessionId.of_key(key.public)
        text = r.session_text(session, self.key.public, epoch)
        said = r.Announced(key.public, epoch, key.sign(text))
        await self.end._announce(r.Announce(1, (said,)))
        return session

    def say(self, message: Message) -> None:
        self.end._handle(message)

    def leaves(self) -> None:
        self._relay.remove_host(self.end)


class SimOperator(Client):
    def __init__(self, relay: Relay) -> None:
        super().__init__(relay)
        self._relay = relay
        self.end = OperatorEnd(relay, cast("WebSocketConnection", self), "here")
        relay.operators.add(self.end)
        self._asked = 0

    def say(self, message: Message) -> None:
        self.end._handle(message)

    async def opens(self, to: bytes | SessionId) -> r.StreamOpened | r.RelayFailed:
        self._asked += 1
        session = to if isinstance(to, SessionId) else None
        self.say(r.Open(self._asked, b"" if session else cast("bytes", to), session))
        return cast("r.StreamOpened | r.RelayFailed", await self.answered(self._asked))

    async def subscribes(self, session: SessionId) -> Message:
        self._asked += 1
        self.say(r.Subscribe(self._asked, session))
        return await self.answered(self._asked)

    async def answered(self, number: int) -> Message:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for message in self.heard:
                    if getattr(message, "id", None) == number:
                        return message
                self.more.clear()
                await self.more.wait()

    def leaves(self) -> None:
        self._relay.remove_operator(self.end)


class World:
    """So many relays that know of each other, sharing floors."""

    def __init__(self, count: int = 2, bounds: Bounds = BOUNDS) -> None:
        self.hub, self._store = MemoryHub(), MemoryStore()
        self.relays: list[Relay] = []
        self.buses: list[MemoryBus] = []
        self._following: list[asyncio.Task[None]] = []
        for _ in range(count):
            relay = Relay(bounds, SharedFloors(MemoryCoordination(self._store)))
            bus = MemoryBus(self.hub)
            relay.cluster = Cluster(relay, bus)
            self.relays.append(relay)
            self.buses.append(bus)

    async def __aenter__(self) -> World:
        for relay in self.relays:
            assert relay.cluster is not None
            await relay.cluster.start()
            self._following.append(asyncio.create_task(relay.follow_floors()))
        await self.until(
            lambda: all(one.gauges()["relays"] == len(self.relays) - 1 for one in self.relays)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._following:
            task.cancel()
        for relay in self.relays:
            assert relay.cluster is not None
            await relay.cluster.stop()

    async def until(self, so: Any) -> None:
        """Asked again until it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not so():
                await asyncio.sleep(0.002)

    async def beats(self, count: int = 4) -> None:
        """So much time that whatever was lost must have been noticed."""
        await asyncio.sleep(BOUNDS.beat_s * count)
