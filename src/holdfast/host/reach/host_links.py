"""Links to other hosts (ports/host_link.py): this host dials with a ticket, or is dialled by one
that has a ticket of this host.

    source   LocalStream, or a stream through a relay  ── secure_channel ──▶  LinkEnd
    target   RemoteStream, or LocalCarrier  ──▶  AnsweredChannel  ──▶  LinkEnd  ──▶  its service

The channel is the one of operators, with three differences: it is made for one ticket, whose secret
goes into the handshake; who dials is known by the key of its host; and nothing that comes over it
is the act of an operator.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from holdfast.adapters.signing import SigningKey
from holdfast.host.clock import now
from holdfast.host.reach.host_link import ImageGiver, LinkEnd, RecordCarrier, unreachable
from holdfast.host.reach.tickets import GivenTicket, TicketBook
from holdfast.model.device import Device
from holdfast.model.errors import (
    HandshakeFailed,
    HoldfastError,
    HostLost,
    LimitReached,
    ProtocolViolation,
    TicketInvalid,
    Unsupported,
    from_code,
)
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import HOST_LINK_GREETING_S, HOST_LINKS_MAX
from holdfast.ports.host_link import HostLink, Serve
from holdfast.wire import host_link as w

log = logging.getLogger(__name__)

_DIAL_S = 20.0  # over one way there; then the next


class ImageTaker(ImageGiver, Protocol):
    """Checkpoints of this host, and those that come."""

    async def take(self, lane: LinkEnd) -> None:
        """Every checkpoint that is offered, until the link is gone."""


class HostLinkService:
    """Of one host. The cryptography is loaded with the first link."""

    def __init__(
        self,
        host_key: SigningKey,
        state: str,
        listens_at: str,
        relays: Callable[[], tuple[str, ...]],
        images: ImageTaker,
    ) -> None:
        """`listens_at`: the path of this host's socket; `relays`: as others are to dial them."""
        self._key, self._state, self._listens_at = host_key, state, listens_at
        self._relays, self._images = relays, images
        self._services: dict[str, Serve] = {}
        self._book: TicketBook | None = None
        self._arriving: dict[bytes, ArrivingLink] = {}  # by ticket
        self._silent: list[_LocalArrival] = []  # of this machine, without a ticket yet
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- tickets --------------------------------------------------------------------------------

    @property
    def book(self) -> TicketBook:
        if self._book is None:
            self._book = TicketBook(self._state)
        return self._book

    def give_ticket(self, session: SessionId, source: bytes, actor: ActorId) -> w.LinkTicket:
        """Whether this actor may have it is the caller's matter."""
        given, device = self.book.give(session, source, actor, now()), self._device()
        return w.LinkTicket(
            id=given.id,
            secret=given.secret,
            host=device.key,
            static=device.static,
            binding=device.signature,
            name=socket.gethostname(),
            relays=self._relays(),
            socket=self._listens_at,
            session=session,
            source=source,
            expires_at=given.expires_at,
        )

    def settled(self, session: SessionId) -> None:
        """Nothing of it is on its way here any longer: tickets for it are no good from now on."""
        self.book.settled(session)

    def _device(self) -> Device:
        from holdfast.wire.key_agreement import channel_key, device_of

        return device_of(self._key.public, channel_key(self._key.seed), self._key.sign)

    # -- dialling -------------------------------------------------------------------------------

    async def dial(self, ticket: str, session: SessionId, asked_by: ActorId, what: str) -> HostLink:
        read = w.LinkTicket.of_text(ticket)
        if (read.session, read.source) != (session, self._key.public):
            raise TicketInvalid("the ticket is for another session, or for another host")
        if read.host == self._key.public:
            raise TicketInvalid("the session is on that host already")
        failure: HoldfastError = HostLost(f"{read.name} has told no way to reach it")
        for way in (*([read.socket] if os.path.exists(read.socket) else []), *read.relays):
            try:
                async with asyncio.timeout(_DIAL_S):
                    return await self._dial(way, read, session, asked_by, what)
            except TimeoutError:
                failure = HostLost(f"{read.name} does not answer")
            except (HostLost, HandshakeFailed) as error:
                failure = HostLost(f"{read.name} cannot be reached: {error.message}")
            except HoldfastError as error:
                if not error.retryable:
                    raise
                failure = HostLost(f"{read.name} cannot be reached: {error.message}")
        raise failure

    async def _dial(
        self, way: str, ticket: w.LinkTicket, session: SessionId, asked_by: ActorId, what: str
    ) -> HostLink:
        from holdfast.host.reach.dialled_channel import dial_channel

        link = LinkEnd(self._images)
        link.peer, link.peer_name, link.session = ticket.host, ticket.name, session
        link.channel = await dial_channel(way, ticket, self._key.seed, link)
        try:
            await link.say(w.LinkHello(session, what, socket.gethostname(), asked_by))
            match await link.greeting():
                case w.LinkWelcome(actor=actor):
                    try:
                        link.admitted_by = asked_by, ActorId(actor)
                    except ValueError as error:
                        raise ProtocolViolation(f"{ticket.name} names no actor: {error}") from error
                case w.LinkRefused(code=code, message=message, hint=hint):
                    raise from_code(code, message, hint)
                case _:
                    raise unreachable(ticket.name)
        except BaseException:
            await link.close()
            raise
        return link

    # -- being dialled --------------------------------------------------------------------------

    def serve(self, what: str, serve: Serve) -> None:
        self._services[what] = serve

    def answer(self, id: bytes, message: bytes, carrier: RecordCarrier) -> ArrivingLink:
        """Somebody opened a channel for this ticket. Raises HandshakeFailed, and nothing is said
        to a host that does not know the secret."""
        ticket = self.book.find(id)
        if ticket is None:
            raise HandshakeFailed("no ticket of this host has that id")
        if len(self._arriving) >= HOST_LINKS_MAX:
            raise LimitReached("more links from other hosts than this one takes at once")
        arriving = ArrivingLink(self, ticket, self._key, message, carrier)
        before = self._arriving.get(id)
        self._arriving[id] = arriving
        if before is not None:  # its source has dialled again: that one is dead
            before.cut()
        return arriving

    def answer_local(self, sock: socket.socket) -> None:
        """A connection on this machine asked for a link."""
        if len(self._silent) >= HOST_LINKS_MAX:  # anybody here can connect: the longest silent goes
            self._silent[0].end()
        self._silent.append(_LocalArrival(self, sock, self._silent))

    async def admitted(self, link: LinkEnd, ticket: GivenTicket, source: bytes) -> None:
        """It has spoken. Until the link is over."""
        try:
            try:
                async with asyncio.timeout(HOST_LINK_GREETING_S):
                    hello = await link.greeting()
                serve = self._check(link, ticket, source, hello)
            except HoldfastError as error:
                await link.say(w.LinkRefused(error.code, error.message, error.hint))
                return
            await link.say(w.LinkWelcome(ticket.actor))
            taking = self._keep(self._images.take(link))
            try:
                await serve(link)
            finally:
                taking.cancel()
        except HostLost as error:
            log.info("a link from %s: %s", link.peer_name or "another host", error.message)
        except TimeoutError:
            log.info("another host did not say what it wants")
        except HoldfastError as error:
            log.error("a link from %s: %s", link.peer_name, error.message)
        except Exception:  # nobody waits for this task
            log.exception("a link from %s", link.peer_name)
        finally:
            await link.close()

    def _check(self, link: LinkEnd, ticket: GivenTicket, source: bytes, hello: object) -> Serve:
        if not isinstance(hello, w.LinkHello):
            raise TicketInvalid("a host says first what it has come for")
        try:
            admitted_by = ActorId(hello.actor), ActorId(ticket.actor)
        except ValueError as error:
            raise ProtocolViolation(f"whoever asked for this is not named: {error}") from error
        self.book.use(ticket, source, hello.session, now())
        serve = self._services.get(hello.what)
        if serve is None:
            raise Unsupported(f"this host does not know what {hello.what[:40]!r} is")
        link.peer, link.peer_name = source, hello.name[:64]
        link.session = SessionId(hello.session)
        link.admitted_by = admitted_by
        return serve

    def left(self, id: bytes, link: ArrivingLink) -> None:
        if self._arriving.get(id) is link:
            del self._arriving[id]

    def keep(self, work: Awaitable[None]) -> asyncio.Task[Any]:
        return self._keep(work)

    def _keep(self, work: Awaitable[None]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for arriving in list(self._arriving.values()):
            arriving.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)


class ArrivingLink:
    """From the first message of another host until its link is over."""

    def __init__(
        self,
        links: HostLinkService,
        ticket: GivenTicket,
        key: SigningKey,
        message: bytes,
        carrier: RecordCarrier,
    ) -> None:
        from holdfast.host.reach.answered_channel import AnsweredChannel

        self._links, self._ticket = links, ticket
        self._link = LinkEnd(links._images)
        self._channel = AnsweredChannel(ticket, key, message, carrier, self._link, self._over)
        self._link.channel = self._channel
        self._channel.on_confirmed = self._begin

    def _begin(self) -> None:
        source = self._channel.source
        self._links.keep(self._links.admitted(self._link, self._ticket, source))

    def receive(self, record: bytes) -> None:
        """Raises HoldfastError, after which the link is over."""
        self._channel.receive(record)

    def room(self) -> None:
        self._link.room()

    def lost(self) -> None:
        """What carried it is gone."""
        self._channel.lost()

    def cut(self) -> None:
        self._channel.cut()

    def _over(self) -> None:
        self._links.left(self._ticket.id, self)


class _LocalArrival:
    """One connection of this machine that is used for a link."""

    def __init__(
        self, links: HostLinkService, sock: socket.socket, silent: list[_LocalArrival]
    ) -> None:
        """`silent`: those that have not spoken, this one among them."""
        from holdfast.host.reach.local_stream import LocalCarrier

        self._links, self._link, self._silent = links, None, silent
        self._carrier = LocalCarrier(sock, self._on_record, self.end, self._on_room)
        self._timer = asyncio.get_running_loop().call_later(HOST_LINK_GREETING_S, self.end)

    _link: ArrivingLink | None

    def _on_record(self, record: bytes) -> None:
        from holdfast.wire.stream_opening import read_opening

        try:
            if self._link is None:
                self._spoke()
                opening, message = read_opening(record)
                self._link = self._links.answer(opening.ticket, message, self._carrier)
            else:
                self._link.receive(record)
        except HoldfastError as error:
            log.info("a link from another host of this machine: %s", error.message)
            self.end()

    def _spoke(self) -> None:
        self._timer.cancel()
        if self in self._silent:
            self._silent.remove(self)

    def end(self) -> None:
        self._spoke()
        if self._link is None:  # a stranger: nothing that was said to it needs to arrive
            self._carrier.drop()
        else:
            self._carrier.close()
        if self._link is not None:
            self._link.lost()

    def _on_room(self) -> None:
        if self._link is not None:
            self._link.room()
