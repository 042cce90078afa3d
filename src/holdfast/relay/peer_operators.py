"""The operators of another relay, at hosts of this one. To hosts they look like one operator with
many streams; the other relay knows which of its operators a stream belongs to.

The other relay enforces admissions, and gets each `admit` of a host: relays of one cluster are run
by the same people. None of them can read what the host sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model.errors import (
    HoldfastError,
    HostDown,
    LimitReached,
    NoSuchSession,
    NotPermitted,
    ProtocolViolation,
)
from holdfast.model.ids import SessionId
from holdfast.relay.peer_link import PeerLink
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import RoutedIncarnation, Subscribers
from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import (
    Admit,
    Credit,
    RelayFailed,
    StreamClosed,
    StreamData,
    Taken,
    Why,
)
from holdfast.wire.relay_peer_messages import PeerJoin, PeerJoined, PeerLeave, PeerReach, Reached

if TYPE_CHECKING:
    from holdfast.relay.host_end import HostEnd
    from holdfast.relay.rendezvous import Relay


class PeerOperators:
    """The operators of one relay, while its link lasts."""

    is_peer = True

    def __init__(self, relay: Relay, link: PeerLink) -> None:
        self._relay, self.link, self.outbox = relay, link, link.outbox
        self.streams: dict[int, RelayStream] = {}
        self.subscribed: dict[SessionId, Subscribers] = {}

    def handle(self, message: Message) -> None:
        match message:
            case StreamData():
                self._relay.streams.data(self, message)
            case Credit():
                self._relay.streams.credit(self, message)
            case StreamClosed():
                self._relay.streams.close_by(self, message.stream, message.why)
            case Taken():
                if incarnation := self.subscribed.get(message.session):
                    incarnation.took(message.seq, 0)
            case PeerLeave():
                if incarnation := self.subscribed.pop(message.session, None):
                    incarnation.leave(self)
            case PeerReach() | PeerJoin():
                self._request(message)
            case _:
                raise ProtocolViolation(
                    f"a relay may not send `{message.tag}` in this direction of a link"
                )

    def _request(self, message: PeerReach | PeerJoin) -> None:
        try:
            if isinstance(message, PeerReach):
                self._reach(message)
            else:
                self._join(message)
        except HoldfastError as error:
            self.outbox.say_after_broadcasts(
                RelayFailed(message.id, error.code, error.message, error.hint)
            )

    def _reach(self, message: PeerReach) -> None:
        host, incarnation = find(self._relay, message.host, message.session)
        stream = self._relay.streams.open(self, host, incarnation, message.window)
        said = incarnation.announced if incarnation is not None else None
        self.outbox.say(
            Reached(
                message.id,
                stream.number,
                self._relay.bounds.stream_window_bytes,
                host.key,
                said.epoch if said else 0,
                host.static,
                host.binding,
                said.key if said else b"",
                said.signature if said else b"",
            )
        )

    def _join(self, message: PeerJoin) -> None:
        incarnation = self._relay.incarnations.get(message.session)
        if incarnation is None or incarnation.host.key != message.host:
            raise NotPermitted("the host that admitted you does not have this session")
        self.subscribed[message.session] = incarnation
        # In the broadcast lane, so that no broadcast of an earlier incarnation comes after it.
        self.outbox.say_after_broadcasts(PeerJoined(message.id, incarnation.epoch))
        incarnation.join(self)

    def admit(self, session: SessionId, stream: RelayStream) -> None:
        self.outbox.say(Admit(stream.number, session))

    def lose_admissions(self, stream: RelayStream, why: Why) -> None:
        """The other relay gets the close of the stream and ends the admissions itself."""


def find(
    relay: Relay, key: bytes, session: SessionId | None
) -> tuple[HostEnd, RoutedIncarnation | None]:
    """A host connected here, by its key or by a session; raises if there is none."""
    if relay.draining:
        raise LimitReached("this relay is stopping", hint="use another one")
    if session is not None:
        incarnation = relay.incarnations.get(session)
        if incarnation is None:
            raise NoSuchSession("no connected host has this session")
        host = incarnation.host
    else:
        incarnation, found = None, relay.hosts.get(key)
        if found is None:
            raise HostDown("this host is not connected", hint="try another relay, or later")
        host = found
    if len(host.streams) >= relay.bounds.host_streams:
        raise LimitReached("that host has reached the limit of open streams")
    return host, incarnation
