"""Tells those who watch a session when its state changes.

Nothing is looked at unless somebody watches. Then: a short while after output settles or input
goes in, and, because a program may begin to wait without printing anything, again at growing
intervals up to one second. The kernel offers no event for "now blocked reading the terminal".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.host.clock import now
from holdfast.model.limits import STATE_RECHECK_MAX_S, STATE_RECHECK_MIN_S, STATE_SETTLE_S
from holdfast.model.state import SessionState


class StateWatch:
    """Looks while anybody watches, and reports each change."""

    def __init__(
        self,
        look: Callable[[], SessionState],
        on_change: Callable[[SessionState], None],
        *,
        besides: Callable[[], object] = lambda: None,
    ) -> None:
        """`besides`: what is announced with the state, and may change without it."""
        self._look, self._on_change, self._besides = look, on_change, besides
        self._known_besides: object = None
        self.watched = False
        self._known: SessionState | None = None
        self._seen_at: float | None = None  # when that began; None: not seen
        self._interval = STATE_RECHECK_MIN_S
        self._timer: asyncio.TimerHandle | None = None

    def set_watched(self, watched: bool) -> None:
        if watched == self.watched:
            return
        self.watched = watched
        if watched:
            self._known = self._seen_at = None
            self._check()
        else:
            self.stop()

    def current_state(self) -> SessionState:
        """For somebody who asks, or begins to watch. The others hear of it too if it is news: a
        change back would otherwise be no change to them, nor to whoever asked."""
        state = self._look()
        if self.watched and state is not self._known and not state.is_over:
            self._note(state)
            self._on_change(state)
            self.look_soon()
        return state

    def seen_at(self, state: SessionState) -> float | None:
        """When it came to be in this state; None: nobody watched then, or it is in another."""
        return self._seen_at if self.watched and state is self._known else None

    def _note(self, state: SessionState) -> None:
        if state is not self._known:
            self._seen_at = None if self._known is None else now()
        self._known, self._known_besides = state, self._besides()

    def look_soon(self) -> None:
        """Something happened: look soon, and often for a while."""
        if self.watched:
            self._interval = STATE_RECHECK_MIN_S
            self._arm(STATE_SETTLE_S)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay: float) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(delay, self._check)

    def _check(self) -> None:
        state = self._look()
        if state.is_over:
            return
        if state is not self._known or self._besides() != self._known_besides:
            self._note(state)
            self._interval = STATE_RECHECK_MIN_S
            self._on_change(state)
        self._arm(self._interval)
        self._interval = min(self._interval * 2, STATE_RECHECK_MAX_S)
