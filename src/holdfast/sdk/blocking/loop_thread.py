"""The thread behind the blocking face of the SDK: one event loop, in which the async calls run
while the caller waits. One for each connection; it ends with it.

Not here: what the calls are (`__init__.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_S = 5.0  # for what is still going on to be cancelled


class LoopThread:
    """Runs async work for callers that wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="holdfast", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_STOP_S))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. A caller that is interrupted (^C) cancels it."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def each(self, stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Its items, as they come; it is closed when the caller stops asking."""
        try:
            while True:
                try:
                    item = self.wait(_next(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():
                self.wait(stream.aclose())

    def call(self, work: Callable[[], None]) -> None:
        """Do this there; it is not waited for."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_STOP_S)


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream)
