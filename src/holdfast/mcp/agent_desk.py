"""The agent's state: one connection to one host, the sessions it may use, and the commands it
started. A command outlives the call that started it; `result` finds it by its handle."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.mcp.bounding import one_line
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import HoldfastError, InvalidArgument, NoSuchSession, TimedOut
from holdfast.model.info import SessionInfo
from holdfast.model.measured import ActionTrace
from holdfast.model.state import SessionState
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.hold import Hold, connect
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Result, Screen

WAIT_MAX_S = 55.0  # of one call: clients give up after a minute
ASKING = (SessionState.INPUT, SessionState.SECRET, SessionState.STOPPED)
_ASKS_S = 0.25  # in such a state for so long: it asks
_FIND_S = 35.0  # for a session to be found: longer than a lost host is tried again
_COMMANDS_MAX = 64  # handles remembered; the oldest ended one is dropped first
_COMMANDS_NAMED = 5  # to an agent that does not know its handle: the latest


class AgentCommand:
    """A command line that an agent submitted: on its way to the shell, running, or ended. It is
    kept before anybody waits for it: a caller that was cut off, or gave up waiting, finds it again
    by its handle."""

    def __init__(
        self,
        session: Session,
        line: str,
        intent: str,
        expect: Mapping[str, Any] | None = None,
        retry: int = 0,
    ) -> None:
        """`expect`: what it should do; then it is a structured action, with a `trace` in the
        end."""
        self.session, self.line = session, line
        self.trace: ActionTrace | None = None
        self._expect, self._retry = expect, retry
        self._running: Running | None = None
        self._begun = asyncio.Event()
        self._told_held = False  # that it waits for approval
        self._task = asyncio.create_task(self._run(session, intent))
        self._task.add_done_callback(_looked_at)

    async def _run(self, session: Session, intent: str) -> Result:
        key = secrets.token_hex(8)
        if self._expect is None and not self._retry:
            self._running = await session.start(self.line, key=key, intent=intent)
        else:
            expect, retry = self._expect or {}, {"times": self._retry}
            self._running = await session.begin_act(
                self.line, intent=intent, expect=expect, key=key, retry=retry
            )
        self._begun.set()
        result = await self._running.result()
        if self._running.action_id:
            self.trace = await session.trace(self._running.action_id)
        return result

    @property
    def begun(self) -> bool:
        """Whether the shell has begun it."""
        return self._running is not None and self._running.held is None

    @property
    def held(self) -> ApprovalInfo | None:
        """What it waits for, if a policy holds it."""
        return None if self._running is None else self._running.held

    @property
    def done(self) -> bool:
        """Whether what became of it is known: it ended, or was refused."""
        return self._task.done()

    async def result(self, seconds: float) -> Result | None:
        """What became of it. None: it goes on; it asks something, or so many seconds passed."""
        asks = asyncio.create_task(self._until_it_asks())
        try:
            await asyncio.wait(
                (self._task, asks), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            asks.cancel()
        return self._task.result() if self.done and not self._task.cancelled() else None

    async def _until_it_asks(self) -> None:
        """Until its program waits for the terminal, and goes on doing so: what was just typed may
        be on its way, and some programs look at their terminal for a moment only."""
        await self._begun.wait()
        if self.held is not None and not self._told_held:
            self._told_held = True
            return
        try:
            while True:
                await self.session.wait_for(state=ASKING)
                await asyncio.sleep(_ASKS_S)
                if (await self.session.info()).state in ASKING:
                    return
        except HoldfastError:
            await asyncio.wait((self._task,))  # which has a better reason

    def printed(self) -> bytes:
        return b"" if self._running is None else self._running.printed_bytes()

    @property
    def output_begins(self) -> int | None:
        """The session's output offset at which its own output begins."""
        return None if self._running is None else self._running.printed_from

    def forget(self) -> None:
        """Follow it no longer. In the session it goes on."""
        self._task.cancel()
        if self._running is not None:
            self._running.forget()


class AgentDesk:
    """One agent at one host."""

    def __init__(self, address: str | None, actor: str | None, only: Collection[str]) -> None:
        self._address, self._actor, self._only = address, actor, frozenset(only)
        self._hold: Hold | None = None
        self._connecting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}  # by id: a handle keeps the turn it took
        self._screens: dict[str, Screen] = {}  # as last seen, by session id
        self.heads: dict[str, int] = {}  # of journals: the last record seen, by session id
        self._commands: OrderedDict[str, AgentCommand] = OrderedDict()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AgentDesk]:
        """For as long as the agent is connected. The host need not be up yet."""
        try:
            yield self
        finally:
            for command in self._commands.values():
                command.forget()
            if self._hold is not None:
                await self._hold.close()

    async def hold(self) -> Hold:
        async with self._connecting:
            if self._hold is None:
                self._hold = await connect(self._address, actor=self._actor, client="mcp")
            return self._hold

    # -- sessions -----------------------------------------------------------------------------

    @property
    def has_all(self) -> bool:
        """Whether it was given every session that its envelope shows, and not some only."""
        return not self._only

    async def sessions(self, *, ended: bool = False, lost: bool = False) -> list[SessionInfo]:
        found = await (await self.hold()).sessions(ended=ended, lost=lost)
        return [info for info in found if self._is_ours(info)]

    async def approvals(self) -> list[ApprovalInfo]:
        """Of the sessions that are ours."""
        ours = {info.id for info in await self.sessions()}
        found = await (await self.hold()).approvals()
        return [each for each in found if each.session in ours]

    async def session(self, name: str) -> Session:
        return (await self.found(name))[0]

    async def found(self, name: str) -> tuple[Session, SessionInfo]:
        """A session and its current state."""
        try:
            async with asyncio.timeout(_FIND_S):
                return await self._found(name)
        except TimeoutError:
            raise TimedOut(f"the host did not answer within {_FIND_S:g} s") from None

    async def _found(self, name: str) -> tuple[Session, SessionInfo]:
        session = await (await self.hold()).session(name)
        info = session.found
        if not self._is_ours(info):
            raise NoSuchSession(f"this agent has no access to the session {session.name}")
        if session.id not in self._sessions or info.ending is not None:
            await self._forget_ended()
        if info.ending is not None:
            return session, info
        return self._sessions.setdefault(session.id, session), info

    async def _forget_ended(self) -> None:
        """Drop what is kept of ended sessions, whenever a new one is used."""
        live = {info.id for info in await (await self.hold()).sessions()}
        for kept in (self._sessions, self._screens, self.heads):
            for gone in kept.keys() - live:
                del kept[gone]

    async def screen(self, session: Session, info: SessionInfo) -> Screen:
        """The current screen. It is fetched again only after something was printed."""
        seen, present = self._screens.get(session.id), (info.output_offset, info.size)
        if seen is None or info.ending or (seen.offset, seen.size) != present:
            seen = self._screens[session.id] = await session.screen()
        return seen

    def last_screen(self, session: Session) -> Screen | None:
        """As this agent saw it last."""
        return self._screens.get(session.id)

    def _is_ours(self, info: SessionInfo) -> bool:
        return not self._only or info.name in self._only or info.id in self._only

    # -- commands -----------------------------------------------------------------------------

    def keep(self, command: AgentCommand) -> str:
        """Remember a command; gives its handle."""
        while len(self._commands) >= _COMMANDS_MAX:
            ended = [handle for handle, each in self._commands.items() if each.done]
            self._commands.pop(ended[0] if ended else next(iter(self._commands))).forget()
        handle = secrets.token_hex(4)
        self._commands[handle] = command
        return handle

    def command(self, handle: str) -> AgentCommand:
        try:
            return self._commands[handle]
        except KeyError:
            kept = [f"{key} ({one_line(each.line, 60)})" for key, each in self._commands.items()]
            raise InvalidArgument(
                f"no command has the handle {handle[:40]!r}",
                hint="observe shows what became of it; you can ask for: "
                + (", ".join(kept[-_COMMANDS_NAMED:]) or "none"),
            ) from None

    def drop(self, handle: str) -> None:
        self._commands.pop(handle, None)


def _looked_at(task: asyncio.Task[Result]) -> None:
    """Whoever submitted it may be gone: it is no mistake that nobody asks."""
    if not task.cancelled():
        task.exception()
