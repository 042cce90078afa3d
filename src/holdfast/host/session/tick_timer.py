"""Wakes a session when time alone would change something: a turn that expires, rights that end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.host.clock import now

_EARLIEST_S = 0.05  # what is due at once may be due again at once


class TickTimer:
    """Of one session."""

    def __init__(
        self, wakes_at: Callable[[float], float | None], tick: Callable[[], object]
    ) -> None:
        self._wakes_at, self._tick = wakes_at, tick
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: float | None = None  # when the timer is to go off
        self._stopped = False

    def start(self) -> None:
        """Tick once at the beginning: rights may have ended while no daemon was there to see it."""
        self._loop.call_soon(self._due)
        self.schedule()

    def schedule(self) -> None:
        """Wake when time alone would change something. The holder's keys only put that off.

        A moment once waited for is not dropped before it was acted on: asked a little later, when
        it has just passed, the session names only what comes after it."""
        due = self._wakes_at(now())
        if self._awaited is not None and (due is None or self._awaited < due):
            due = self._awaited
        self._awaited = due
        self._cancel()
        if due is not None and not self._stopped:
            self._timer = self._loop.call_later(max(_EARLIEST_S, due - now()), self._due)

    def _due(self) -> None:
        self._timer, awaited = None, self._awaited
        if self._stopped:
            return
        if awaited is not None and awaited <= now():  # timers go by another clock: it may be early
            self._awaited = None
        self._tick()

    def stop(self) -> None:
        self._stopped = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
