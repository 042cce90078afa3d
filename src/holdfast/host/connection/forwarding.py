"""Connections that operators have to ports of sessions (`hold forward`): asked for, judged by the
core, led to a process of the session's own tree, recorded, cut when the right to them ends.

Their bytes are one channel among the operator's others, from which its connection pulls. They live
no longer than the operator's connection to this daemon: a new daemon has none, and operators open
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.proc import listening_ports, port_dial
from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.dial.carried_socket import CarriedSocket, Carrier
from holdfast.host.clock import now
from holdfast.journal import entries
from holdfast.model.errors import (
    ConnectionReset,
    HoldfastError,
    InvalidArgument,
    LimitReached,
    SessionHalted,
    from_code,
    session_over,
)
from holdfast.model.limits import (
    FORWARD_ACTOR_CONNECTIONS,
    FORWARD_CONNECTIONS,
    FORWARD_HOST_CONNECTIONS,
    FORWARD_RECORD_S,
)
from holdfast.model.state import Ending
from holdfast.wire.frames import encode
from holdfast.wire.messages import forward as f

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.connection.output_channels import Piece
    from holdfast.host.session.parcel import SessionSpec
    from holdfast.host.session.record import SessionRecord
    from holdfast.model.ids import SessionId
    from holdfast.wire.messages import session as m

_LOOKS = 2  # at processes at once, in threads that others need too
_PORTS = range(1, 1 << 16)
_CHANNEL = 1 << 64  # the channel's number among an operator's: above all that a message can name


class ForwardTarget(Protocol):
    """A live session, as far as its ports can be reached."""

    spec: SessionSpec
    journal: SessionRecord

    @property
    def is_closed(self) -> bool: ...

    @property
    def ending(self) -> Ending | None: ...

    def handle(self, event: ev.ForwardAsked | ev.ForwardLeft) -> object: ...

    def lease_allows(self) -> bool: ...

    def check_not_halted(self, actor: str) -> None: ...


class ForwardedConnection(CarriedSocket):
    """To a port of this session, for this actor."""

    def __init__(
        self, carrier: Carrier, number: int, live: ForwardTarget, actor: str, port: int
    ) -> None:
        super().__init__(carrier, number)
        self.live, self.actor, self.port = live, actor, port

    def may_read(self) -> bool:
        return self.live.lease_allows()  # else it is cut in this moment


class Connections(Carrier):
    """An output channel: all that one operator has open."""

    number, live = _CHANNEL, None
    open: dict[int, ForwardedConnection]  # type: ignore[assignment]

    def next_piece(self) -> Piece | None:
        said = self.next()
        if said is None:
            return None
        connection, word = said
        assert isinstance(connection, ForwardedConnection)
        return [encode(f.message_of(connection.live.spec.id, connection.number, word))]

    def finished(self) -> bool:
        return not self.open


class Forwarding:
    """Of one host."""

    def __init__(self) -> None:
        self._of: dict[OperatorConnection, Connections] = {}
        self._looking = asyncio.Semaphore(_LOOKS)
        self._records: dict[tuple[SessionId, str, int], _Record] = {}

    # -- opening --------------------------------------------------------------------------------

    def open(
        self, operator: OperatorConnection, request: f.Forward, live: ForwardTarget
    ) -> Awaitable[m.Answer]:
        if request.port not in _PORTS or request.number < 0:
            raise InvalidArgument(f"not a port and a number: {request.port}, {request.number}")
        connections = self._of.get(operator)
        if connections is None:
            connections = Connections(operator.pump, partial(self._forget, operator))
        if request.number in connections.open:
            raise InvalidArgument(f"connection {request.number} is open already")
        self._check_room(operator, connections)
        asked = ev.ForwardAsked(
            operator.actor.id, now(), operator.identity, request.number, request.port
        )
        live.handle(asked)
        connection = ForwardedConnection(
            connections, request.number, live, operator.actor.id, request.port
        )
        connections.open[request.number] = connection
        self._of[operator] = connections
        operator.channels[connections.number] = connections
        return self._opened(operator, connection, request.id)

    def _check_room(self, operator: OperatorConnection, connections: Connections) -> None:
        actor = operator.actor.id
        everybody = sum(len(each.open) for each in self._of.values())
        own = sum(len(each.open) for one, each in self._of.items() if one.actor.id == actor)
        for count, most, whose in (
            (len(connections.open), FORWARD_CONNECTIONS, "one client has"),
            (own, FORWARD_ACTOR_CONNECTIONS, f"{operator.actor.name} has"),
            (everybody, FORWARD_HOST_CONNECTIONS, "this host carries"),
        ):
            if count >= most:
                raise LimitReached(
                    f"{whose} {most} connections to ports open, which is the limit",
                    hint="close some; a connection that is kept alive can be used again",
                )

    async def _opened(
        self, operator: OperatorConnection, connection: ForwardedConnection, number: int
    ) -> m.Answer:
        live, way = connection.live, None
        try:
            async with self._looking:
                place, port = live.spec.place, connection.port
                way = await asyncio.to_thread(listening_ports.find, place, port)
            self._go_on(connection)
            process = way.port.process
            self._record(operator, connection, process)
            sock = await port_dial.dial(way)
            try:
                self._go_on(connection)
            except HoldfastError:
                sock.close()
                raise
        except BaseException:
            self._forget(operator, connection)
            raise
        asyncio.get_running_loop().call_soon(connection.begin, sock)  # behind the answer
        shown = f"[{way.address}]" if ":" in way.address else way.address
        return f.Forwarded(
            number, connection.number, f"{shown}:{way.port.number}", way.port.pid, process
        )

    def _go_on(self, connection: ForwardedConnection) -> None:
        """Raise if it was cut or given up while something was awaited."""
        if connection.over is not None:
            raise connection.over
        if connection.done:
            raise ConnectionReset("the connection was given up before it was open")
        connection.live.check_not_halted(connection.actor)

    # -- carrying -------------------------------------------------------------------------------

    def take(self, operator: OperatorConnection, message: f.Carried) -> None:
        """What an operator says of one of its connections."""
        connections = self._of.get(operator)
        connection = connections.open.get(message.number) if connections is not None else None
        if connection is None or not connection.live.lease_allows():
            return
        if isinstance(message, f.ForwardClosed):
            connection.drop()
            self._forget(operator, connection)
            return
        if isinstance(message, f.ForwardData):
            try:
                connection.live.check_not_halted(connection.actor)
            except SessionHalted as error:  # it would wait in the program's socket for the resume
                connection.cut(error)
                return
        connection.take(f.word_of(message))

    # -- the end --------------------------------------------------------------------------------

    def cut(self, live: ForwardTarget, effect: do.CutForward) -> None:
        """Its actor lost the right to it."""
        for operator, connections in list(self._of.items()):
            connection = connections.open.get(effect.number)
            if operator.id == effect.operator and connection and connection.live is live:
                connection.cut(from_code(effect.code, effect.message, ""))

    def operator_left(self, operator: OperatorConnection) -> None:
        """Its connection to this daemon is closed."""
        connections = self._of.pop(operator, None)
        for connection in list(connections.open.values()) if connections is not None else ():
            connection.drop()
            self._leave(operator, connection)

    def over(self, live: ForwardTarget) -> None:
        """The session ended, or this daemon gives it up. What was counted is recorded."""
        for connections in list(self._of.values()):
            for connection in list(connections.open.values()):
                if connection.live is live:
                    connection.cut(session_over("the session", live.ending))
        for key, record in list(self._records.items()):
            if record.live is live:
                record.close()
                del self._records[key]

    def _forget(self, operator: OperatorConnection, connection: CarriedSocket) -> None:
        """Both ends know that it is closed, or it never was open."""
        connections = self._of.get(operator)
        if connections is not None and connections.open.get(connection.number) is connection:
            self._leave(operator, connections.open.pop(connection.number))

    def _leave(self, operator: OperatorConnection, connection: ForwardedConnection) -> None:
        left = ev.ForwardLeft(connection.actor, now(), operator.identity, connection.number)
        if not connection.live.is_closed:
            connection.live.handle(left)

    # -- the record -----------------------------------------------------------------------------

    def _record(
        self, operator: OperatorConnection, connection: ForwardedConnection, process: str
    ) -> None:
        """Raises StorageFailed when it cannot be: then it is not opened."""
        live = connection.live
        key = (live.spec.id, connection.actor, connection.port)
        if key in self._records:
            self._records[key].count(str(operator.id), process)
        else:
            body = entries.ForwardedEntry(str(operator.id), connection.port, process)
            live.journal.record(connection.actor, body)
            self._records[key] = _Record(live, connection.actor, body, self._records, key)


class _Record:
    """Connections of one actor to one port: the first is recorded at once, those of the next while
    are counted and recorded together, so that nobody can fill the disk by opening many."""

    def __init__(
        self,
        live: ForwardTarget,
        actor: str,
        body: entries.ForwardedEntry,
        records: dict[tuple[SessionId, str, int], _Record],
        key: tuple[SessionId, str, int],
    ) -> None:
        self.live, self._actor, self._body = live, actor, body
        self._records, self._key = records, key
        self._count = 0
        self._timer = asyncio.get_running_loop().call_later(FORWARD_RECORD_S, self._due)

    def count(self, operator: str, process: str) -> None:
        if not self._count:
            self._body = self._body.replace(operator=operator, process=process)
        self._count += 1

    def _due(self) -> None:
        if not self._count:
            self._records.pop(self._key, None)
            return
        self._record_count()
        self._timer = asyncio.get_running_loop().call_later(FORWARD_RECORD_S, self._due)

    def _record_count(self) -> None:
        count, self._count = self._count, 0
        if count:
            self.live.journal.happened(self._actor, self._body.replace(count=count))

    def close(self) -> None:
        self._timer.cancel()
        self._record_count()
