"""The agent's state: one connection to one host, the sessions it may use, and the commands that it
follows (`agent_command.py`).

A command's handle is `SESSION/KEY`: the key is the one the host knows it by. What is kept here of a
command saves asking; a handle that is not kept, because this server is another one or followed too
many, is asked of the host."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from holdfast.mcp.agent_command import AgentCommand, Begin
from holdfast.mcp.bounding import one_line
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import InvalidArgument, NoSuchApproval, NoSuchSession, TimedOut
from holdfast.model.info import SessionInfo
from holdfast.model.turn_info import Handoff
from holdfast.sdk.aio.hold import Hold, connect
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Screen

WAIT_MAX_S = 55.0  # of one call: clients give up after a minute
_FIND_S = 35.0  # for a session to be found: longer than a lost host is tried again
_COMMANDS_MAX = 64  # followed here; then the oldest that ended is asked of the host
_OUTPUT_BYTES = 32 << 20  # kept of those that ended, together; the host has the rest of its ring
_COMMANDS_NAMED = 5  # to an agent that does not know its handle: the latest


class AgentDesk:
    """One agent at one host."""

    def __init__(self, address: str | None, actor: str | None, only: Collection[str]) -> None:
        self._address, self._actor, self._only = address, actor, frozenset(only)
        self._hold: Hold | None = None
        self._connecting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}  # by id: a handle keeps the turn it took
        self._screens: dict[str, Screen] = {}  # as last seen, by session id
        self.heads: dict[str, int] = {}  # of journals: the last record seen, by session id
        self._handoffs: dict[str, Handoff] = {}  # what the last catch_up found, by session id
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

    async def check_approval(self, id: str) -> None:
        """Raise unless it is of a session that is ours. The rest is the host's to judge."""
        if not self.has_all and not any(each.id.startswith(id) for each in await self.approvals()):
            raise NoSuchApproval(f"nothing waits for approval by the id {id[:40]!r}")

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
        for kept in (self._sessions, self._screens, self.heads, self._handoffs):
            for gone in kept.keys() - live:
                del kept[gone]

    async def screen(self, session: Session, info: SessionInfo) -> Screen:
        """The current screen. It is fetched again only after something was printed."""
        seen, present = self._screens.get(session.id), (info.output_offset, info.size)
        if seen is None or info.ending or (seen.offset, seen.size) != present:
            seen = self._screens[session.id] = await session.screen()
        return seen

    async def handoff(self, session: Session, *, again: bool) -> Handoff:
        """What happened since this agent last looked; `again`: what the last look found."""
        if not again:
            self._handoffs[session.id] = await session.catch_up()
        try:
            return self._handoffs[session.id]
        except KeyError:
            raise InvalidArgument(
                "nothing is kept of an earlier catch_up", hint="call it without `first`"
            ) from None

    def forget_screen(self, session: Session) -> None:
        """It came back from a checkpoint: an offset seen before may be of other output now."""
        self._screens.pop(session.id, None)

    def last_screen(self, session: Session) -> Screen | None:
        """As this agent saw it last."""
        return self._screens.get(session.id)

    def _is_ours(self, info: SessionInfo) -> bool:
        return not self._only or info.name in self._only or info.id in self._only

    # -- commands -----------------------------------------------------------------------------

    def begin(self, session: Session, key: str, line: str, begin: Begin) -> AgentCommand:
        """Run a command line under this key; if that is followed already, nothing is run."""
        handle = f"{session.id}/{key}"
        kept = self._commands.get(handle)
        if kept is None or kept.line != line or kept.is_refused:
            return self._keep(AgentCommand(session, key, line, begin))
        kept.ask_again_if_cut_off()
        return kept

    async def command(self, handle: str) -> AgentCommand:
        """By `SESSION/KEY`, or by the key of one that is followed here."""
        kept = self._commands.get(handle) or self._by_key(handle)
        if kept is not None and (kept.is_denied or not kept.is_refused):
            kept.ask_again_if_cut_off()
            return kept
        name, slash, key = handle.partition("/")
        if not (name and slash and key):
            raise self._no_handle(handle)
        session = await self.session(name)
        if name != session.id:
            return await self.command(f"{session.id}/{key}")
        return self._keep(AgentCommand(session, key, "", lambda: session.running(key)))

    def _by_key(self, key: str) -> AgentCommand | None:
        found = [each for each in self._commands.values() if each.key == key]
        return found[0] if len(found) == 1 else None

    def _no_handle(self, handle: str) -> InvalidArgument:
        kept = [f"{each.handle} ({one_line(each.line, 60)})" for each in self._commands.values()]
        return InvalidArgument(
            f"not a handle of a command: {handle[:40]!r}",
            hint="give SESSION/KEY, as submit does; you can ask for: "
            + (", ".join(kept[-_COMMANDS_NAMED:]) or "none"),
        )

    def _keep(self, command: AgentCommand) -> AgentCommand:
        """Follow it. The oldest that ended are dropped for it, for their number or what they
        printed."""
        self._drop(command.handle)
        ended = [each for each in self._commands.values() if each.done]
        size = sum(each.printed_bytes for each in ended)
        self._commands[command.handle] = command
        while ended and (len(self._commands) > _COMMANDS_MAX or size > _OUTPUT_BYTES):
            size -= ended[0].printed_bytes
            self._drop(ended.pop(0).handle)
        if len(self._commands) > _COMMANDS_MAX:
            self._drop(next(iter(self._commands)))
        return command

    def _drop(self, handle: str) -> None:
        if (dropped := self._commands.pop(handle, None)) is not None:
            dropped.forget()
