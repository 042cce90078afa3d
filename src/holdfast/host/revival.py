"""`hold revive`: a session that follows a lost one, as near to it as the disk knows.

It is a new session, with a key and a journal of its own that names the lost one: the old identity
never lives again (A9). What it takes over is what was said *about* the lost one: its name, labels,
level and workspace, the policies and envelopes for it alone; and where its shell was: directory and
exported environment. No process, no input and no command line of the lost one is run again.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.core.access import inside_rules
from holdfast.core.access.authority import Authority
from holdfast.host.clock import now
from holdfast.host.connection.from_inside import WrittenElsewhere, note_writers
from holdfast.host.lost_sessions import LostSessions
from holdfast.host.near_end import NearEnd
from holdfast.host.session_store import SessionStore, Stored
from holdfast.journal.entries import Body, RevivedEntry
from holdfast.model.actor import Actor
from holdfast.model.envelope import Right
from holdfast.model.errors import InvalidArgument, NotPermitted, SessionEnded
from holdfast.model.ids import SessionId
from holdfast.model.info import InFlight, SessionInfo
from holdfast.model.inside import Inside
from holdfast.model.record import Record
from holdfast.wire.messages.session import Run

_SHOWN_CHARS = 80  # of a command line, in a sentence


class _Record(Protocol):
    def record(self, actor: str, body: Body, /) -> object: ...


class StartedSession(WrittenElsewhere, Protocol):
    """The successor."""

    @property
    def journal(self) -> _Record: ...

    def info(self) -> SessionInfo: ...


class CarriesOver(Protocol):
    """Says of a session what was said of the one that it follows. Gives how many statements."""

    def carry_over(self, before: SessionId, after: SessionId) -> int: ...


Start = Callable[[Actor, Run, Callable[[SessionId], None]], Awaitable[StartedSession]]


class Successor(Record):
    """What became of a request to revive."""

    info: SessionInfo
    left_behind: tuple[str, ...]
    running: str


class Revival:
    """Of one host."""

    def __init__(
        self,
        store: SessionStore,
        lost: LostSessions,
        authority: Authority,
        policies: CarriesOver,
        envelopes: CarriesOver,
        start: Start,
        following: Callable[[SessionId], AbstractContextManager[None]],
    ) -> None:
        """`following`: raises while the session is restored, and keeps it from being restored."""
        self._following = following
        self._store, self._lost, self._authority = store, lost, authority
        self._policies, self._envelopes, self._start = policies, envelopes, start

    async def revive(self, actor: Actor, inside: Inside | None, stored: Stored) -> Successor:
        """Start the successor. Raises what a start raises; then nothing has changed."""
        self._check(actor, inside, stored)
        info, near = stored.info, self._store.near_end(stored.info.id)
        run, missing = self._run(actor, stored, near)
        if run.with_keys and inside is not None:
            inside_rules.refuse_keys()
        carried = [0, 0]

        def carry_over(session: SessionId) -> None:
            carried[:] = [
                self._policies.carry_over(info.id, session),
                self._envelopes.carry_over(info.id, session),
            ]

        with self._following(info.id):
            live = await self._start(actor, run, carry_over)
        note_writers(inside, live)
        left_behind = (*missing, *_left_behind(info))
        reported = near is not None and near.environment is not None
        live.journal.record(
            actor.id,
            RevivedEntry(info.id, live.spec.cwd, reported, carried[0], carried[1], left_behind),
        )
        self._lost.acknowledge(actor, self._store.tombstone(info.id) or stored)
        return Successor(live.info(), left_behind, _running(info.in_flight))

    def _check(self, actor: Actor, inside: Inside | None, stored: Stored) -> None:
        info, at = stored.info, now()
        if not stored.is_lost:
            raise SessionEnded(
                f"the session {info.name} was not lost: it {info.ending.sentence()}"
                if info.ending is not None
                else f"the session {info.name} was not lost",
                hint=f"`hold run --after {info.id[:8]}` starts one that follows it",
            )
        if stored.successor:
            raise InvalidArgument(
                f"{info.name} is followed by {stored.successor} already",
                hint=f"`hold attach {stored.successor}` joins it",
            )
        if info.pruned_at is not None:
            raise InvalidArgument(
                f"what was known of {info.name} was removed from disk",
                hint=f"`hold run --after {info.id[:8]}` starts one that follows it",
            )
        self._authority.check(actor.id, Right.END, info.id, info.labels, at)
        for each in inside_rules.others_behind(inside, actor.id, sensitive=True):
            try:
                self._authority.check_everywhere(each, Right.INPUT, at)
            except NotPermitted as refusal:
                raise inside_rules.from_inside("revive", refusal) from refusal

    def _run(
        self, actor: Actor, stored: Stored, near: NearEnd | None
    ) -> tuple[Run, tuple[str, ...]]:
        """What is to be started, and what of it is not as it was."""
        info, missing = stored.info, []
        launch = self._store.launch(info.id)
        if launch is None:
            missing.append("its environment: it was not written down; yours is not used")
            launch = Run(0, argv=info.argv, level=info.level, workspace=info.workspace)
        env = launch.env
        if near is not None and near.environment is not None:
            # A shell does not export what a terminal is, nor does a successor have another one.
            env = near.environment
        cwd = info.cwd
        if not os.path.isdir(cwd):
            there = launch.cwd if os.path.isdir(launch.cwd) else ""
            missing.append(f"its directory {cwd}, which is gone: it began in {there or 'the home'}")
            cwd = there
        run = launch.replace(
            id=0,
            name=info.name,
            cwd=cwd,
            env=env,
            size=info.size,
            labels=info.labels,
            predecessor=info.id,
            user="" if stored.uid == actor.uid else info.user,
        )
        return run, tuple(missing)


def _left_behind(info: SessionInfo) -> Iterator[str]:
    """What was there and is not here, in words. Whether it took effect is not known."""
    running, known = _running(info.in_flight), info.last_known
    if running:
        yield f"the command that ran: {_cut(running)}"
    if known is not None:
        yield from (f"a job of its shell: {_cut(job)}" for job in known.jobs)
        for held in known.held:
            yield f"what waited for approval: {_cut(held.text)} by {held.actor}; it was not done"
    if info.in_flight is not None and info.in_flight.unsubmitted:
        yield f"typed and not submitted: {_cut(info.in_flight.unsubmitted)}"
    yield "its processes, with all that was only in their memory"
    if info.shell:
        yield "its shell's functions, aliases, options and variables that are not exported"


def _running(of: InFlight | None) -> str:
    return of.command.text if of is not None and of.command is not None else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
