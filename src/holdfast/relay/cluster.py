"""The other relays: which are alive, which has what, and the links to them.

The shared floors say which host has a session, and in which epoch. Where that host is connected is
not stored: a relay asks the others, and a dead relay does not answer. So nothing goes stale, and
lookups work even while the coordination point cannot be written to. An answer with a lower epoch
than is known is ignored.

Every relay sends a heartbeat each second. One that falls silent is lost, with the links to and from
it; if it was only paused, it learns that its links are closed when it uses them.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from holdfast.model.errors import (
    CoordinationDown,
    HoldfastError,
    HostDown,
    NoSuchSession,
    ProtocolViolation,
)
from holdfast.ports.relay_bus import RelayBus
from holdfast.relay.peer_hosts import PeerHosts
from holdfast.relay.peer_link import PeerLink
from holdfast.relay.peer_operators import PeerOperators
from holdfast.wire.relay_messages import Open, RelayFailed, encode
from holdfast.wire.relay_peer_messages import (
    Beat,
    Find,
    PeerKind,
    SessionFound,
    decode,
    pack,
    unpack,
)

if TYPE_CHECKING:
    from holdfast.relay.operator_end import OperatorEnd
    from holdfast.relay.rendezvous import Relay

log = logging.getLogger("relay")


class LookupInProgress:
    """A lookup, until one answer is good enough or all relays have answered."""

    def __init__(self, asked: set[str] | None, enough: int | None, least: int) -> None:
        """`asked`: None if there may be relays we have not heard of; `enough`: an epoch that ends
        the lookup at once; `least`: the lowest acceptable epoch."""
        self._asked, self._enough, self._least = asked, enough, least
        self.best, self._epoch = "", -1
        self.over = asyncio.Event()
        if asked is not None and not asked:
            self.over.set()

    def answered(self, peer: str, answer: SessionFound) -> None:
        if answer.here and answer.epoch >= self._least and answer.epoch > self._epoch:
            self.best, self._epoch = peer, answer.epoch
            if self._enough is not None and answer.epoch >= self._enough:
                self.over.set()
        self.without(peer)

    def without(self, peer: str) -> None:
        """This relay has answered, or is lost."""
        if self._asked is not None:
            self._asked.discard(peer)
            if not self._asked:
                self.over.set()


class Cluster:
    """This relay's view of the cluster."""

    def __init__(self, relay: Relay, bus: RelayBus) -> None:
        self._relay, self._bus, self._bounds = relay, bus, relay.bounds
        self._peers: dict[str, float] = {}  # by name, with the time each was last heard
        self._made: dict[str, PeerHosts] = {}  # links we made, by peer
        self._served: dict[str, PeerOperators] = {}  # links made to us, by peer
        self._findings: dict[int, LookupInProgress] = {}
        self._asked = 0
        self._settled = False  # whether all live relays have had time to send a heartbeat
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await self._bus.listen(self.heard)
        self._tell_all(Beat(new=True))
        self._spawn(self._beat())

    async def stop(self) -> None:
        self._tell_all(Beat(leaving=True))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for peer in [*self._made, *self._served]:
            self._lose(peer)
        await self._bus.close()

    def gauges(self) -> dict[str, int]:
        return {"relays": len(self._peers), "links": len(self._made) + len(self._served)}

    # -- operators' streams -------------------------------------------------------------------

    def open(self, operator: OperatorEnd, request: Open) -> None:
        """Open a stream to a host or session at another relay; the operator gets the answer."""
        self._spawn(self._open(operator, request))

    async def _open(self, operator: OperatorEnd, request: Open) -> None:
        try:
            peer = await self._find(request)
        except HoldfastError as error:
            operator.opening -= 1
            operator.outbox.say(RelayFailed(request.id, error.code, error.message, error.hint))
        else:
            self._link_to(peer).reach(operator, request)

    async def _find(self, request: Open) -> str:
        """The relay that has it."""
        if not self._bus.up:
            raise CoordinationDown(
                "not at this relay, and the others cannot be reached",
                hint="try another relay, or later",
            )
        self._asked += 1
        number, finding = self._asked, self._finding(request)
        self._findings[number] = finding
        self._tell_all(Find(number, request.host, request.session))
        try:
            async with asyncio.timeout(self._bounds.find_s):
                await finding.over.wait()
        except TimeoutError:
            pass  # a relay that has not answered does not have it
        finally:
            del self._findings[number]
        if finding.best:
            return finding.best
        if request.session is not None:
            raise NoSuchSession("no connected host has this session")
        raise HostDown("this host is not connected", hint="try another relay, or later")

    def _finding(self, request: Open) -> LookupInProgress:
        floor = self._relay.floors.known(request.session) if request.session else None
        least = floor.epoch if floor else 0
        # If no floor is known for the session, the highest answer wins.
        enough = None if request.session and floor is None else least
        return LookupInProgress(set(self._peers) if self._settled else None, enough, least)

    def _link_to(self, peer: str) -> PeerHosts:
        peer_end = self._made.get(peer)
        if peer_end is None:
            number = secrets.randbits(63)
            link = PeerLink(self._relay, self._bus, peer, number, made=True)
            peer_end = self._made[peer] = PeerHosts(self._relay, link)
        return peer_end

    # -- what is heard ------------------------------------------------------------------------

    def heard(self, packet: bytes) -> None:
        """A packet from the bus. Other relays are trusted, but their mistakes must not stop this
        one."""
        try:
            kind, peer, link, number, body = unpack(packet)
            if kind is PeerKind.CLUSTER:
                self._cluster(peer, decode(kind, body))
            elif kind in (PeerKind.MAKER_SAYS, PeerKind.MAKER_SAID, PeerKind.MAKER_ENDS):
                self._from_maker(kind, peer, link, number, body)
            else:
                self._from_server(kind, peer, link, number, body)
        except ProtocolViolation as error:
            self._relay.metrics.count("violations_total")
            log.warning("from another relay: %s", error.message)

    def _cluster(self, peer: str, message: object) -> None:
        match message:
            case Beat(leaving=True):
                self._peers.pop(peer, None)
                self._lose(peer)
            case Beat():
                if peer not in self._peers:
                    log.info("relay %s is alive", peer)
                self._peers[peer] = asyncio.get_running_loop().time()
                if message.new:
                    self._tell(peer, Beat())
            case Find():
                self._tell(peer, self._here(message))
            case SessionFound():
                if finding := self._findings.get(message.number):
                    finding.answered(peer, message)

    def _here(self, find: Find) -> SessionFound:
        relay = self._relay
        if relay.draining:
            return SessionFound(find.number, False)
        if find.session is None:
            return SessionFound(find.number, find.host in relay.hosts)
        incarnation = relay.incarnations.get(find.session)
        if incarnation is None:
            return SessionFound(find.number, False)
        return SessionFound(find.number, True, incarnation.epoch)

    def _from_maker(self, kind: PeerKind, peer: str, link: int, number: int, body: bytes) -> None:
        peer_end = self._served.get(peer)
        if (
            kind is PeerKind.MAKER_SAYS
            and number == 0
            and (peer_end is None or peer_end.link.number != link)
        ):
            if peer_end is not None:
                self._lose_served(peer_end, told=True)
            made = PeerLink(self._relay, self._bus, peer, link, made=False)
            peer_end = self._served[peer] = PeerOperators(self._relay, made)
        if peer_end is None or peer_end.link.number != link:
            if kind is not PeerKind.MAKER_ENDS:
                self._bus.send(peer, pack(PeerKind.SERVER_ENDS, self._bus.name, link))
        elif kind is PeerKind.MAKER_ENDS:
            self._lose_served(peer_end, told=True)
        elif kind is PeerKind.MAKER_SAID:
            if not peer_end.link.complete(number):
                self._lose_served(peer_end, told=False)
        elif not self._takes(peer_end, kind, number, body):
            self._lose_served(peer_end, told=False)

    def _from_server(self, kind: PeerKind, peer: str, link: int, number: int, body: bytes) -> None:
        peer_end = self._made.get(peer)
        if peer_end is None or peer_end.link.number != link:
            if kind is not PeerKind.SERVER_ENDS:
                self._bus.send(peer, pack(PeerKind.MAKER_ENDS, self._bus.name, link))
        elif kind is PeerKind.SERVER_ENDS:
            self._lose_made(peer_end, told=True)
        elif kind is PeerKind.SERVER_SAID:
            if not peer_end.link.complete(number):
                self._lose_made(peer_end, told=False)
        elif not self._takes(peer_end, kind, number, body):
            self._lose_made(peer_end, told=False)

    def _takes(
        self, peer_end: PeerHosts | PeerOperators, kind: PeerKind, number: int, body: bytes
    ) -> bool:
        """Whether the link is still intact after this message."""
        if not peer_end.link.next(number):
            return False
        try:
            peer_end.handle(decode(kind, body))
        except ProtocolViolation as error:
            log.warning("on a link with relay %s: %s", peer_end.link.peer, error.message)
            return False
        return True

    # -- losing -------------------------------------------------------------------------------

    def _lose(self, peer: str) -> None:
        """The relay is gone; nothing can be sent to it."""
        if (made := self._made.get(peer)) is not None:
            self._lose_made(made, told=True)
        if (served := self._served.get(peer)) is not None:
            self._lose_served(served, told=True)
        for finding in list(self._findings.values()):
            finding.without(peer)

    def _lose_made(self, peer_end: PeerHosts, *, told: bool) -> None:
        del self._made[peer_end.link.peer]
        self._count_lost(peer_end.link)
        peer_end.link.end(told=told)
        peer_end.lost()

    def _lose_served(self, peer_end: PeerOperators, *, told: bool) -> None:
        del self._served[peer_end.link.peer]
        self._count_lost(peer_end.link)
        peer_end.link.end(told=told)
        self._relay.remove_operator(peer_end)

    def _count_lost(self, link: PeerLink) -> None:
        self._relay.metrics.count("links_lost_total")
        log.info("the link with relay %s is closed", link.peer)

    # -- beats --------------------------------------------------------------------------------

    async def _beat(self) -> None:
        loop, up = asyncio.get_running_loop(), True
        while True:
            began = loop.time()
            await asyncio.sleep(self._bounds.beat_s)
            was_up, up = up, self._bus.up
            self._settled = up and was_up  # after an outage the live relays are not known yet
            if loop.time() - began > self._bounds.silence_s:
                # This process was paused. The others' packets are still unread.
                self._peers = dict.fromkeys(self._peers, loop.time())
            if up:
                self._tell_all(Beat(new=not was_up))
                for link in self._links():
                    link.send_count()
            silent = loop.time() - self._bounds.silence_s
            for peer in [peer for peer, at in self._peers.items() if at < silent]:
                log.info("relay %s is silent", peer)
                del self._peers[peer]
                self._lose(peer)

    def _links(self) -> list[PeerLink]:
        made, served = self._made.values(), self._served.values()
        return [peer_end.link for peer_end in made] + [peer_end.link for peer_end in served]

    # -- the bus ------------------------------------------------------------------------------

    def _tell_all(self, message: Beat | Find) -> None:
        self._bus.send_all(pack(PeerKind.CLUSTER, self._bus.name, body=encode(message)))

    def _tell(self, peer: str, message: Beat | SessionFound) -> None:
        self._bus.send(peer, pack(PeerKind.CLUSTER, self._bus.name, body=encode(message)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
