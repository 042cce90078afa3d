"""A bus of relays in one process: the twin of the real one, held to the same contract
(`tests/contract/test_relay_bus.py`), and with faults to order. Belongs to one event loop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from holdfast.ports.relay_bus import NAME_CHARS


class MemoryHub:
    """What the relays share. `lost` decides which packets vanish: from, to, packet."""

    def __init__(self) -> None:
        self.buses: dict[str, MemoryBus] = {}
        self.lost: Callable[[str, str, bytes], bool] = lambda _from, _to, _packet: False

    def pass_on(self, sender: str, to: str, packet: bytes) -> None:
        bus = self.buses.get(to)
        if bus is not None and not self.lost(sender, to, packet):
            asyncio.get_running_loop().call_soon(bus.deliver, packet)


class MemoryBus:
    """One relay's place. `up` may be set to False: then nothing goes out or comes in."""

    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub
        self.name = secrets.token_hex(NAME_CHARS // 2)
        self.up = True
        self._heard: Callable[[bytes], None] | None = None

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        self._heard = heard
        self._hub.buses[self.name] = self

    def deliver(self, packet: bytes) -> None:
        if self.up and self._heard is not None:
            self._heard(packet)

    def send(self, to: str, packet: bytes) -> None:
        if self.up:
            self._hub.pass_on(self.name, to, packet)

    def send_all(self, packet: bytes) -> None:
        for name in list(self._hub.buses):
            if name != self.name:
                self.send(name, packet)

    def ready(self, size: int) -> bool:
        return self.up

    async def drain(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.sleep(0)
        self._hub.buses.pop(self.name, None)
        self._heard = None
