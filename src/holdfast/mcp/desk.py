"""The agent's place: one connection to one host, the sessions it may name, and the commands it has
begun. A command outlives the call that began it and is asked for by its handle."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from holdfast.model.errors import InvalidArgument, NoSuchSession
from holdfast.model.info import SessionInfo
from holdfast.sdk.aio.hold import Hold, connect
from holdfast.sdk.aio.running import Running
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Screen

WAIT_MAX_S = 55.0  # of one call: clients give up after a minute
_COMMANDS_MAX = 64  # handles remembered; the oldest that has ended goes first


class Desk:
    """Of one agent at one host."""

    def __init__(self, address: str | None, actor: str | None, only: Collection[str]) -> None:
        self._address, self._actor, self._only = address, actor, frozenset(only)
        self._hold: Hold | None = None
        self._connecting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}  # by id: a handle keeps the turn it took
        self._screens: dict[str, Screen] = {}  # as last seen, by session id
        self._commands: OrderedDict[str, Running] = OrderedDict()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Desk]:
        """For as long as the agent is here. The host need not be up yet."""
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

    async def sessions(self, *, ended: bool = False) -> list[SessionInfo]:
        found = await (await self.hold()).sessions(ended=ended)
        return [info for info in found if self._is_ours(info)]

    async def session(self, name: str) -> Session:
        return (await self.found(name))[0]

    async def found(self, name: str) -> tuple[Session, SessionInfo]:
        """A session, and how it is at this moment."""
        session = await (await self.hold()).session(name)
        if not self._is_ours(session.found):
            raise NoSuchSession(f"this agent was not given the session {session.name}")
        return self._sessions.setdefault(session.id, session), session.found

    async def screen(self, session: Session, info: SessionInfo) -> Screen:
        """The screen as it is at this moment. What was printed makes the screen, so the one that
        was seen last is not fetched again before more is printed."""
        seen, present = self._screens.get(session.id), (info.output_offset, info.size)
        if seen is None or info.ending or (seen.offset, seen.size) != present:
            seen = self._screens[session.id] = await session.screen()
        return seen

    def _is_ours(self, info: SessionInfo) -> bool:
        return not self._only or info.name in self._only or info.id in self._only

    # -- commands -----------------------------------------------------------------------------

    def keep(self, running: Running) -> str:
        """Remember a command that goes on; gives its handle."""
        while len(self._commands) >= _COMMANDS_MAX:
            ended = [handle for handle, each in self._commands.items() if each.done]
            self._commands.pop(ended[0] if ended else next(iter(self._commands))).forget()
        handle = secrets.token_hex(4)
        self._commands[handle] = running
        return handle

    def command(self, handle: str) -> Running:
        try:
            return self._commands[handle]
        except KeyError:
            raise InvalidArgument(
                f"no command has the handle {handle[:40]!r}",
                hint="observe shows what became of it; handles are of this connection only",
            ) from None

    def drop(self, handle: str) -> None:
        self._commands.pop(handle, None)


def bounded_wait(seconds: float) -> float:
    return min(max(seconds, 0.0), WAIT_MAX_S)
