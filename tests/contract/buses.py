"""The buses the contract of relays is shown on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from contract.stores import PATIENCE_S, Clusters
from holdfast.adapters.memory.relay_bus import MemoryBus, MemoryHub
from holdfast.adapters.nats.relay_bus import NatsBus
from holdfast.ports.relay_bus import RelayBus

BUSES = ("memory", "nats-1", "nats-3")
_HELLO = b"hello from "
_places = itertools.count(1)


class Buses:
    """Places on one bus. The one in memory hears nothing of those on another."""

    def __init__(self, kind: str, clusters: Clusters) -> None:
        self.kind = kind
        self._place = f"test-{next(_places)}"
        self._hub = MemoryHub() if kind == "memory" else None
        self._urls = [] if kind == "memory" else clusters.of(int(kind[-1])).urls

    async def open(self) -> RelayBus:
        if self._hub is not None:
            return MemoryBus(self._hub)
        return await NatsBus.connect(self._urls, self._place)

    @asynccontextmanager
    async def listeners(self, count: int) -> AsyncIterator[list[Listener]]:
        async with AsyncExitStack() as stack:
            made = []
            for _ in range(count):
                bus = await self.open()
                stack.push_async_callback(bus.close)
                one = Listener(bus)
                await bus.listen(one.heard)
                made.append(one)
            await _acquainted(made)
            yield made


class Listener:
    """A place on a bus that writes down what it hears."""

    def __init__(self, bus: RelayBus) -> None:
        self.bus, self.packets = bus, list[bytes]()
        self.met: set[bytes] = set()
        self._more = asyncio.Event()

    def heard(self, packet: bytes) -> None:
        if packet.startswith(_HELLO):
            self.met.add(packet)
            return
        self.packets.append(bytes(packet))
        self._more.set()

    async def until(self, so: Callable[[list[bytes]], bool]) -> list[bytes]:
        async with asyncio.timeout(PATIENCE_S):
            while not so(self.packets):
                self._more.clear()
                await self._more.wait()
        return self.packets


async def _acquainted(listeners: list[Listener]) -> None:
    """Until all servers know of all: each has heard each other, both ways."""
    async with asyncio.timeout(PATIENCE_S):
        while any(len(one.met) < 2 * (len(listeners) - 1) for one in listeners):
            for one in listeners:
                name = one.bus.name.encode()
                one.bus.send_all(_HELLO + name)
                for other in listeners:
                    if other is not one:
                        one.bus.send(other.bus.name, _HELLO + b"me, " + name)
            await asyncio.sleep(0.01)
