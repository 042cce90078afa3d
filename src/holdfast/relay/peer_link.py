"""A link between two relays: messages each way, numbered, over a bus that may lose any of them.

One relay makes it, for its operators; the other serves it, for its hosts. A number that is not the
next means that a message was lost; then both ends close the link, because streams carry their bytes
in order or not at all, and operators open their streams again. With every beat each end says how
many messages it has sent, so that a lost last message is noticed too. Nothing is sent twice, and
nothing waits for an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.ports.relay_bus import RelayBus
from holdfast.relay.outbox import Outbox, OutboxSocket
from holdfast.relay.server_frame import body_of
from holdfast.wire.relay_peer_messages import PeerKind, pack

if TYPE_CHECKING:
    from holdfast.relay.rendezvous import Relay


class PeerLink(OutboxSocket):
    """One end of a link."""

    def __init__(self, relay: Relay, bus: RelayBus, peer: str, number: int, *, made: bool) -> None:
        self._bus, self.peer, self.number = bus, peer, number
        self._kinds = (
            (PeerKind.MAKER_SAYS, PeerKind.MAKER_SAID, PeerKind.MAKER_ENDS)
            if made
            else (PeerKind.SERVER_SAYS, PeerKind.SERVER_SAID, PeerKind.SERVER_ENDS)
        )
        self._said = self._heard = 0
        self.over = False
        # It serves all operators of a relay, but holds no more than one connection may.
        bounds = relay.bounds.replace(operator_queue_bytes=relay.bounds.connection_bytes)
        self.outbox = Outbox(self, bounds, relay.held, relay.metrics)

    # -- the outbox's socket ------------------------------------------------------------------

    def ready(self, size: int) -> bool:
        return self._bus.ready(size)

    def write(self, frame: bytes) -> None:
        if self.over:
            raise ConnectionResetError("the link is closed")
        says = self._kinds[0]
        packet = pack(says, self._bus.name, self.number, self._said, body_of(frame))
        self._bus.send(self.peer, packet)
        self._said += 1

    async def drain(self) -> None:
        await self._bus.drain()

    def abort(self) -> None:
        """The next packet finds the link closed."""
        self.over = True

    # -- numbers ------------------------------------------------------------------------------

    def next(self, number: int) -> bool:
        """Whether this is the next message."""
        if self.over or number != self._heard:
            return False
        self._heard += 1
        return True

    def complete(self, said: int) -> bool:
        """Whether all messages of the other end have arrived."""
        return not self.over and said == self._heard

    def send_count(self) -> None:
        if self._said:
            self._bus.send(self.peer, pack(self._kinds[1], self._bus.name, self.number, self._said))

    def end(self, *, told: bool) -> None:
        """`told`: the other end knows, or cannot be told."""
        self.over = True
        self.outbox.close()
        if not told:
            self._bus.send(self.peer, pack(self._kinds[2], self._bus.name, self.number))
