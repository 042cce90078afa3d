"""The port of `sdk/client_core` played by a script: no socket, no clock, no event loop."""

from __future__ import annotations

from collections import deque

from holdfast.model.errors import HoldfastError, HostLost
from holdfast.model.ids import SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.size import Size
from holdfast.model.state import Level, SessionState
from holdfast.wire.messages import session as m

SESSION = SessionId("0" * 26)
INFO = SessionInfo(
    SESSION, "s", SessionState.WORKING, Level.PLAIN, 1, "u", ("sh",), "/", Size(80, 24), 0.0, 1, 1,
    0, 0, 0,
)  # fmt: skip

Outcome = m.Message | HoldfastError | None


class ScriptedIo:
    """Answers requests, in turn, with these; `back` is what is in the way of coming back. An inbox
    gives its messages in turn: an error is raised, None is a pause."""

    patience_s = 30.0

    def __init__(
        self,
        *outcomes: Outcome,
        inboxes: tuple[tuple[Outcome, ...], ...] = (),
        back: HoldfastError | None = None,
        connected: bool = True,
    ) -> None:
        self._outcomes, self._inboxes = deque(outcomes), deque(inboxes)
        self._back, self.connected = back, connected
        self.asked: list[m.Request] = []
        self.came_back = 0
        self.time = 0.0
        self.open_inboxes = 0
        self.pauses: list[float | None] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds

    async def connect(self) -> None:
        if self.connected:
            return
        if self._back is not None:
            raise self._back
        self.connected = True
        self.came_back += 1

    async def exchange(self, request: m.Request) -> m.Answer:
        assert self.connected, "asked without a connection"
        self.asked.append(request)
        outcome = self._outcomes.popleft()
        if isinstance(outcome, HoldfastError):
            self._failed(outcome)
            raise outcome
        assert isinstance(outcome, m.Answer)
        return outcome

    async def send(self, request: m.Request) -> deque[Outcome]:
        assert self.connected, "sent without a connection"
        self.asked.append(request)
        return self._inbox()

    async def attach(self, request: m.Attach) -> tuple[m.Attached, deque[Outcome]]:
        answer = await self.exchange(request)
        assert isinstance(answer, m.Attached)
        return answer, self._inbox()

    async def watch(self, session: str) -> deque[Outcome]:
        await self.exchange(m.Watch(0, session))
        return self._inbox()

    async def next(self, inbox: deque[Outcome], pause_s: float | None = None) -> m.Message | None:
        self.pauses.append(pause_s)
        message = inbox.popleft()
        if isinstance(message, HoldfastError):
            self._failed(message)
            raise message
        return message

    def release(self, inbox: deque[Outcome]) -> None:
        self.open_inboxes -= 1

    def _inbox(self) -> deque[Outcome]:
        self.open_inboxes += 1
        return deque(self._inboxes.popleft())

    def _failed(self, error: HoldfastError) -> None:
        if isinstance(error, HostLost):
            self.connected = False
