"""A session's state, told to those who watch it when it changes.

Nothing is looked at unless somebody watches. Then: a short while after output settles or input
goes in, and, because a program may begin to wait without printing anything, again at growing
intervals up to one second. The kernel offers no event for "now blocked reading the terminal".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.model.limits import STATE_RECHECK_MAX_S, STATE_RECHECK_MIN_S, STATE_SETTLE_S
from holdfast.model.state import SessionState

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession


class StateWatch:
    """Looks while anybody watches, and tells the daemon of each change."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self.watched = False
        self._known: SessionState | None = None
        self._interval = STATE_RECHECK_MIN_S
        self._timer: asyncio.TimerHandle | None = None

    def set_watched(self, watched: bool) -> None:
        if watched == self.watched:
            return
        self.watched = watched
        if watched:
            self._known = None
            self._look()
        else:
            self.stop()

    def told(self) -> SessionState:
        """The state as it is told to somebody new at this moment. What the others were told last
        is brought up to it: a change back from here would otherwise be no change to anybody."""
        state = self._live.state()
        if self.watched and state is not self._known:
            self._known = state
            self._live.daemon.operators.state_changed(self._live, state)
            self.look_soon()
        return state

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
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _look(self) -> None:
        if self._live.ending is not None:
            return
        state = self._live.state()
        if state is not self._known:
            self._known = state
            self._interval = STATE_RECHECK_MIN_S
            self._live.daemon.operators.state_changed(self._live, state)
        self._arm(self._interval)
        self._interval = min(self._interval * 2, STATE_RECHECK_MAX_S)
