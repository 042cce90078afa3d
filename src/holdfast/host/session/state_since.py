"""Since when a session is halted or fenced. Of other states its commands and its output tell, and
of a stopped job whoever watched when it was stopped (state_watch.py)."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.session_state import State
from holdfast.host.clock import now
from holdfast.model.record import Record


class SavedSince(Record):
    """What a new daemon goes on with."""

    state: str  # `halted`, `fenced`, or empty: neither
    at: float | None  # seconds since 1970; None: not known


class StateSince:
    """Of one session. Looks whenever it may have changed."""

    def __init__(self, decided: Callable[[], State], kept: SavedSince | None) -> None:
        self._decided = decided
        self._is = SavedSince(_name(decided()), None)
        if kept is not None and kept.state == self._is.state:
            self._is = kept

    def look(self) -> SavedSince:
        name = _name(self._decided())
        if name != self._is.state:
            self._is = SavedSince(name, now())
        return self._is


def _name(state: State) -> str:
    return "fenced" if state.is_fenced else "halted" if state.is_halted else ""
