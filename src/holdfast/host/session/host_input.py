"""Input that no operator sent: an emulator's answer, or a question to the shell's line editor.
It comes in like every other."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core import events as ev
from holdfast.core.session_state import State
from holdfast.host.clock import now
from holdfast.model.ids import HOST_ACTOR, HOST_OPERATOR


class HostInput:
    """Offers and numbers it, for one session."""

    def __init__(
        self,
        last_seq: int,
        state: Callable[[], State],
        offer: Callable[[ev.InputOffered], object],
    ) -> None:
        self.last_seq, self._state, self._offer = last_seq, state, offer

    def type(self, data: bytes) -> None:
        """Dropped if nothing may be typed now: who asked for it can ask again."""
        state = self._state()
        if not state.is_over and not state.is_stopped:
            self.last_seq += 1
            offered = HOST_ACTOR, now(), HOST_OPERATOR, self.last_seq, data, "answer"
            self._offer(ev.InputOffered(*offered))
