"""The hosts of another relay, for operators of this one. To a stream they are one more host. What
one of them broadcasts comes over the link once, and is fanned out here to who subscribed here.

An answer is dealt with as it comes, never by a task that runs later: what the other relay says next
may already be about the stream or the subscription it just gave us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.model.errors import HostDown, NotPermitted, ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.relay.peer_link import PeerLink
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import Audience
from holdfast.wire.messages.base import Answer, Message
from holdfast.wire.relay_messages import (
    Admit,
    Broadcast,
    BroadcastGap,
    Credit,
    Open,
    RelayFailed,
    SessionGone,
    StreamClosed,
    StreamData,
    StreamOpened,
    Subscribe,
    Subscribed,
    Taken,
    Why,
)
from holdfast.wire.relay_peer_messages import PeerJoin, PeerJoined, PeerLeave, PeerReach, Reached

if TYPE_CHECKING:
    from holdfast.relay.operator_end import OperatorEnd
    from holdfast.relay.rendezvous import Relay


class FarAudience(Audience):
    """The part of an audience that is here."""

    __slots__ = ("_hosts", "key")

    def __init__(
        self, session: SessionId, epoch: int, hosts: FarHosts, key: bytes, window: int
    ) -> None:
        super().__init__(session, epoch, window)
        self._hosts, self.key = hosts, key

    def want(self, wanted: bool) -> None:
        """The first one joined by asking the other relay; the last one leaves."""
        if not wanted:
            self._hosts.leave(self)

    def report(self, taken: int) -> None:
        self._hosts.outbox.say(Taken(self.session, taken))

    def gap(self, first: int, last: int) -> None:
        self.last = last
        for subscription in self.subscriptions.values():
            subscription.operator.outbox.gap(subscription, first, last)


class _Joining:
    """Who waits to subscribe to a session, at which host's word."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.waiting: list[tuple[OperatorEnd, int, RelayStream]] = []


class FarHosts:
    """One relay's, as long as our link to it lasts."""

    far = True

    def __init__(self, relay: Relay, link: PeerLink) -> None:
        self._relay, self.link, self.outbox = relay, link, link.outbox
        self.streams: dict[int, RelayStream] = {}  # by the other relay's numbers
        self.sessions: dict[SessionId, FarAudience] = {}  # that somebody here is subscribed to
        self._joining: dict[SessionId, _Joining] = {}
        self._answers: dict[int, Callable[[Answer | None], None]] = {}
        self._last = 0

    def handle(self, message: Message) -> None:
        match message:
            case StreamData():
                self._relay.streams.data(self, message)
            case Credit():
                self._relay.streams.credit(self, message)
            case StreamClosed():
                self._relay.streams.close_by(self, message.stream, message.why)
            case Broadcast():
                self._broadcast(message)
            case BroadcastGap():
                if audience := self.sessions.get(message.session):
                    audience.gap(message.first, message.last)
            case SessionGone():
                if audience := self.sessions.pop(message.session, None):
                    audience.end(message.why)
            case Admit():
                if stream := self.streams.get(message.stream):
                    stream.operator.admit(message.session, stream)
            case Reached() | PeerJoined() | RelayFailed():
                if answered := self._answers.pop(message.id, None):
                    answered(message)
            case _:
                raise ProtocolViolation(f"`{message.tag}` is not for this end of a link")

    def _broadcast(self, message: Broadcast) -> None:
        audience = self.sessions.get(message.session)
        if audience is not None:
            if message.seq <= audience.last:
                raise ProtocolViolation("the numbers of broadcasts rise")
            audience.broadcast(message)

    def _ask(self, answered: Callable[[Answer | None], None]) -> int:
        self._last += 1
        self._answers[self._last] = answered
        return self._last

    # -- streams ------------------------------------------------------------------------------

    def reach(self, operator: OperatorEnd, request: Open) -> None:
        """A stream for this operator, who gets the answer."""
        number = self._ask(lambda answer: self._reached(operator, request.id, answer))
        window = self._relay.bounds.stream_window_bytes
        self.outbox.say(PeerReach(number, request.host, request.session, window))

    def _reached(self, operator: OperatorEnd, request: int, answer: Answer | None) -> None:
        operator.opening -= 1
        if not isinstance(answer, Reached):
            operator.outbox.say(_refusal(request, answer))
            return
        if operator.gone:
            self.outbox.say(StreamClosed(answer.stream, Why.OPERATOR_GONE))
            return
        stream = self._relay.streams.cross(operator, self, answer)
        self._relay.metrics.count("crossings_total")
        operator.outbox.say(
            StreamOpened(
                request,
                stream.number,
                answer.host,
                answer.epoch,
                answer.static,
                answer.binding,
                answer.session_key,
                answer.vouched,
            )
        )

    # -- one to many --------------------------------------------------------------------------

    def subscribe(self, operator: OperatorEnd, request: Subscribe, stream: RelayStream) -> None:
        """For one that was admitted at this stream."""
        session = request.session
        audience, joining = self.sessions.get(session), self._joining.get(session)
        known = audience or joining
        if known is not None and known.key != stream.key:
            raise NotPermitted("the host that admitted you does not have this session")
        if audience is not None:
            self._subscribed(operator, request.id, audience)
            return
        if joining is None:
            joining = self._joining[session] = _Joining(stream.key)
            number = self._ask(lambda answer: self._joined(session, answer))
            self.outbox.say(PeerJoin(number, session, stream.key))
        joining.waiting.append((operator, request.id, stream))
        operator.joining.add(session)

    def _joined(self, session: SessionId, answer: Answer | None) -> None:
        joining = self._joining.pop(session)
        if not isinstance(answer, PeerJoined):
            for operator, request, _ in joining.waiting:
                operator.joining.discard(session)
                operator.outbox.say(_refusal(request, answer))
            return
        window = self._relay.bounds.broadcast_window_bytes
        audience = FarAudience(session, answer.epoch, self, joining.key, window)
        self.sessions[session] = audience
        for operator, request, stream in joining.waiting:
            if operator.admitted.get(session) is not stream:
                operator.outbox.say(_refusal(request, None))
            elif session not in operator.joining:  # it changed its mind while it waited
                operator.outbox.say(Subscribed(request, audience.epoch))
            else:
                self._subscribed(operator, request, audience)
        for operator, _, _ in joining.waiting:
            operator.joining.discard(session)
        if not audience.subscriptions:
            self.leave(audience)

    def _subscribed(self, operator: OperatorEnd, request: int, audience: FarAudience) -> None:
        operator.subscribed[audience.session] = audience
        operator.outbox.say(Subscribed(request, audience.epoch))
        audience.join(operator)

    def leave(self, audience: FarAudience) -> None:
        if self.sessions.get(audience.session) is audience:
            del self.sessions[audience.session]
            self.outbox.say(PeerLeave(audience.session))

    # -- the end ------------------------------------------------------------------------------

    def lost(self) -> None:
        """The link is over: what was on it is for its operators to open again."""
        for audience in list(self.sessions.values()):
            audience.end(Why.HOST_GONE)
        self.sessions.clear()
        for stream in list(self.streams.values()):
            self._relay.streams.close(stream, Why.HOST_GONE, but=self)
        answers, self._answers = self._answers, {}
        for answered in answers.values():
            answered(None)


def _refusal(request: int, answer: Answer | None) -> RelayFailed:
    if isinstance(answer, RelayFailed):
        return answer.replace(id=request)
    lost = HostDown("the way to this host's relay is lost", hint="try again")
    return RelayFailed(request, lost.code, lost.message, lost.hint)
