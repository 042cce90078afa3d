"""Events of one session or of all, as a stream that goes on after a lost connection.

Several streams share one connection. Each asks the host anew when it begins, which tells the
present state to all of them; so a state that is told twice is given once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from holdfast.model.errors import NoSuchSession
from holdfast.sdk import events as ev
from holdfast.sdk.aio.link import HostLink
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

_WAITING_MAX = 1024  # events for a reader that is slow; then the oldest go, and it is told
_REMEMBERED = 64  # events about turns, and ends, to know one that comes a second time


class EventStream:
    """One reader of events. `session`: an id, or "" for all."""

    def __init__(self, link: HostLink, session: str) -> None:
        self._link, self._session = link, session
        self._came = asyncio.Event()
        self._waiting: deque[m.Message] = deque()
        self._dropped = 0
        self._lost = False
        self._states: dict[str, tuple[object, ...]] = {}  # last told, by session
        self._over: deque[str] = deque(maxlen=_REMEMBERED)  # sessions whose end was told
        self._told: deque[tuple[object, ...]] = deque(maxlen=_REMEMBERED)

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """Ends with the session's end, when it is of one session."""
        self._link.listen(self._heard)
        try:
            again = False
            while True:
                self._lost = False
                await self._link.watch(self._session)
                if again:
                    yield ev.Dropped("", None)
                    for event in await self._ended_meanwhile():
                        yield event
                while not self._lost:
                    for event in self._take():
                        yield event
                        if self._is_last(event):
                            return
                    await self._came.wait()
                    self._came.clear()
                again = True
        finally:
            self._link.listen_no_more(self._heard)

    def _is_last(self, event: ev.Event) -> bool:
        return isinstance(event, ev.Ended) and bool(self._session)

    def _heard(self, message: m.Message | None) -> None:
        if message is None:
            self._lost = True
        elif self._session and getattr(message, "session", self._session) != self._session:
            return
        elif len(self._waiting) >= _WAITING_MAX:
            self._dropped += 1
            self._waiting.popleft()
            self._waiting.append(message)
        else:
            self._waiting.append(message)
        self._came.set()

    def _take(self) -> list[ev.Event]:
        events: list[ev.Event] = []
        if self._dropped:
            events.append(ev.Dropped("", self._dropped))
            self._dropped = 0
        while self._waiting:
            event = self._event(self._waiting.popleft())
            if event is not None:
                events.append(event)
        return events

    async def _ended_meanwhile(self) -> list[ev.Event]:
        """Sessions that lived when the connection was lost, and do not any more: of these the host
        tells nothing by itself. (A session that is watched alone is told of.)"""
        if self._session:
            return []
        alive = (await self._link.ask(m.ListSessions(0), m.Sessions)).sessions
        told: list[ev.Event | None] = []
        for gone in set(self._states) - {info.id for info in alive}:
            try:
                info = (await self._link.ask(m.Show(0, gone), m.Shown)).info
            except NoSuchSession:
                self._states.pop(gone, None)
                continue
            at, line, ending = info.ended_at or info.created_at, info.waiting_line, info.ending
            told.append(self._state(m.StateEvent(info.id, info.name, info.state, at, line, ending)))
        return [event for event in told if event is not None]

    # -- messages as events ---------------------------------------------------------------------

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
            case m.EventsDropped(count=count):
                return ev.Dropped("", count)
        return None

    def _state(self, told: m.StateEvent) -> ev.Event | None:
        state = (told.state, told.waiting_line, told.ending)
        if self._states.get(told.session) == state:
            return None
        if told.ending is not None:
            self._states.pop(told.session, None)
            if told.session in self._over:
                return None
            self._over.append(told.session)
            return ev.Ended(told.session, told.name, told.ending, told.at)
        self._states[told.session] = state
        return ev.StateChanged(told.session, told.name, told.state, told.at, told.waiting_line)

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
        """Through a relay one connection of ours is several to the host, each told by itself."""
        key = (what, told.session, told.at, getattr(told, "actor", ""))
        if key in self._told:
            return False
        self._told.append(key)
        return True
