"""Abandoned sessions are reclaimed (M9): looks at every live session now and then, warns of those
that core/continuity/idle.py finds due, and evicts or ends them when the warning has had its time.

What a look costs is bounded: a cheap one at each session, a thorough one (its sockets) only at
those that are due. It is the policy of the host that acts here, and says so in the session's
journal; with `hold reap` it acts for whoever asked, without waiting any longer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from holdfast.adapters.proc.work import work_of
from holdfast.core import events as ev
from holdfast.core.continuity import idle
from holdfast.core.continuity.idle import Due, IdleAction, IdlePolicy, Standing, Use
from holdfast.core.session import SessionMachine
from holdfast.host.clock import now
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.presence import Presence
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.graph import Evidence, Graph
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.info import IdleSession
from holdfast.model.limits import REAP_AT_ONCE, REAP_LOOK_MAX_S, REAP_LOOK_MIN_S
from holdfast.model.state import Level, SessionState
from holdfast.wire.messages import session as m

log = logging.getLogger(__name__)


class ReapedSession(Protocol):
    """A live session, as far as it may be reaped."""

    spec: SessionSpec
    core: SessionMachine
    journal: SessionRecord
    presence: Presence

    @property
    def last_used_at(self) -> float: ...

    @property
    def is_closed(self) -> bool: ...

    def state(self) -> SessionState: ...

    def evidence(self) -> Evidence: ...

    async def look(self) -> Graph:
        """The whole live graph, made in a thread."""
        ...

    def handle(self, event: ev.SessionEvent) -> object: ...


S_contra = TypeVar("S_contra", bound=ReapedSession, contravariant=True)
S = TypeVar("S", bound=ReapedSession)


class Evicts(Protocol[S_contra]):
    """Takes a session out of memory without ending it."""

    def can_evict(self, session: S_contra, /) -> bool: ...

    async def evict(self, session: S_contra, /, actor: str) -> None:
        """It is asleep when this returns. Raises HoldfastError; then it runs on."""
        ...


class Reaper(Generic[S]):
    """Of one host."""

    def __init__(
        self, sessions: Mapping[SessionId, S], policy: IdlePolicy, evicts: Evicts[S]
    ) -> None:
        self._sessions, self._policy, self._evicts = sessions, policy, evicts
        self._standing: dict[SessionId, Standing] = {}
        self._one_at_a_time = asyncio.Lock()
        self._reaped: Counter[IdleAction] = Counter()
        self.failed = 0

    @property
    def reaped(self) -> Mapping[IdleAction, int]:
        """Sessions by this daemon, by what became of them."""
        return self._reaped

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._pause())
            try:
                await self.look()
                async with self._one_at_a_time:
                    await self._act()
            except Exception:
                log.exception("reaping")

    async def look(self) -> None:
        """At every session: cheap, and never long without a pause."""
        for live in list(self._sessions.values()):
            self._look_at(live)
            await asyncio.sleep(0)
        for gone in set(self._standing) - set(self._sessions):
            del self._standing[gone]

    async def reap(self, actor: str, *, dry_run: bool) -> tuple[IdleSession, ...]:
        """Those that are due, and what became of each, or would. Nobody is warned first: whoever
        asks has been."""
        await self.look()
        async with self._one_at_a_time:
            found = []
            for each in self._due():
                live = self._sessions.get(each.id)
                if live is None or not await self._still_idle(live):
                    continue
                idle_since = self._standing[each.id].idle_since
                told = _told(live, each, idle_since)
                if not dry_run and each.action is not IdleAction.KEEP:
                    failed = await self._reap(live, each, actor)
                    told = told.replace(reaped=not failed, why=failed or told.why)
                found.append(told)
            return tuple(found)

    def population(self) -> dict[str, int]:
        """Live sessions by what reaping makes of them, for metrics."""
        idle_now = [each for each in self._standing.items() if each[1].is_idle]
        return {
            "idle": len(idle_now),
            "due": len(self._due()),
            "pinned": sum(live.core.pinned for live in self._sessions.values()),
            "evictable": sum(
                self._evicts.can_evict(live)
                for session, _ in idle_now
                if (live := self._sessions.get(session)) is not None
            ),
        }

    # -- looking ------------------------------------------------------------------------------

    def _pause(self) -> float:
        """Often enough for the shortest threshold."""
        times = [each for each in (*self._policy.after_s.values(), self._policy.warn_s) if each]
        return min(REAP_LOOK_MAX_S, max(REAP_LOOK_MIN_S, min(times, default=REAP_LOOK_MAX_S) / 4))

    def _look_at(self, live: ReapedSession) -> None:
        if live.is_closed:
            return
        session, before = live.spec.id, self._standing.get(live.spec.id)
        self._standing[session] = idle.look(before, self._use_of(live))

    def _use_of(self, live: ReapedSession, listening: str = "") -> Use:
        work = work_of(live.spec.place, live.evidence().foreground_pgid)
        return Use(
            at=now(),
            state=live.state(),
            operators=live.core.attachments.count(),
            last_used_at=live.last_used_at,
            cpu_s=work.cpu_s,
            working=work.at_work,
            listening=listening,
            approvals=len(live.core.approvals.pending),
            forwarded=live.core.forwards.count(),
        )

    async def _still_idle(self, live: ReapedSession) -> bool:
        """A thorough look: at its sockets too."""
        graph = await live.look()
        if live.is_closed:
            return False
        listening = next(
            (
                socket.local
                for process in graph.processes
                for socket in process.sockets
                if socket.state == "listen" and socket.kind == "tcp"
            ),
            "",
        )
        before = self._standing.get(live.spec.id)
        standing = idle.look(before, self._use_of(live, listening))
        self._standing[live.spec.id] = standing
        return standing.is_idle

    def _due(self) -> tuple[Due, ...]:
        candidates = [
            idle.Candidate(
                session,
                live.spec.level,
                live.core.pinned,
                self._evicts.can_evict(live),
                self._standing[session],
            )
            for session, live in self._sessions.items()
            if session in self._standing and not live.is_closed
        ]
        return idle.due(candidates, self._policy, now())

    # -- acting -------------------------------------------------------------------------------

    async def _act(self) -> None:
        done = 0
        for each in self._due():
            live = self._sessions.get(each.id)
            if each.action is IdleAction.KEEP or live is None or done >= REAP_AT_ONCE:
                continue
            if not each.warn and each.at > now():
                continue
            if not await self._still_idle(live):
                continue
            if each.warn:
                self._warn(live, each)
            else:
                done += 1
                await self._reap(live, each, HOST_ACTOR)

    def _warn(self, live: S, due: Due) -> None:
        """In its journal, and to everybody who hears of it."""
        standing = self._standing[due.id]
        self._standing[due.id] = standing.replace(warned_at=now())
        entry = entries.ReapWarnedEntry(due.action.value, due.why, standing.idle_since, due.at)
        live.journal.happened(HOST_ACTOR, entry)
        self._tell(live, due, "warned")
        log.info("%s is idle (%s): %s at %.0f", live.spec.name, due.why, due.action, due.at)

    async def _reap(self, live: S, due: Due, actor: str) -> str:
        """Gives why it failed; "": it did not."""
        standing = self._standing[due.id]
        entry = entries.ReapedEntry(due.action.value, due.why, standing.idle_since)
        live.journal.happened(actor, entry, forced=True)
        self._tell(live, due, "reaping")
        try:
            if due.action is IdleAction.EVICT:
                await self._evicts.evict(live, actor)
            else:
                live.handle(ev.EndAsked(HOST_ACTOR, now()))
        except HoldfastError as error:
            self.failed += 1
            # Not again at once: it has the whole time of a warning before the next try.
            self._standing[due.id] = standing.replace(warned_at=now())
            log.warning("%s was not reaped: %s", live.spec.name, error.message)
            return error.message
        self._reaped[due.action] += 1
        log.info("%s was reaped (%s): %s", live.spec.name, due.why, due.action)
        return ""

    def _tell(self, live: S, due: Due, step: str) -> None:
        event = m.ReapEvent(due.id, live.spec.name, step, due.action.value, due.why, now(), due.at)
        for operator in live.presence.recipients():
            operator.event(event)


def _told(live: ReapedSession, due: Due, idle_since: float) -> IdleSession:
    why = due.why
    if due.action is IdleAction.KEEP:
        movable = live.spec.level.reaches(Level.MOVABLE)
        why = f"{why}; " + (
            "this host cannot evict it" if movable else "`idle_end` in config.toml would end it"
        )
    return IdleSession(
        due.id, live.spec.name, live.spec.level, idle_since, due.action.value, why, False
    )
