"""The hosts of another relay, for operators of this one. To a stream they look like one more host.
Each of their broadcasts comes over the link once, and is fanned out to the subscribers here.

An answer is handled as it arrives, never by a task that runs later: the next message may already be
about the stream or subscription that the answer opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.model.errors import HostDown, NotPermitted, ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.relay.peer_link import PeerLink
from holdfast.relay.streams import RelayStream
from holdfast.relay.subscriptions import Subscribers
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


class PeerSubscribers(Subscribers):
    """The subscribers at this relay of a session at another."""

    __slots__ = ("_hosts", "key")

    def __init__(
        self, session: SessionId, epoch: int, hosts: PeerHosts, key: bytes, window: int
    ) -> None:
        super().__init__(session, epoch, window)
        self._hosts, self.key = hosts, key

    def want(self, wanted: bool) -> None:
        """The first subscriber joined through the other relay; the last one leaves it."""
        if not wanted:
            self._hosts.leave(self)

    def report(self, taken: int) -> None:
        self._hosts.outbox.say(Taken(self.session, taken))

    def gap(self, first: int, last: int) -> None:
        self.last = last
        for subscription in self.subscriptions.values():
            subscription.operator.outbox.gap(subscription, first, last)


class _Joining:
    """Operators that wait to subscribe to a session, and the host that admitted them."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.waiting: list[tuple[OperatorEnd, int, RelayStream]] = []


class PeerHosts:
    """The hosts of one relay, while our link to it lasts."""

    is_peer = True

    def __init__(self, relay: Relay, link: PeerLink) -> None:
        self._relay, self.link, self.outbox = relay, link, link.outbox
        self.streams: dict[int, RelayStream] = {}  # by the other relay's numbers
        self.sessions: dict[SessionId, PeerSubscribers] = {}  # with subscribers here
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
                if subscribers := self.sessions.get(message.session):
                    subscribers.gap(message.first, message.last)
            case SessionGone():
                if subscribers := self.sessions.pop(message.session, None):
                    subscribers.end(message.why)
            case Admit():
                if stream := self.streams.get(message.stream):
                    stream.operator.admit(message.session, stream)
            case Reached() | PeerJoined() | RelayFailed():
                if answered := self._answers.pop(message.id, None):
                    answered(message)
            case _:
                raise ProtocolViolation(
                    f"a relay may not send `{message.tag}` in this direction of a link"
                )

    def _broadcast(self, message: Broadcast) -> None:
        subscribers = self.sessions.get(message.session)
        if subscribers is not None:
            if message.seq <= subscribers.last:
                raise ProtocolViolation("the numbers of broadcasts must rise")
            subscribers.broadcast(message)

    def _ask(self, answered: Callable[[Answer | None], None]) -> int:
        self._last += 1
        self._answers[self._last] = answered
        return self._last

    # -- streams ------------------------------------------------------------------------------

    def reach(self, operator: OperatorEnd, request: Open) -> None:
        """Open a stream for this operator, which gets the answer."""
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
        """Subscribe an operator that was admitted at this stream."""
        session = request.session
        subscribers, joining = self.sessions.get(session), self._joining.get(session)
        known = subscribers or joining
        if known is not None and known.key != stream.key:
            raise NotPermitted("the host that admitted you does not have this session")
        if subscribers is not None:
            self._subscribed(operator, request.id, subscribers)
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
        subscribers = PeerSubscribers(session, answer.epoch, self, joining.key, window)
        self.sessions[session] = subscribers
        for operator, request, stream in joining.waiting:
            if operator.admitted.get(session) is not stream:
                operator.outbox.say(_refusal(request, None))
            elif session not in operator.joining:  # it unsubscribed while it waited
                operator.outbox.say(Subscribed(request, subscribers.epoch))
            else:
                self._subscribed(operator, request, subscribers)
        for operator, _, _ in joining.waiting:
            operator.joining.discard(session)
        if not subscribers.subscriptions:
            self.leave(subscribers)

    def _subscribed(
        self, operator: OperatorEnd, request: int, subscribers: PeerSubscribers
    ) -> None:
        operator.subscribed[subscribers.session] = subscribers
        operator.outbox.say(Subscribed(request, subscribers.epoch))
        subscribers.join(operator)

    def leave(self, subscribers: PeerSubscribers) -> None:
        if self.sessions.get(subscribers.session) is subscribers:
            del self.sessions[subscribers.session]
            self.outbox.say(PeerLeave(subscribers.session))

    # -- the end ------------------------------------------------------------------------------

    def lost(self) -> None:
        """The link is closed: operators have to open their streams again."""
        for subscribers in list(self.sessions.values()):
            subscribers.end(Why.HOST_GONE)
        self.sessions.clear()
        for stream in list(self.streams.values()):
            self._relay.streams.close(stream, Why.HOST_GONE, but=self)
        answers, self._answers = self._answers, {}
        for answered in answers.values():
            answered(None)


def _refusal(request: int, answer: Answer | None) -> RelayFailed:
    if isinstance(answer, RelayFailed):
        return answer.replace(id=request)
    lost = HostDown("the link to this host's relay was lost", hint="try again")
    return RelayFailed(request, lost.code, lost.message, lost.hint)
