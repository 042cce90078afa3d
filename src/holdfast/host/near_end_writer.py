"""Writes the near ends of this host's sessions (near_end.py) to disk: soon after something
changed, and never more often than a disk and a processor bear. A session in which nothing happens
costs nothing here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from holdfast.host.near_end import NearEnd
from holdfast.host.session.near_look import NearLook, NearSession
from holdfast.model.errors import StorageFailed
from holdfast.model.ids import SessionId
from holdfast.model.limits import NEAR_END_AT_ONCE, NEAR_END_EVERY_S, NEAR_END_SETTLE_S

log = logging.getLogger(__name__)


class WatchedSession(NearSession, Protocol):
    """A live session that is written down now and then."""

    @property
    def is_closed(self) -> bool: ...


Looks = list[tuple[SessionId, NearLook]]
InThread = Callable[[Callable[[Looks], None], Looks], Awaitable[None]]


class NearEndStore(Protocol):
    """Where they are kept."""

    def save_near_end(self, session: SessionId, near: NearEnd) -> None: ...

    def near_end(self, session: SessionId) -> NearEnd | None: ...

    def forget_near_end(self, session: SessionId) -> None: ...


class NearEndWriter:
    """Of one host."""

    def __init__(
        self,
        store: NearEndStore,
        look: Callable[[WatchedSession], NearLook],
        *,
        in_thread: InThread = asyncio.to_thread,
    ) -> None:
        self._store, self._look, self._in_thread = store, look, in_thread
        self._changed: dict[SessionId, WatchedSession] = {}  # the longest waiting first
        self._written_at: dict[SessionId, float] = {}  # of those written a moment ago
        self._timer: asyncio.TimerHandle | None = None
        self._round: asyncio.Task[None] | None = None
        self._one_at_a_time = threading.Lock()  # two would write the same file beside
        self._failed = False

    def changed(self, live: WatchedSession) -> None:
        """Called at every burst of output: cheap when it is known already."""
        session = live.spec.id
        if session in self._changed:
            return
        self._changed[session] = live
        if self._timer is None and self._round is None:
            self._arm()

    def write_now(self, live: WatchedSession) -> None:
        """Before this daemon leaves it or loses it. What cannot be written is logged."""
        self._changed.pop(live.spec.id, None)
        self._write([(live.spec.id, self._look(live))])

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            self._round.cancel()

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(NEAR_END_SETTLE_S, self._begin_round)

    def _begin_round(self) -> None:
        self._timer = None
        self._round = asyncio.get_running_loop().create_task(self._write_round())

    async def _write_round(self) -> None:
        try:
            now = asyncio.get_running_loop().time()
            recent = {
                session: at
                for session, at in self._written_at.items()
                if now - at < NEAR_END_EVERY_S
            }
            self._written_at = recent
            due = [each for each in self._changed if each not in recent][:NEAR_END_AT_ONCE]
            lives = [self._changed.pop(session) for session in due]
            looks = [(each.spec.id, self._look(each)) for each in lives if not each.is_closed]
            if looks:
                self._written_at |= {session: now for session, _ in looks}
                await self._in_thread(self._write, looks)
            for live in lives:
                if live.is_closed and live.core.state.is_over and not live.core.state.is_lost:
                    self._store.forget_near_end(live.spec.id)  # it ended while it was written
        except Exception:
            log.exception("near ends")
        finally:
            self._round = None
            if self._changed and self._timer is None:
                self._arm()

    def _write(self, looks: Looks) -> None:
        for session, seen in looks:
            try:
                with self._one_at_a_time:
                    near = seen.finished(partial(self._store.near_end, session))
                    self._store.save_near_end(session, near)
                self._failed = False
            except StorageFailed as error:
                if not self._failed:  # once, and not every five seconds
                    log.error("what is known of %s is not written: %s", session, error)
                self._failed = True
