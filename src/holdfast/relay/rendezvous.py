"""The state of a relay: ends, incarnations, streams; and which connections it admits. No sockets
here."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.model.errors import HoldfastError, HostLost, LimitReached
from holdfast.model.ids import SessionId
from holdfast.relay.address_rate import AddressRate
from holdfast.relay.epoch_floors import Floors, MemoryFloors
from holdfast.relay.limits import Bounds
from holdfast.relay.metrics import Metrics
from holdfast.relay.outbox import HeldBytes
from holdfast.relay.peer_operators import PeerOperators
from holdfast.relay.streams import Streams
from holdfast.relay.subscriptions import RoutedIncarnation
from holdfast.wire.relay_messages import RELAY_VERSION, Announced, GoingAway, Greeted, Why

if TYPE_CHECKING:
    from holdfast.relay.cluster import Cluster
    from holdfast.relay.host_end import HostEnd
    from holdfast.relay.operator_end import OperatorEnd
    from holdfast.relay.streams import OperatorSide


class Relay:
    """The state of one relay. All of it may be lost: hosts announce again at another relay."""

    def __init__(self, bounds: Bounds, floors: Floors | None = None) -> None:
        self.bounds, self.metrics, self.held = bounds, Metrics(), HeldBytes()
        self.floors: Floors = floors or MemoryFloors(bounds.epochs_max)
        self.hosts: dict[bytes, HostEnd] = {}
        self.operators: set[OperatorEnd] = set()
        self.incarnations: dict[SessionId, RoutedIncarnation] = {}
        self.streams = Streams(bounds, self.metrics, self._check_empty)
        self.sockets: Counter[str] = Counter()  # by address
        self.draining = False
        self.cluster: Cluster | None = None  # the other relays, if any
        self._empty = asyncio.Event()
        most = bounds.addresses_max
        self.proofs = AddressRate(bounds.failed_proofs, bounds.failed_proofs_per_s, most)
        self.rises = AddressRate(bounds.rises, bounds.rises_per_s, most)
        self.opens = AddressRate(bounds.opens, bounds.opens_per_s, most)

    def greeted(self) -> Greeted:
        bounds = self.bounds
        return Greeted(
            RELAY_VERSION,
            bounds.frame_max_bytes,
            bounds.stream_window_bytes,
            bounds.broadcast_window_bytes,
        )

    # -- ends ---------------------------------------------------------------------------------

    def add_host(self, host: HostEnd) -> None:
        """Add a host. It replaces an older connection with the same key: that one is half dead, or
        the host moved. Its sessions must be announced again."""
        older = self.hosts.get(host.key)
        if older is not None:
            self.remove_host(older)
            older.connection.dismiss(HostLost("another connection proved the same key"), code=1000)
        self.hosts[host.key] = host

    def remove_host(self, host: HostEnd) -> None:
        host.gone = True
        for incarnation in list(host.sessions.values()):
            self.unroute(incarnation, Why.HOST_GONE)
        for stream in list(host.streams.values()):
            self.streams.close(stream, Why.HOST_GONE, but=host)
        if self.hosts.get(host.key) is host:
            del self.hosts[host.key]
        self._check_empty()

    def remove_operator(self, operator: OperatorSide) -> None:
        for subscribers in operator.subscribed.values():
            subscribers.leave(operator)
        operator.subscribed.clear()
        for stream in list(operator.streams.values()):
            self.streams.close(stream, Why.OPERATOR_GONE, but=operator)
        if isinstance(operator, PeerOperators):
            return
        operator.gone = True
        self.operators.discard(operator)
        self._check_empty()

    def ends(self) -> list[HostEnd | OperatorEnd]:
        return [*self.hosts.values(), *self.operators]

    # -- routing ------------------------------------------------------------------------------

    def full_of_sessions(self, host: HostEnd) -> bool:
        return (
            len(self.incarnations) >= self.bounds.sessions_max
            or len(host.sessions) >= self.bounds.host_sessions_max
        )

    def route(self, session: SessionId, announced: Announced, host: HostEnd) -> None:
        """Route the session to this incarnation. The floor is checked again, because another host
        may have raised it while we waited for the answer."""
        known, epoch = self.incarnations.get(session), announced.epoch
        if known is not None:
            if known.epoch > epoch or (known.epoch == epoch and known.host is host):
                return
            self.unroute(known, Why.MOVED)
            if known.host is not host:
                known.host.supersede(session, epoch)
        made = RoutedIncarnation(session, announced, host, self.bounds.broadcast_window_bytes)
        self.incarnations[session] = host.sessions[session] = made

    def unroute(self, incarnation: RoutedIncarnation, why: Why) -> None:
        session = incarnation.session
        if self.incarnations.get(session) is incarnation:
            del self.incarnations[session]
        if incarnation.host.sessions.get(session) is incarnation:
            del incarnation.host.sessions[session]
        incarnation.end(why)
        for stream in list(incarnation.streams.values()):
            self.streams.close(stream, why)

    async def follow_floors(self) -> None:
        """A later incarnation announced at another relay ends the one here."""
        async for session, floor in self.floors.risen():
            known = self.incarnations.get(session)
            if known is not None and not floor.admits(known.epoch, known.host.key):
                self.unroute(known, Why.MOVED)
                known.host.supersede(session, floor.epoch)

    # -- ending -------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Tell clients to use another relay, wait a bounded time for them to leave, then close."""
        self.draining = True
        for end in self.ends():
            end.outbox.say(GoingAway(self.bounds.drain_s))
        self._check_empty()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), self.bounds.drain_s)
        over: HoldfastError = LimitReached("this relay is stopping", hint="use another one")
        for end in self.ends():
            end.connection.dismiss(over, code=1012)

    def _check_empty(self) -> None:
        """Drain does not wait for operators without a stream: they may be idle, and those that left
        cannot come back before this relay has stopped."""
        if self.draining and not self.hosts and not self.streams.count:
            self._empty.set()

    def gauges(self) -> dict[str, int]:
        return {
            "hosts": len(self.hosts),
            "operators": len(self.operators),
            "sessions": len(self.incarnations),
            "streams": self.streams.count,
            "subscriptions": sum(len(one.subscribed) for one in self.operators),
            "held_bytes": self.held.bytes,
            "sockets": self.sockets.total(),
            "draining": int(self.draining),
            **(self.cluster.gauges() if self.cluster else {"relays": 0, "links": 0}),
        }
