"""Everybody who is connected: accepting, greeting, who reads and watches which session, leaving."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.proc.peer import NotServedError, OwnTraces
from holdfast.core import events as ev
from holdfast.core.access import inside_rules
from holdfast.core.access.user_quotas import UserQuotas
from holdfast.core.attachments import Seat
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.admission import Admission
from holdfast.host.access.rights_notices import RightsNotices
from holdfast.host.clock import now
from holdfast.host.connection.forwarding import Forwarding
from holdfast.host.connection.from_inside import inside_of
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.connection.output_channels import (
    OutputChannel,
    OutputSource,
    ParkedChannel,
    ViewChannel,
)
from holdfast.model.actor import Actor
from holdfast.model.errors import HoldfastError, LimitReached, NotPermitted, SessionElsewhere
from holdfast.model.ids import ActorId, OperatorId, SessionId
from holdfast.model.inside import Inside
from holdfast.model.limits import OPERATORS_MAX, UNPLACED_MAX, UNPLACED_S
from holdfast.model.state import SessionState
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import ProgressEvent
from holdfast.wire.messages.forward import Carried

if TYPE_CHECKING:
    from holdfast.core.session import SessionMachine
    from holdfast.host.connection.request_table import Reply
    from holdfast.host.session.parcel import SessionSpec
    from holdfast.host.session.state_watch import StateWatch
    from holdfast.host.session_store import Stored

log = logging.getLogger(__name__)

_ACCEPT_RETRY_S = 0.5
_PLACE_AGAIN_S = 0.02  # a session is started in less; nothing tells that one will never be served


class AttendedSession(OutputSource, Protocol):
    """A live session, as far as its operators hear of it."""

    spec: SessionSpec
    core: SessionMachine
    watching: StateWatch

    def state_event(self, state: SessionState) -> m.StateEvent: ...

    def handle(self, event: ev.SessionEvent) -> object: ...


class AttendedSessions(Protocol):
    """The live sessions, and who may see them."""

    @property
    def live(self) -> Mapping[SessionId, AttendedSession]: ...

    def may_see(self, actor: Actor, found: AttendedSession | Stored) -> bool: ...


class Operators:
    """Of one host."""

    def __init__(
        self,
        listener: socket.socket,
        registry: AttendedSessions,
        actors: ActorBook,
        admission: Admission,
        notices: RightsNotices,
        forwarding: Forwarding,
        host_key: bytes,
        quotas: UserQuotas,
        own: OwnTraces,
    ) -> None:
        # Set when the handlers are there, which need this.
        self.answer: Callable[[OperatorConnection, m.Request], Reply]
        self.on_link: Callable[[socket.socket], None] = socket.socket.close  # the same
        self._listener, self._registry, self._actors = listener, registry, actors
        self._admission, self._notices, self._forwarding = admission, notices, forwarding
        self._host_key, self._quotas, self._own = host_key, quotas, own
        self._unplaced: dict[socket.socket, asyncio.TimerHandle] = {}  # see _place
        self._connected: dict[OperatorConnection, None] = {}  # the oldest first
        self.came = 0  # connections since this daemon started

    # -- coming and going ---------------------------------------------------------------------

    def listen(self) -> None:
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def connected(self) -> int:
        return len(self._connected)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)
        for sock, timer in self._unplaced.items():
            timer.cancel()
            sock.close()
        for operator in list(self._connected):
            operator.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Out of descriptors, most likely: clients wait a moment, and we do not spin.
            log.error("cannot accept: %s", error)
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener)
            loop.call_later(_ACCEPT_RETRY_S, loop.add_reader, self._listener, self._accept)
            return
        self._place(sock, asyncio.get_running_loop().time() + UNPLACED_S)

    def _place(self, sock: socket.socket, until: float) -> None:
        """Find out where the peer runs. One in a session that is not known, which may be starting,
        waits: outside of it, it would have the rights of its unix user."""
        self._unplaced.pop(sock, None)
        inside, refusal = None, None
        try:
            inside = inside_of(sock, self._registry.live, self._own)
        except NotServedError:
            loop = asyncio.get_running_loop()
            if loop.time() < until and len(self._unplaced) < UNPLACED_MAX:
                timer = loop.call_later(_PLACE_AGAIN_S, self._place, sock, until)
                self._unplaced[sock] = timer
                return
            refusal = NotPermitted(
                "the session that this runs in is not served by this host now",
                hint="run it in a terminal outside; the host's log says why",
            )
        except NotPermitted as error:
            refusal = error
        operator = OperatorConnection(self, sock, inside=inside)
        if operator.uid not in (0, os.getuid()) and os.getuid() != 0:
            operator.close()  # the socket's mode forbids it already
        elif refusal is not None:
            operator.refuse(refusal)
        else:
            self.add(operator)

    def add(self, operator: OperatorConnection) -> None:
        """From this machine, or through a relay."""
        self.came += 1
        if operator.is_trusted and len(self._connected) >= OPERATORS_MAX:
            self._make_room()
        own = sum(each.user == operator.user for each in self._connected)
        others = sum(not each.is_trusted for each in self._connected)
        total = len(self._connected)
        self._connected[operator] = None
        try:
            self._quotas.check_connection(own, others, total, trusted=operator.is_trusted)
        except LimitReached as error:
            operator.refuse(error)

    def _make_room(self) -> None:
        """For one of the host's own: whoever has said nothing for longest goes."""
        for oldest in self._connected:
            if not oldest.has_greeted:
                oldest.refuse(LimitReached("this host needed the place", hint="connect again"))
                oldest.close()
                return

    def closed(self, operator: OperatorConnection) -> None:
        """A connection ended, after its channels were closed."""
        self._connected.pop(operator, None)
        self._forwarding.operator_left(operator)
        for used in tuple(operator.sessions_used):
            used.connection_closed(operator)
        poorer = self._admission.withdraw(operator.connection)
        # Nobody is left to act by what it presented, unless the actor has another connection.
        if poorer is not None and any(each.acts_as(poorer) for each in self._connected):
            self._notices.grants_changed()
        if operator.watches:
            for live in self._registry.live.values():
                self.update_watching(live)

    # -- for one connection -------------------------------------------------------------------

    def local_actor(self, uid: int, inside: Inside | None) -> Actor:
        own = self._actors.of_user(uid)
        first = None if inside is None else inside_rules.set_off_by(inside)
        return own if first is None else inside_rules.acts_as(own, self._actors.get(first))

    def judge_inside(self, subject: ActorId | None) -> None:
        """The rights of this actor have changed, or of several: a connection from inside that is
        held to them besides its own is closed. Its client comes back, and is judged again."""
        for operator in list(self._connected):
            if operator.inside is None or operator.id is None:
                continue
            others = inside_rules.others_behind(operator.inside, operator.actor.id, sensitive=False)
            if others and (subject is None or subject in others):
                operator.refuse(
                    NotPermitted(
                        "the rights of an actor behind this connection changed", hint="try again"
                    )
                )

    def welcome(self, operator: OperatorConnection) -> m.Welcome:
        return m.Welcome(
            m.PROTOCOL_VERSION,
            socket.gethostname(),
            os.getpid(),
            host_key=self._host_key,
            challenge=operator.challenge,
            actor=operator.actor.name,
        )

    def open_link(self, sock: socket.socket) -> None:
        self.on_link(sock)

    def carry(self, operator: OperatorConnection, message: Carried) -> None:
        self._forwarding.take(operator, message)

    # -- readers ------------------------------------------------------------------------------

    def open_channel(self, operator: OperatorConnection, channel: OutputChannel) -> None:
        operator.channels[channel.number] = channel
        live = channel.live
        if live is not None:
            live.presence.channel_opened(operator)

    def close_channel(self, operator: OperatorConnection, channel: OutputChannel) -> None:
        """A channel ended, by either side."""
        if operator.channels.pop(channel.number, None) is None:
            return
        live = channel.live
        if live is None:
            return
        if operator.remote is not None and live.ending is None:  # else it still reads the rest
            operator.remote.left(channel.number)
        live.presence.channel_closed(operator)
        if operator.id is not None and not any(_having(live, operator.id, channel.number)):
            live.presence.record_detach(operator, channel.number)
        if live.ending is not None and not live.presence.attached():
            live.closing.close_when_read()

    def dismiss(
        self, live: AttendedSession, who: OperatorId, channel: int, *, code: str = "", by: str = ""
    ) -> None:
        """This operator lost the right to observe, or was detached: its channel is closed, and it
        learns why."""
        for operator, found in list(_having(live, who, channel)):
            operator.event(m.Dismissed(channel, code, by))
            self.close_channel(operator, found)
            if operator.remote is not None:
                operator.remote.judge()

    def dismiss_all(self, live: AttendedSession, why: HoldfastError) -> None:
        """Close every channel of this session, and say why."""
        for operator in live.presence.attached():
            for channel in tuple(operator.channels.values()):
                if channel.live is not live:
                    continue
                if channel.number >= 0:
                    operator.event(m.Dismissed(channel.number, why.code))
                else:
                    operator.fail(-1 - channel.number, why)
                self.close_channel(operator, channel)

    def dismiss_remote(self, live: AttendedSession, why: HoldfastError) -> None:
        """The same, of those that came through a relay."""
        for operator in live.presence.attached():
            for channel in tuple(operator.channels.values()):
                if channel.live is live and operator.remote is not None and channel.number >= 0:
                    operator.event(m.Dismissed(channel.number, why.code))
                    self.close_channel(operator, channel)

    def moved_away(self, live: AttendedSession, to: str) -> None:
        """It goes on at another host: whoever is here learns where."""
        moved = moved_to(to)
        for operator in live.presence.attached():
            for channel in tuple(operator.channels.values()):
                if channel.live is not live:
                    continue
                if channel.number >= 0:
                    operator.event(m.Dismissed(channel.number, moved.code, to))
                else:
                    operator.fail(-1 - channel.number, moved)
                self.close_channel(operator, channel)

    def park(self, live: AttendedSession) -> None:
        """It falls asleep: whoever looks at it from this machine waits here until it is restored.
        A channel through a relay is one of an incarnation, and ends with it."""
        seats = live.core.attachments
        for seat in seats.seats():
            size = seats.size_at(seat.operator, seat.channel)
            for operator, channel in list(_having(live, seat.operator, seat.channel)):
                if operator.remote is None and isinstance(channel, ViewChannel):
                    self.close_channel(operator, channel)
                    parked = ParkedChannel(live.spec.id, seat, size)
                    operator.channels[channel.number] = parked

    def follow(self, live: AttendedSession) -> None:
        """It was restored: those that waited see it again, if they still may."""
        for operator in list(self._connected):
            for parked in tuple(operator.channels.values()):
                if isinstance(parked, ParkedChannel) and parked.session == live.spec.id:
                    del operator.channels[parked.number]
                    self._attach_again(operator, live, parked)

    def _attach_again(
        self, operator: OperatorConnection, live: AttendedSession, parked: ParkedChannel
    ) -> None:
        seat = parked.seat.replace(actor=operator.actor.id, since=time.time())
        try:
            live.handle(ev.ChannelOpened(seat.actor, now(), seat, parked.size))
        except HoldfastError as refusal:
            operator.event(m.Dismissed(parked.number, refusal.code))
            return
        live.presence.record_attach(operator, seat.observe, live.ring.head)
        self.open_channel(operator, ViewChannel(live, parked.number, None, scrollback=False))
        if live.core.attachments.answerer == seat:
            operator.event(m.Answering(parked.number, True))
        operator.pump()

    def tell_answerer(self, live: AttendedSession, seat: Seat | None) -> None:
        for operator in live.presence.attached():
            for channel in tuple(operator.channels.values()):  # a broken one may leave meanwhile
                if channel.live is live and channel.number >= 0:
                    here = operator.id, channel.number
                    answers = seat is not None and (seat.operator, seat.channel) == here
                    operator.event(m.Answering(channel.number, answers))

    def announce(self, live: AttendedSession) -> None:
        """How many are attached, and the size."""
        seats = live.core.attachments
        event = m.OperatorEvent(live.spec.id, seats.count(), seats.observers(), live.size)
        for operator in {*live.presence.attached(), *self.watchers(live)}:
            operator.event(event)

    # -- watchers -----------------------------------------------------------------------------

    def watch(self, operator: OperatorConnection, session: str) -> None:
        operator.watches.add(session)
        for live in self._registry.live.values():
            self.update_watching(live)

    def watchers(self, live: AttendedSession) -> list[OperatorConnection]:
        return [
            operator
            for operator in self._connected
            if operator.watches & {"", live.spec.id}
            and self._registry.may_see(operator.actor, live)
            and self.others_may_see(operator, live)
        ]

    def others_may_see(self, operator: OperatorConnection, found: AttendedSession | Stored) -> bool:
        """From inside: whether all the actors behind the connection may."""
        if operator.inside is None:
            return True
        others = inside_rules.others_behind(operator.inside, operator.actor.id, sensitive=False)
        behind = [self._actors.get(each) for each in others]
        return all(each is not None and self._registry.may_see(each, found) for each in behind)

    def tell_progress(self, event: ProgressEvent, found: AttendedSession | Stored) -> None:
        """To whoever waits for it, watches the session or is attached there, awake or asleep."""
        every = {"", event.session}
        for operator in list(self._connected):
            here = any(_shows(each, found, event) for each in operator.channels.values())
            if not (here or every & operator.watches or every.intersection(operator.waits_for)):
                continue
            may_see = self._registry.may_see(operator.actor, found)
            if may_see and self.others_may_see(operator, found):
                operator.event(event)

    def update_watching(self, live: AttendedSession) -> None:
        live.watching.set_watched(bool(self.watchers(live)))

    def state_changed(self, live: AttendedSession, state: SessionState) -> None:
        event = live.state_event(state)
        for operator in self.watchers(live):
            operator.event(event)


def _shows(channel: OutputChannel, found: AttendedSession | Stored, event: ProgressEvent) -> bool:
    """Whether it is a view of this session, awake or asleep."""
    if isinstance(channel, ParkedChannel):
        return channel.session == event.session
    return channel.live is found


def moved_to(host: str) -> SessionElsewhere:
    """What is said of a session that went there."""
    return SessionElsewhere(
        f"the session has moved to {host}", hint=f"`hold attach {host}/NAME` attaches to it there"
    )


def _having(
    live: OutputSource, who: OperatorId, channel: int
) -> Iterator[tuple[OperatorConnection, OutputChannel]]:
    """The connections by which this operator has this channel: one that came back may still have
    its old one, and its seat stays until the last of them closes it."""
    for operator in live.presence.attached():
        found = operator.channels.get(channel)
        if operator.id == who and found is not None and found.live is live:
            yield operator, found
