"""Events of one session or of all, as the SDK gives them (`sdk/events.py`).

Several streams share one connection. Each asks the host when it begins, which tells the present
state to all of them; an event that comes twice is given once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator

from holdfast.sdk import events as ev
from holdfast.sdk.aio.driver import AsyncHostClient
from holdfast.sdk.client_core.event_reader import EventReader
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from holdfast.wire.messages.checkpoints import ProgressEvent
from holdfast.wire.messages.moving import MigrationEvent

_REMEMBERED = 64  # events about turns, to know one that comes a second time


class EventStream:
    """One reader of events. `session`: an id, or "" for all."""

    def __init__(self, link: AsyncHostClient, session: str) -> None:
        self._reader = EventReader(link, session)
        self._session = session
        self._told: deque[tuple[object, ...]] = deque(maxlen=_REMEMBERED)

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """Ends with the session's end, when it is of one session."""
        try:
            while True:
                event = self._event(await self._reader.next())
                if event is None:
                    continue
                yield event
                if self._session and isinstance(event, ev.Ended):
                    return
        finally:
            self._reader.close()

    def _event(self, message: m.Message) -> ev.Event | None:
        match message:
            case m.StateEvent():
                return self._state(message)
            case turn_messages.TurnMessage():
                return self._turn(message)
            case turn_messages.TurnLostMessage(session=session, by=by, at=at, reason=reason):
                return ev.TurnLost(session, by, at, reason) if self._new("lost", message) else None
            case turn_messages.HandedOver(session=session, handoff=handoff):
                return ev.TurnHandedOver(session, handoff)
            case m.OperatorEvent(session=session, operators=here, observers=looking, size=size):
                return ev.OperatorsChanged(session, here, looking, size)
            case m.RehomedEvent():
                fields = (getattr(message, field) for field in m.RehomedEvent._fields)
                return ev.Rehomed(*fields)
            case MigrationEvent():
                fields = (getattr(message, field) for field in MigrationEvent._fields)
                return ev.Migrated(*fields)
            case ProgressEvent():
                return ev.Progressed(*(getattr(message, field) for field in ProgressEvent._fields))
            case m.ReapEvent():
                fields = (getattr(message, field) for field in m.ReapEvent._fields)
                return ev.ReapNotice(*fields)
            case m.EventsDropped(count=count):
                return ev.Dropped("", count or None)
        return None

    def _state(self, told: m.StateEvent) -> ev.Event:
        if told.ending is not None:
            kind = ev.Ended if told.ending.lost is None else ev.Lost
            return kind(told.session, told.name, told.ending, told.at)
        return ev.StateChanged(
            told.session, told.name, told.state, told.at, told.waiting_line, told.full_screen
        )

    def _turn(self, told: turn_messages.TurnMessage) -> ev.Event | None:
        if not self._new(told.step, told):
            return None
        waits = [each.name for each in told.turn.queue]
        if told.step == "request" and told.actor in waits:  # else it came at once
            return ev.TurnRequested(
                told.session, told.at, told.actor, told.reason, told.turn, told.yours
            )
        return ev.TurnChanged(
            told.session, told.step, told.at, told.actor, told.turn, told.yours, told.reason
        )

    def _new(
        self, what: str, told: turn_messages.TurnMessage | turn_messages.TurnLostMessage
    ) -> bool:
        """Through a relay one connection of ours is several to the host, each with its events."""
        key = (what, told.session, told.at, getattr(told, "actor", ""))
        if key in self._told:
            return False
        self._told.append(key)
        return True
