"""All moves of a host: those of sessions that leave, and of those that come."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import secrets
import time
from typing import TYPE_CHECKING, Any

from holdfast.core.continuity.migration import SourceMove, TargetMove
from holdfast.core.continuity.move_table import (
    SourceState,
    Superposition,
    TargetState,
    phase_of,
    superposition_of,
)
from holdfast.host.clock import now
from holdfast.host.continuity.moving import messages as m
from holdfast.host.continuity.moving.move_book import KeptSource, KeptTarget, MoveBook
from holdfast.host.continuity.moving.runner import MoveRunner
from holdfast.host.continuity.moving.source import SourceRunner
from holdfast.host.continuity.moving.target import TargetRunner
from holdfast.model.errors import (
    HoldfastError,
    InvalidArgument,
    LevelUnavailable,
    ProtocolViolation,
    SessionMoving,
    SessionNotMoved,
)
from holdfast.model.ids import SessionId
from holdfast.model.info import MigrationInfo
from holdfast.model.state import Level
from holdfast.wire.messages.base import Message
from holdfast.wire.messages.moving import MigrationEvent

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession
    from holdfast.ports.host_link import HostLink

log = logging.getLogger(__name__)

_SEALED = (*(SourceState.REPLAY, SourceState.CUTOVER, SourceState.RECLAIM, SourceState.COMPLETE),)
_OVER = (TargetState.LIVE, TargetState.DISCARDED)


class Moves:
    """Of one host."""

    def __init__(self, daemon: Daemon) -> None:
        """What an earlier daemon kept of moves is read, and carried on by `carry_on`."""
        self._daemon = daemon
        self._book = MoveBook(daemon.home.state)
        self._kept_sources = list(self._book.sources())
        self._kept_targets = list(self._book.targets())
        self._leaving: dict[SessionId, SourceRunner] = {}  # the latest of each session
        self._coming: dict[str, TargetRunner] = {}  # by the name of the move
        self._proposing: set[SessionId] = set()

    # -- a daemon that takes over -----------------------------------------------------------------

    def has_left(self, session: SessionId) -> bool:
        """Whether its record is on its way, so that nothing may be written into it here."""
        return any(
            kept.session == session and kept.machine.state in _SEALED for kept in self._kept_sources
        )

    def decides(self, session: SessionId) -> bool:
        """Whether a move says what became of a session that nobody holds."""
        comes = any(
            kept.session == session and kept.machine.state not in _OVER
            for kept in self._kept_targets
        )
        return comes or self.has_left(session)

    def is_coming(self, session: SessionId) -> bool:
        """By a move that its source has not settled."""
        return any(not each.closed and each.session == session for each in self._coming.values())

    def carry_on(self) -> None:
        """Behind the sessions that live here, and before anybody is served."""
        daemon = self._daemon
        daemon.links.serve("move", self._serve)
        for source in self._kept_sources:
            live = daemon.registry.live.get(source.session)
            name = live.spec.name if live is not None else source.session
            leaving = SourceRunner(daemon, self._book, live, source, name, self._told)
            self._leaving[source.session] = leaving
            leaving.carry_on()
        for target in self._kept_targets:
            coming = TargetRunner(daemon, self._book, target, self._told)
            self._coming[coming.move] = coming
            coming.carry_on()
        self._kept_sources, self._kept_targets = [], []

    def close(self) -> None:
        for each in (*self._leaving.values(), *self._coming.values()):
            each.close()

    # -- leaving ----------------------------------------------------------------------------------

    async def move(self, live: LiveSession, actor: str, ticket: str, to: str) -> SourceRunner:
        """To the host that gave the ticket. It lives there when this returns. Raises
        SessionNotMoved, and what stood in the way; then it goes on here. It is done also if the
        caller leaves."""
        session, daemon = live.spec.id, self._daemon
        if live.leasing is not None:
            raise InvalidArgument(
                f"{live.spec.name} is re-homeable: its lease is renewed at this host's "
                "coordination point",
                hint="only pinned sessions can be moved; end it with a checkpoint, and restore it "
                "on the other host",
            )
        before = self._leaving.get(session)
        if session in self._proposing or (before is not None and not before.machine.is_over):
            raise SessionMoving(f"{live.spec.name} is being moved already", hint="`hold show`")
        machine = SourceMove(live.spec.epoch, secrets.token_hex(16))
        kept = KeptSource(session, ticket, actor, to, time.time(), machine.kept(), None)
        runner = SourceRunner(daemon, self._book, live, kept, live.spec.name, self._told)
        spec = live.spec
        proposal = m.Propose(
            runner.move,
            session,
            spec.name,
            spec.user,
            spec.uid,
            spec.epoch,
            os.uname().nodename,
            daemon.home,
        )
        self._proposing.add(session)
        try:
            self._leaving[session] = runner
            await runner.propose(proposal)
        except BaseException:
            if before is not None:
                self._leaving[session] = before
            else:
                del self._leaving[session]
            raise
        finally:
            self._proposing.discard(session)
        await asyncio.shield(runner.answer)
        if runner.state is not SourceState.MOVED:
            raise SessionNotMoved(
                f"{spec.name} was not moved to {runner.to}: {runner.machine.reason}",
                hint="it runs on here; `hold can-move` says what could stand in the way",
            )
        return runner

    # -- coming -----------------------------------------------------------------------------------

    async def _serve(self, link: HostLink) -> None:
        """One link of a source, until it is over."""
        try:
            data = await link.receive()
            if data is None:
                return
            first = m.decode(data)
            try:
                runner = await self._runner_for(link, first)
            except HoldfastError as error:
                await link.send(m.encode(m.Declined(error.code, error.message, error.hint)))
                return
            await link.send(m.encode(m.Agreed()))
            if isinstance(first, m.ResumeMove):
                runner.link = link
                await runner.say_where_it_is()
            await runner.listen(link)
        except HoldfastError as error:
            log.info("a link for a move: %s", error.message)
        finally:
            await link.close()

    async def _runner_for(self, link: HostLink, first: Message) -> TargetRunner:
        """Raises what declines it."""
        match first:
            case m.ResumeMove(move=move):
                runner = self._coming.get(move)
                if runner is None or runner.source_key != link.peer:
                    raise SessionNotMoved("nothing is known of that move")
                return runner
            case m.Propose():
                await self._check(link, first)
                session = SessionId(first.session)
                actors = link.admitted_by
                kept = KeptTarget(
                    session,
                    first,
                    link.peer,
                    str(actors[0]),
                    str(actors[1]),
                    time.time(),
                    TargetMove(first.epoch, first.move).kept(),
                    None,
                )
                runner = TargetRunner(self._daemon, self._book, kept, self._told)
                runner.agree()
                for before in [each for each in self._coming.values() if each.closed]:
                    if before.session == session:
                        del self._coming[before.move]
                self._coming[first.move] = runner
                return runner
        raise ProtocolViolation("a move does not begin so")

    async def _check(self, link: HostLink, proposed: m.Propose) -> None:
        daemon, session = self._daemon, link.session
        if proposed.session != session or proposed.move in self._coming:
            raise ProtocolViolation("the ticket is for another session or move")
        level = await daemon.highest_level()
        if not level.reaches(Level.MOVABLE):
            raise LevelUnavailable(
                "that host cannot restore memory", hint="`hold doctor` there says what it lacks"
            )
        if session in daemon.registry.live:
            raise SessionNotMoved("the session runs there already")
        for other in tuple(self._coming.values()):
            if other.session != session or other.machine.is_over:
                continue
            if other.source_key != link.peer or not other.call_off():
                raise SessionNotMoved("another move of it to that host is not settled")
        stored = daemon.store.tombstone(session)
        if stored is not None and not (stored.info.ending and stored.info.ending.moved_to):
            raise SessionNotMoved(f"that host has a session of this id, which {stored.info.ending}")
        try:
            uid = pwd.getpwnam(proposed.user).pw_uid
        except KeyError:
            uid = -1
        if uid != proposed.uid:
            raise SessionNotMoved(
                f"there is no user {proposed.user} with the id {proposed.uid} there"
            )

    # -- what is shown ----------------------------------------------------------------------------

    def about(self, session: SessionId) -> tuple[str, MigrationInfo | None]:
        """Superposition, and what is under way."""
        runner = self._latest(session)
        if runner is None:
            return Superposition.PRE_MIGRATION, None
        state, leaves = runner.state, isinstance(runner, SourceRunner)
        phase = phase_of(state)
        info = MigrationInfo(
            phase=str(phase or ""),
            state=str(state),
            leaves=leaves,
            host=runner.to if isinstance(runner, SourceRunner) else self._source_of(runner),
            reason=runner.machine.reason,
        )
        return str(superposition_of(state)), info

    def shown(self, session: SessionId) -> dict[str, Any]:
        """The same, as fields of `SessionInfo`."""
        superposition, info = self.about(session)
        return {} if info is None else {"superposition": superposition, "migration": info}

    def _source_of(self, runner: MoveRunner) -> str:
        return runner.source if isinstance(runner, TargetRunner) else ""

    def _latest(self, session: SessionId) -> SourceRunner | TargetRunner | None:
        leaving = self._leaving.get(session)
        if leaving is not None:
            return leaving
        coming = [each for each in self._coming.values() if each.session == session]
        return coming[-1] if coming else None

    def _told(self, runner: MoveRunner, reason: str) -> None:
        """How far it is, to everybody who hears of the session here."""
        assert isinstance(runner, SourceRunner | TargetRunner)
        if runner.machine.is_over:
            self._daemon.counts.moves[str(runner.state)] += 1
        live = self._daemon.registry.live.get(runner.session)
        if live is None:
            return
        superposition, info = self.about(runner.session)
        assert info is not None
        event = MigrationEvent(
            runner.session,
            live.spec.name,
            now(),
            info.phase,
            superposition,
            info.host,
            info.leaves,
            reason,
        )
        for operator in live.presence.recipients():
            operator.event(event)
