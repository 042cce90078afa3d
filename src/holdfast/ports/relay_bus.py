"""The bus between the relays of one cluster: small packets from one to another, or to all.

It guarantees little, so that any message bus can implement it: packets may be lost without notice;
packets from one relay arrive whole, once, and in order, separately for those to all and those to
one. The relays themselves detect losses (relay/peer_link.py). Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

NAME_CHARS = 16  # of a relay's name: hexadecimal digits


class RelayBus(Protocol):
    """One relay's connection to the bus."""

    @property
    def name(self) -> str:
        """The name of this relay, new at each start."""

    @property
    def up(self) -> bool:
        """Whether the others can be reached, as far as is known."""

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        """From now on `heard` gets each packet for this relay or for all, except its own. With
        several servers this may take a moment: packets sent before are lost."""

    def send(self, to: str, packet: bytes) -> None:
        """To one relay. Never waits; call `ready` first for much data."""

    def send_all(self, packet: bytes) -> None:
        """To every other relay."""

    def ready(self, size: int) -> bool:
        """Whether so many more bytes can be sent without piling up here."""

    async def drain(self) -> None:
        """Wait until it is ready for more."""

    async def close(self) -> None:
        """Flush if possible, then close."""
