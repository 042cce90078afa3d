"""The bus between the relays of one cluster: small packets from one to another, or to all.

It promises little, so that anything that carries messages can stand behind it: what is sent may be
lost, unnoticed; what arrives from one relay arrives whole, once, and in the order it was sent, that
to all apart from that to one.
That something was lost is for the relays to find out (relay/peer_link.py). Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

NAME_CHARS = 16  # of a relay's name: hexadecimal digits


class RelayBus(Protocol):
    """One relay's place on the bus."""

    @property
    def name(self) -> str:
        """Of this relay, for as long as it runs; made anew at each start."""
        ...

    @property
    def up(self) -> bool:
        """Whether there is a way to the others, as far as is known."""
        ...

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        """From now on, each packet for this relay or for all is handed over; not one's own. Where
        several servers carry it they may need a moment to know: what is sent before is lost."""
        ...

    def send(self, to: str, packet: bytes) -> None:
        """To one relay. Never waits; who sends much asks `ready` first."""
        ...

    def send_all(self, packet: bytes) -> None:
        """To every other relay."""
        ...

    def ready(self, size: int) -> bool:
        """Whether so many bytes more can be on their way out without piling up here."""
        ...

    async def drain(self) -> None:
        """Until it is ready for more."""
        ...

    async def close(self) -> None:
        """What was sent before is sent, if there is a way."""
        ...
