"""Calls at the exec gate that a policy holds: each waits for an approval, like every other effect.

One that was held before a daemon died is asked about again, and finds its approval pending.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from holdfast.model.errors import HoldfastError
from holdfast.model.gate import ProposedEffect, Verdict
from holdfast.model.ids import ActorId


class HeldCalls:
    """Of one session, by the kernel's number for each."""

    def __init__(
        self,
        ask: Callable[[ProposedEffect, Verdict], Awaitable[tuple[ActorId, ...]]],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """`ask` gives who approved, when enough have; it raises if it is denied, or expires."""
        self._ask, self._spawn = ask, spawn
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._decided: dict[str, tuple[ActorId, ...] | None] = {}

    def hold(
        self, key: str, effect: ProposedEffect, verdict: Verdict, decided: Callable[[], None]
    ) -> tuple[ActorId, ...] | None:
        """Who approved by now; None: it was denied, has expired, or nobody can be asked."""
        if key in self._decided:
            return self._decided.pop(key)
        if key not in self._waiting:
            self._waiting[key] = self._spawn(self._wait(key, effect, verdict, decided))
        return ()

    def drop(self, key: str) -> None:
        """It will not happen, whatever is decided."""
        self._decided.pop(key, None)
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            waiting.cancel()

    async def _wait(
        self, key: str, effect: ProposedEffect, verdict: Verdict, decided: Callable[[], None]
    ) -> None:
        approved: tuple[ActorId, ...] | None = None
        with contextlib.suppress(HoldfastError):
            approved = await self._ask(effect, verdict)
        self._waiting.pop(key, None)
        self._decided[key] = approved
        decided()
