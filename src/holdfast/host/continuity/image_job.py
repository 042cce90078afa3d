"""One save or load at work in threads: how far it is, and whether it is still wanted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Progress = Callable[[int, int], None]  # bytes done, of how many; called on the event loop
T = TypeVar("T")
R = TypeVar("R")

_REPORT_S = 0.05  # progress is told so often: more than a screen shows
_ALONE = 24  # chunks: a few megabytes
_AHEAD = 16  # chunks in memory at once, of a megabyte at most


class JobStopped(Exception):
    """Nobody waits for the result any longer."""


class ImageJob:
    """Made on the event loop, used in threads."""

    def __init__(self, workers: Executor, progress: Progress | None) -> None:
        self._workers, self._progress = workers, progress
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._stopped = False
        self._done, self._total, self._told_at = 0, 0, 0.0

    def stop(self) -> None:
        self._stopped = True

    def begin(self, total: int) -> None:
        self._total = total
        self._tell()

    def advance(self, size: int) -> None:
        with self._lock:
            self._done += size
            due = time.monotonic() - self._told_at >= _REPORT_S
        if due:
            self._tell()

    def finish(self) -> None:
        self._done = self._total
        self._tell()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        if self._progress is not None:
            self._loop.call_soon_threadsafe(self._progress, self._done, self._total)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results in order. The first are worked out here, and an idle shell has no more than
        these: several threads take turns, and for so little that takes longer than the work. The
        others by several threads, a bounded number ahead. When it ends early, what had begun has
        ended too."""
        ahead: deque[Future[R]] = deque()
        try:
            for number, item in enumerate(items):
                if self._stopped:
                    raise JobStopped
                if number < _ALONE:
                    yield work(item)
                    continue
                ahead.append(self._workers.submit(work, item))
                if len(ahead) >= _AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for begun in ahead:
                begun.cancel()
            for begun in ahead:
                if not begun.cancelled():
                    begun.exception()
