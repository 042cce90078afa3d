"""connect(), and a host as a program sees it: its sessions and their events.

async with connect() as hold:
    build = await hold.session("build")
    print((await build.submit("make test")).status)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.errors import InvalidArgument, NameTaken
from holdfast.model.graph import Process
from holdfast.model.info import HostInfo, SessionInfo
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.measured import ActorScore
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState
from holdfast.sdk import events as ev
from holdfast.sdk import identity
from holdfast.sdk.aio.driver import AsyncHostClient
from holdfast.sdk.aio.session import Session, size_of
from holdfast.sdk.aio.values import Checkpoint, HostPeer, WantedState
from holdfast.sdk.aio.watch import EventStream
from holdfast.sdk.connection import target_host
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.messages import checkpoints, gate_actions, host_links
from holdfast.wire.messages import gate_approvals as gate_messages
from holdfast.wire.messages import session as m


class Hold:
    """A host in reach. Made by `connect`."""

    def __init__(self, link: AsyncHostClient, host: HostPeer) -> None:
        self._link = link
        self.host = host
        self._others: list[Hold] = []  # hosts that sessions of this one were brought to

    def __repr__(self) -> str:
        return f"<Hold {self.host.name} as {self.host.actor}>"

    async def session(self, name: str) -> Session:
        """A session by its name or whole id. Raises NoSuchSession."""
        shown = await self._link.ask(m.Show(0, name, exact=True), m.Shown)
        return Session(self._link, shown.info)

    async def sessions(self, *, ended: bool = False, lost: bool = False) -> tuple[SessionInfo, ...]:
        """The live sessions you may see; with `ended` also those that ended recently; with `lost`
        also those that are asleep, and those that were lost and that nobody has acknowledged."""
        return (await self._link.ask(m.ListSessions(0, ended, lost=lost), m.Sessions)).sessions

    async def acknowledge(self, session: str = "") -> tuple[SessionInfo, ...]:
        """Acknowledge that a session was lost; without a name, every one that you may end."""
        return (await self._link.ask(m.Acknowledge(0, session), m.Sessions)).sessions

    async def revive(self, session: str) -> Session:
        """Start a session that follows a lost one: its command, name, labels, level, policies and
        envelopes, in the directory and environment of its shell's last prompt. No process comes
        back and no command line is run again. Not repeated when the connection is lost: it might
        start two, so HostLost says to look first."""
        revived = await self._link.ask(m.Revive(0, session), m.Revived, once=True)
        return Session(self._link, revived.info)

    async def checkpoints(self, session: str | None = None) -> tuple[Checkpoint, ...]:
        """The checkpoints of one session, by its name or id, or of all that you may see; newest
        first."""
        request = checkpoints.ListCheckpoints(0, session or "")
        return (await self._link.ask(request, checkpoints.CheckpointList)).checkpoints

    async def restore(
        self,
        target: Checkpoint | str,
        *,
        on: str = "",
        cold: bool = False,
        files: str = "ask",
        host_is_dead: bool = False,
    ) -> Session:
        """Restore a session that is asleep or was lost, from a checkpoint or, given its name or id,
        from its latest one: the same id and processes, in the next epoch. `Session.restored` says
        what could not come back: connections that were reset, and inputs newer than the checkpoint.
        `files`: whether captured files are put back (`restore`), all stay as they are (`keep`), or
        FilesChanged is raised where others than the session changed one that it has open (`ask`).
        If it fails, RestoreFailed says why and everything is as it was. `on`: restore it on another
        host, a machine you have joined or the path of a socket; the session given back is of a
        connection to that one, which is closed with this `Hold`. `host_is_dead`: take what another
        host has on your word, which is recorded. `cold` starts its command
        again instead, as a new session that follows it; the old one can be restored no more. Not
        repeated when the connection is lost: look at the session first."""
        name = target.id if isinstance(target, Checkpoint) else target
        request = checkpoints.Restore(0, name, cold, host_is_dead, RestoreFiles(files))
        link = self._link
        if on:
            there = await connect(on)
            self._others.append(there)
            fetching = host_links.GetTicket(0, await self._session_of(name), self.host.key)
            given = await there._link.ask(fetching, host_links.TicketGiven)
            link, request = there._link, request.replace(ticket=given.ticket, on=on)
        done = await self._link.ask(request, checkpoints.Restored, once=True)
        session = Session(link, done.info)
        session.restored = done.report
        return session

    async def _session_of(self, name: str) -> str:
        """The id of a session, by its name or one of its checkpoints."""
        for each in await self.checkpoints():
            if each.id == name:
                return each.session
        return (await self._link.ask(m.Show(0, name, exact=True), m.Shown)).info.id

    async def approvals(self, session: str = "") -> tuple[ApprovalInfo, ...]:
        """What policies hold until somebody approves, in the sessions you may see or in one, by
        its name or id; first what waits, the oldest first, then what was decided lately."""
        asked = gate_messages.GetApprovals(0, session)
        return (await self._link.ask(asked, gate_messages.ApprovalsShown)).approvals

    async def approve(self, approval: ApprovalInfo | str, note: str = "") -> ApprovalInfo:
        """Approve what waits, as you read it in `approvals()`; the note is for people. It is judged
        once more before it happens. Raises ApprovalChanged if it has changed since you read it,
        NotPermitted if you had a part in it or may not approve there, and NoSuchApproval. By its id
        alone, or a unique beginning of it, it is approved as it is."""
        id, seen = _read(approval)
        asked = gate_messages.Approve(0, id, note, seen=seen)
        return (await self._link.ask(asked, gate_messages.ApprovalShown, once=True)).approval

    async def deny(self, approval: ApprovalInfo | str, note: str = "") -> ApprovalInfo:
        """Refuse it for good, whatever changed; the note is for whoever asked. Raises NotPermitted
        and NoSuchApproval as `approve` does."""
        id, seen = _read(approval)
        asked = gate_messages.Deny(0, id, note, seen)
        return (await self._link.ask(asked, gate_messages.ApprovalShown, once=True)).approval

    async def run(
        self,
        argv: Sequence[str] = (),
        *,
        name: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        size: Size | tuple[int, int] | str | None = None,
        labels: Sequence[str] = (),
        rehomeable: bool = False,
        level: str | None = None,
        user: str = "",
        predecessor: str = "",
        with_keys: bool = False,
        gate: bool = True,
        workspace: str = "",
        checkpoint_every: float = 0.0,
        capture: Sequence[str] = (),
        extra_env: Mapping[str, str] | None = None,
        exist_ok: bool = False,
    ) -> Session:
        """Start a session; an empty `argv` is your login shell. `env` is all of its environment;
        None: this program's own, when the host is on this machine; `extra_env` is added to it.
        `checkpoint_every`: seconds between checkpoints that the host makes by itself; 0: none.
        `capture`: directories that each checkpoint has, as it has a `workspace` that is given.
        `exist_ok`: a live session that has the `name` already is given instead, whatever it runs.
        Not repeated when the connection is lost: it might start two, so HostLost says to look
        first."""
        if exist_ok and not name:
            raise InvalidArgument(
                "exist_ok needs a name", hint="without one every call starts another session"
            )
        environment = self._environment() if env is None else dict(env)
        request = m.Run(
            0,
            tuple(argv),
            name,
            cwd,
            environment | dict(extra_env or {}),
            None if size is None else size_of(size),
            user,
            None if level is None else Level(level),
            0,
            tuple(labels),
            predecessor,
            rehomeable,
            with_keys,
            gate,
            workspace,
            checkpoint_every,
            tuple(capture),
        )
        try:
            return Session(self._link, (await self._link.ask(request, m.Shown, once=True)).info)
        except NameTaken:
            if not exist_ok:
                raise
            return await self.session(name)

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine."""
        return self._link.is_here

    def _environment(self) -> dict[str, str]:
        """Of this program, unless the host is somewhere else: there it means nothing."""
        return dict(os.environ) if self._link.is_here else {}

    async def events(self, session: str = "") -> AsyncGenerator[ev.Event, None]:
        """What happens to all sessions you may see, or to one, by its name or id: see
        `holdfast.events`. The present state of each comes first. Raises NoSuchSession."""
        of = (await self.session(session)).id if session else ""
        async with aclosing(EventStream(self._link, of).events()) as stream:
            async for event in stream:
                yield event

    async def wait_any(
        self,
        sessions: Iterable[Session],
        *,
        state: WantedState | Iterable[WantedState] = (),
        text: str = "",
        ended: bool = False,
        timeout: float | None = None,
    ) -> tuple[Session, SessionState | str | Process | Ending]:
        """Wait for one of several sessions, as `Session.wait_for` does for one; gives the first,
        and what was found. Raises what that raises."""
        what: dict[str, Any] = {"state": state, "text": text, "ended": ended, "timeout": timeout}
        waits = {asyncio.ensure_future(each.wait_for(**what)): each for each in sessions}
        if not waits:
            raise InvalidArgument("there is no session to wait for")
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            first = next(each for each in waits if each in done)
            return waits[first], first.result()
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def host_info(self) -> HostInfo:
        """What the host is and can do."""
        return (await self._link.ask(m.GetHost(0), m.HostShown)).host

    async def score(self, actor: str = "", *, days: int = 30) -> ActorScore:
        """How an actor's structured actions went on this host in the last so many days; your own
        without a name."""
        request = gate_actions.GetScore(0, actor, days)
        return (await self._link.ask(request, gate_actions.ScoreShown)).score

    async def close(self) -> None:
        """Leave. Sessions carry on."""
        for each in self._others:
            await each.close()
        await self._link.close()


class connect:  # noqa: N801 - it is called like a function, and used with `async with` or `await`
    """A host, reached: `async with connect() as hold:`, or `hold = await connect()` and
    `await hold.close()` later.

    `address`: None is this user's own host, or what HOLDFAST_ON says; a machine of `hold machines`;
    the path of a host's socket; or ID@RELAY-URL, the host that has this session now.
    `actor`: the actor to act as, by the name of a key that `hold actor add` made or by the path of
    a key file; None: HOLDFAST_AS, else the unix user's own actor.
    `client`: what kind of client this is, for people to read in the journal.
    `patience`: seconds to try to get back to a host that was lost."""

    def __init__(
        self,
        address: str | None = None,
        *,
        actor: str | None = None,
        client: str = "python",
        patience: float = RECONNECT_DEADLINE_S,
    ) -> None:
        self._address, self._actor = address, actor
        self._client, self._patience = client, patience
        self._hold: Hold | None = None

    async def _connected(self) -> Hold:
        acting = identity.load(self._actor) if self._actor else None
        link = AsyncHostClient(_target_of(self._address), self._client, acting, self._patience)
        try:
            welcome = (await link.carrier()).welcome
        except BaseException:
            await link.close()  # given up: nobody is to be left attached there
            raise
        me = acting or identity.chosen()
        actor = me.name if me is not None else welcome.actor
        return Hold(link, HostPeer(welcome.host, welcome.host_key, welcome.daemon_pid, actor))

    def __await__(self) -> Generator[Any, None, Hold]:
        return self._connected().__await__()

    async def __aenter__(self) -> Hold:
        self._hold = await self._connected()
        return self._hold

    async def __aexit__(self, *_: object) -> None:
        if self._hold is not None:
            await self._hold.close()


def _target_of(address: str | None) -> str | Machine:
    if not address:
        return target_host()
    if "@" in address:
        from holdfast.sdk.reach.locate_session import parse_address

        return parse_address(address)
    return address if "/" in address else machines.find(address)


def _read(approval: ApprovalInfo | str) -> tuple[str, str]:
    """Its id, and the version that was read."""
    return (approval, "") if isinstance(approval, str) else (approval.id, approval.version)
