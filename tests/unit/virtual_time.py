"""An event loop in which waiting takes no time: when nothing is ready, its clock is simply later.
For what does no I/O but waits a lot."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SOME_TIME = 1000.0  # a machine that has been up for a while


class _Selector(selectors.SelectSelector):
    """Looks without waiting, and moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = SOME_TIME

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits for somebody else"
            self.now += max(timeout, 0.0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class VirtualClock:
    """As lease_runner.Clock, by the running loop's time, which may also be let jump: a machine that
    slept. Alarms do not ring for that, as those of an event loop do not."""

    boot_id = "this boot"

    def __init__(self) -> None:
        self.slept = 0.0

    def now(self) -> float:
        return asyncio.get_running_loop().time() + self.slept

    def alarm(self, call: Callable[[], None]) -> VirtualAlarm:
        return VirtualAlarm(self, call)


class VirtualAlarm:
    def __init__(self, clock: VirtualClock, call: Callable[[], None]) -> None:
        self._clock, self._call = clock, call
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        if self._handle is not None:
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._handle = None
        if at is not None:
            self._handle = loop.call_at(at - self._clock.slept, self._call)

    def close(self) -> None:
        self.set(None)


def run(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story())
