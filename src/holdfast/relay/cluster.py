"""The other relays: who is there, who has what, and the links to them.

Which host has a session, and in which epoch, is in the floors that relays share. Where that host is
connected is not written down anywhere: whoever needs to know asks, and a relay that died does not
answer. So nothing goes stale, and finding works also while the coordination point cannot be
written to. An answer with a lower epoch than is known is no answer.

Every relay says each second that it is there. One that falls silent is lost, with the links to and
from it; if it was only paused, it hears that its links are over when it says something on them.
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
from holdfast.relay.peer_hosts import FarHosts
from holdfast.relay.peer_link import PeerLink
from holdfast.relay.peer_operators import FarOperators
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
    """A question to all, until one answer is good enough or all are in."""

    def __init__(self, asked: set[str] | None, enough: int | None, least: int) -> None:
        """`asked`: None when there may be some we have not heard of; `enough`: the epoch that needs
        no comparing; `least`: the lowest that will do."""
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
        """It has answered, or never will."""
        if self._asked is not None:
            self._asked.discard(peer)
            if not self._asked:
                self.over.set()


class Cluster:
    """This relay among the others."""

    def __init__(self, relay: Relay, bus: RelayBus) -> None:
        self._relay, self._bus, self._bounds = relay, bus, relay.bounds
        self._peers: dict[str, float] = {}  # and when each was last heard
        self._made: dict[str, FarHosts] = {}  # links we made, by peer
        self._served: dict[str, FarOperators] = {}  # links made to us, by peer
        self._findings: dict[int, LookupInProgress] = {}
        self._asked = 0
        self._settled = False  # whether all that are there have had the time to say so
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
        """Of a host or session that is not here. The operator is told how it went."""
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
                "not here, and the other relays cannot be reached", hint="try another one, or later"
            )
        self._asked += 1
        number, finding = self._asked, self._finding(request)
        self._findings[number] = finding
        self._tell_all(Find(number, request.host, request.session))
        try:
            async with asyncio.timeout(self._bounds.find_s):
                await finding.over.wait()
        except TimeoutError:
            pass  # whoever has not answered does not have it
        finally:
            del self._findings[number]
        if finding.best:
            return finding.best
        if request.session is not None:
            raise NoSuchSession("no host here has this session")
        raise HostDown("this host is not connected here", hint="try another relay, or later")

    def _finding(self, request: Open) -> LookupInProgress:
        floor = self._relay.floors.known(request.session) if request.session else None
        least = floor.epoch if floor else 0
        # Of a session nothing was heard about, the highest of all answers is the one.
        enough = None if request.session and floor is None else least
        return LookupInProgress(set(self._peers) if self._settled else None, enough, least)

    def _link_to(self, peer: str) -> FarHosts:
        far = self._made.get(peer)
        if far is None:
            number = secrets.randbits(63)
            link = PeerLink(self._relay, self._bus, peer, number, made=True)
            far = self._made[peer] = FarHosts(self._relay, link)
        return far

    # -- what is heard ------------------------------------------------------------------------

    def heard(self, packet: bytes) -> None:
        """From the bus. Other relays are believed, but a mistake of theirs must not end us."""
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
                    log.info("relay %s is there", peer)
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
        far = self._served.get(peer)
        if kind is PeerKind.MAKER_SAYS and number == 0 and (far is None or far.link.number != link):
            if far is not None:
                self._lose_served(far, told=True)
            made = PeerLink(self._relay, self._bus, peer, link, made=False)
            far = self._served[peer] = FarOperators(self._relay, made)
        if far is None or far.link.number != link:
            if kind is not PeerKind.MAKER_ENDS:
                self._bus.send(peer, pack(PeerKind.SERVER_ENDS, self._bus.name, link))
        elif kind is PeerKind.MAKER_ENDS:
            self._lose_served(far, told=True)
        elif kind is PeerKind.MAKER_SAID:
            if not far.link.complete(number):
                self._lose_served(far, told=False)
        elif not self._takes(far, kind, number, body):
            self._lose_served(far, told=False)

    def _from_server(self, kind: PeerKind, peer: str, link: int, number: int, body: bytes) -> None:
        far = self._made.get(peer)
        if far is None or far.link.number != link:
            if kind is not PeerKind.SERVER_ENDS:
                self._bus.send(peer, pack(PeerKind.MAKER_ENDS, self._bus.name, link))
        elif kind is PeerKind.SERVER_ENDS:
            self._lose_made(far, told=True)
        elif kind is PeerKind.SERVER_SAID:
            if not far.link.complete(number):
                self._lose_made(far, told=False)
        elif not self._takes(far, kind, number, body):
            self._lose_made(far, told=False)

    def _takes(
        self, far: FarHosts | FarOperators, kind: PeerKind, number: int, body: bytes
    ) -> bool:
        """Whether the link is as it should be after this message."""
        if not far.link.next(number):
            return False
        try:
            far.handle(decode(kind, body))
        except ProtocolViolation as error:
            log.warning("on a link with relay %s: %s", far.link.peer, error.message)
            return False
        return True

    # -- losing -------------------------------------------------------------------------------

    def _lose(self, peer: str) -> None:
        """It is gone, and cannot be told anything."""
        if (made := self._made.get(peer)) is not None:
            self._lose_made(made, told=True)
        if (served := self._served.get(peer)) is not None:
            self._lose_served(served, told=True)
        for finding in list(self._findings.values()):
            finding.without(peer)

    def _lose_made(self, far: FarHosts, *, told: bool) -> None:
        del self._made[far.link.peer]
        self._count_lost(far.link)
        far.link.end(told=told)
        far.lost()

    def _lose_served(self, far: FarOperators, *, told: bool) -> None:
        del self._served[far.link.peer]
        self._count_lost(far.link)
        far.link.end(told=told)
        self._relay.operator_out(far)

    def _count_lost(self, link: PeerLink) -> None:
        self._relay.metrics.count("links_lost_total")
        log.info("a link with relay %s is over", link.peer)

    # -- beats --------------------------------------------------------------------------------

    async def _beat(self) -> None:
        loop, up = asyncio.get_running_loop(), True
        while True:
            began = loop.time()
            await asyncio.sleep(self._bounds.beat_s)
            was_up, up = up, self._bus.up
            self._settled = up and was_up  # who is there after an outage has yet to be heard
            if loop.time() - began > self._bounds.silence_s:
                # It is we who were paused. What the others said meanwhile is still to be read.
                self._peers = dict.fromkeys(self._peers, loop.time())
            if up:
                self._tell_all(Beat(new=not was_up))
                for link in self._links():
                    link.say_how_much()
            silent = loop.time() - self._bounds.silence_s
            for peer in [peer for peer, at in self._peers.items() if at < silent]:
                log.info("relay %s is silent", peer)
                del self._peers[peer]
                self._lose(peer)

    def _links(self) -> list[PeerLink]:
        made, served = self._made.values(), self._served.values()
        return [far.link for far in made] + [far.link for far in served]

    # -- the bus ------------------------------------------------------------------------------

    def _tell_all(self, message: Beat | Find) -> None:
        self._bus.send_all(pack(PeerKind.CLUSTER, self._bus.name, body=encode(message)))

    def _tell(self, peer: str, message: Beat | SessionFound) -> None:
        self._bus.send(peer, pack(PeerKind.CLUSTER, self._bus.name, body=encode(message)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
