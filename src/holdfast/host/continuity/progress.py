"""How far a checkpoint or restore is, for whoever waits for it.

Nothing is said of what is quick: most of it is over before anybody could read it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from holdfast.host.clock import now
from holdfast.model.ids import SessionId
from holdfast.model.limits import PROGRESS_AFTER_S, PROGRESS_EVERY_S
from holdfast.wire.messages.checkpoints import ProgressEvent


class WorkProgress:
    """Of one piece of work on one session."""

    def __init__(
        self, session: SessionId, name: str, work: str, tell: Callable[[ProgressEvent], None]
    ) -> None:
        self._said = ProgressEvent(session, name, work, "", 0, 0, now())
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._measure: Callable[[], int] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._began = False  # to say something

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """While it goes on."""
        self._due = self._loop.call_later(PROGRESS_AFTER_S, self._say)
        try:
            yield
        finally:
            self._due.cancel()
            if self._began:
                self._tell(self._said.replace(at=now(), over=True))

    def phase(self, name: str, total: int = 0, measure: Callable[[], int] | None = None) -> None:
        """The next one begins. `measure`: looks how many bytes of it are done."""
        self._said = self._said.replace(phase=name, done=0, total=total)
        self._measure = measure

    def bytes(self, done: int, total: int) -> None:
        """Of this phase."""
        self._said = self._said.replace(done=done, total=total)

    def _say(self) -> None:
        self._began = True
        if self._measure is not None:
            with contextlib.suppress(OSError):  # what is measured has gone
                self._said = self._said.replace(done=self._measure())
        self._tell(self._said.replace(at=now()))
        self._due = self._loop.call_later(PROGRESS_EVERY_S, self._say)
