"""Who is at a session: operators with channels, and connections that used it without one.

It records who attaches and detaches, with how long an operator was away, and says who hears of what
happens here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.core import events as ev
from holdfast.core.attachments import Attachments
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.actor import Actor
from holdfast.model.ids import OperatorId
from holdfast.model.limits import INTAKE_OPERATORS


class Presence:
    """Of one session."""

    def __init__(
        self,
        attachments: Attachments,
        record: SessionRecord,
        *,
        standing: Callable[[], tuple[int, int, int]],
        handle: Callable[[ev.ChannelClosed | ev.ActorDisconnected], object],
        looked: Callable[[str], None],
        is_closed: Callable[[], bool],
        may_see: Callable[[Actor], bool],
        watchers: Callable[[], Iterable[OperatorConnection]],
        recognise: Callable[[OperatorConnection], None],
    ) -> None:
        """`recognise`: by what it was at the host that the session came from; `standing`: the main
        process, how far its output goes and since where it is held; `looked`: this actor saw
        everything until now."""
        self._standing, self.recognise = standing, recognise
        self._attachments, self._journal = attachments, record
        self._handle, self._looked, self._is_closed = handle, looked, is_closed
        self._may_see, self._watchers = may_see, watchers
        self._channels: dict[OperatorConnection, int] = {}  # how many each has
        self._connections: set[OperatorConnection] = set()  # that used it and are still open
        self._left_at: dict[OperatorId, float] = {}

    def attached(self) -> tuple[OperatorConnection, ...]:
        """Those who have channels here."""
        return tuple(self._channels)

    def recipients(self) -> set[OperatorConnection]:
        """Everybody who hears of what happens here."""
        acted = (each for each in self._connections if self._may_see(each.actor))
        return {*self._channels, *acted, *self._watchers()}

    def pump(self) -> None:
        """There is more output for those who are attached."""
        for operator in tuple(self._channels):
            operator.pump()

    # -- coming and going -----------------------------------------------------------------------

    def note_connection(self, operator: OperatorConnection) -> None:
        """This connection used the session: when its actor's last one closes, the turn is free."""
        self._connections.add(operator)
        self.recognise(operator)
        operator.sessions_used.add(self)

    def channel_opened(self, operator: OperatorConnection) -> None:
        self._channels[operator] = self._channels.get(operator, 0) + 1
        self.note_connection(operator)

    def channel_closed(self, operator: OperatorConnection) -> None:
        self._channels[operator] -= 1
        if not self._channels[operator]:
            del self._channels[operator]

    def record_attach(self, operator: OperatorConnection, observe: bool, offset: int) -> None:
        """A channel is open: recorded with how long its operator had been away (M1). A client that
        repaints opens another channel; it had not been away at all."""
        assert operator.id is not None
        if self._attachments.seats_of(operator.id) > 1:
            return
        gap = max(0.0, now() - self._left_at.pop(operator.id, now()))
        pid, head, tail = self._standing()
        body = entries.AttachedEntry(
            operator.id, operator.client, observe, offset, gap, pid, head - tail, tail
        )
        self._journal.record_best_effort(operator.actor.id, body)

    def record_detach(self, operator: OperatorConnection, channel: int) -> None:
        """The last connection by which this operator had this channel has closed it."""
        assert operator.id is not None
        seats, actor = self._attachments, operator.actor.id
        if not self._is_closed():
            if seats.has(operator.id, channel) and seats.seats_of(operator.id) == 1:
                self._journal.record_best_effort(actor, entries.DetachedEntry(operator.id))
                self._note_left(operator.id)
            # Its operator looked until now, if this was its last channel with a terminal. To read
            # bytes is no look: programs poll like that, and show nobody.
            own = (seat for seat in seats.seats() if seat.operator == operator.id)
            if [seat.channel for seat in own if not seat.raw] == [channel]:
                self._looked(actor)
        self._handle(ev.ChannelClosed(actor, now(), operator.id, channel))

    def _note_left(self, operator: OperatorId) -> None:
        self._left_at[operator] = now()
        if len(self._left_at) > INTAKE_OPERATORS:
            del self._left_at[next(iter(self._left_at))]

    def connection_closed(self, operator: OperatorConnection) -> None:
        self._connections.discard(operator)
        actor = operator.actor.id
        if self._is_closed() or any(other.actor.id == actor for other in self._connections):
            return
        self._handle(ev.ActorDisconnected(actor, now()))
