"""When a refused action is tried again: only as its form says, only after a refusal that will
perhaps be over soon, and never after the shell may have read the line."""

from __future__ import annotations

from holdfast.model.action import ActionRetry
from holdfast.model.errors import HoldfastError, RateLimited, SessionBusy, TurnHeld
from holdfast.model.limits import ACTION_PAUSE_MAX_S

# Nothing was typed. A turn that was taken from its holder (`turn_lost`) is not among these: whoever
# took it wanted it to stop.
_RETRIED = (TurnHeld.code, SessionBusy.code, RateLimited.code)


class Attempts:
    """Of one action."""

    def __init__(self, retry: ActionRetry) -> None:
        self._left, self._pause = retry.times, retry.backoff_s
        self.codes: list[str] = []  # of the refusals so far

    def after(self, refusal: HoldfastError, *, taken: bool) -> float:
        """How long to wait before the next one; raises the refusal when there is none. `taken`: the
        host has said that it typed the line."""
        if taken or refusal.code not in _RETRIED or not self._left:
            raise refusal
        pause = min(self._pause, ACTION_PAUSE_MAX_S)
        self._left, self._pause = self._left - 1, 2 * pause
        self.codes.append(refusal.code)
        return pause
