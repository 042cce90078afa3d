"""Events of one session or of all, across lost connections; and waiting for a state.

The host tells the present state when it is asked to watch, so a state that comes twice is given
once. What happened while there was no connection is not told: a reader learns that something may
be missing, and which sessions ended.
"""

from __future__ import annotations

from collections import deque

from holdfast.model.errors import NoSuchSession
from holdfast.model.state import SessionState
from holdfast.sdk.client_core.client_machine import Reader, ask
from holdfast.sdk.client_core.retry_policy import RETRIED, Retry
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from holdfast.model.info import SessionInfo
    from holdfast.sdk.client_core.client_io import ClientIo

_ENDS_REMEMBERED = 64  # to recognize one that comes a second time

MISSED = m.EventsDropped(0)  # the connection was lost meanwhile; how many are missing is not known


class EventReader(Reader):
    """One reader of events. `session`: a session's name or id, or "" for all."""

    def __init__(self, io: ClientIo, session: str) -> None:
        super().__init__(io)
        self._session = session
        self._began = False
        self._states: dict[str, m.StateEvent] = {}  # the last event of each session
        self._ended: deque[str] = deque(maxlen=_ENDS_REMEMBERED)
        self._found: deque[m.Message] = deque()  # to be given next

    async def next(self) -> m.Message:
        """The next event. A StateEvent says something new; MISSED follows a lost connection."""
        while True:
            if self._found:
                return self._found.popleft()
            await self._io.connect()
            try:
                if self._inbox is None:
                    await self._begin()
                    continue
                message = await self._io.next(self._inbox)
            except RETRIED as error:
                self.close()
                await self._retry.caught(error)
                continue
            if message is not None and self._is_news(message):
                return message

    async def _begin(self) -> None:
        self._inbox = await self._io.watch(self._session)
        self._retry = Retry(self._io)
        if self._began:
            self._found.append(MISSED)
            if not self._session:  # a watch of one session tells that it has ended
                self._found.extend(await self._ended_meanwhile())
        self._began = True

    async def _ended_meanwhile(self) -> list[m.StateEvent]:
        alive = (await ask(self._io, m.ListSessions(0), m.Sessions)).sessions
        told: list[m.StateEvent] = []
        for gone in set(self._states) - {info.id for info in alive}:
            try:
                info = (await ask(self._io, m.Show(0, gone), m.Shown)).info
            except NoSuchSession:
                self._states.pop(gone, None)
                continue
            at = info.ended_at or info.created_at
            event = m.StateEvent(info.id, info.name, info.state, at, "", info.ending)
            if self._is_news(event):
                told.append(event)
        return told

    def _is_news(self, message: m.Message) -> bool:
        if not isinstance(message, m.StateEvent):
            return True
        self._session = self._session and message.session  # another may get its name
        last = self._states.get(message.session)
        if last is not None and last.replace(at=message.at) == message:
            return False
        if message.ending is None:
            self._states[message.session] = message
            return True
        self._states.pop(message.session, None)
        known = message.session in self._ended
        self._ended.append(message.session)
        return not known


async def wait_for_state(
    io: ClientIo, session: str, wanted: Container[SessionState]
) -> m.StateEvent:
    """The event that says so, or that the session has ended."""
    reader = EventReader(io, session)
    try:
        while True:
            event = await reader.next()
            if isinstance(event, m.StateEvent) and (
                event.state in wanted or event.ending is not None
            ):
                return event
    finally:
        reader.close()


def about_to_prompt(info: SessionInfo) -> bool:
    """Whether the shell runs nothing, by its own reports: it is at its prompt, or starting, or
    between the end of a command and the prompt."""
    between = info.last_command is None or info.last_command.status is not None
    return (
        bool(info.shell) and between and info.state in (SessionState.WORKING, SessionState.PROMPT)
    )
