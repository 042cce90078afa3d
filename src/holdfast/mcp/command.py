"""A command line that an agent submitted: on its way to the shell, running, or ended. It is here
before anybody waits for it, so who is cut off or tired of waiting finds it again by its handle."""

from __future__ import annotations

import asyncio
import secrets

from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Result


class AgentCommand:
    """One of them."""

    def __init__(self, session: Session, line: str, intent: str) -> None:
        self.line = line
        self._running: Running | None = None
        self._task = asyncio.create_task(self._run(session, intent))
        self._task.add_done_callback(_looked_at)

    async def _run(self, session: Session, intent: str) -> Result:
        key = secrets.token_hex(8)
        self._running = await session.start(self.line, key=key, intent=intent)
        return await self._running.result()

    @property
    def begun(self) -> bool:
        """Whether the shell has begun it."""
        return self._running is not None

    @property
    def done(self) -> bool:
        """Whether what became of it is known: it ended, or was refused."""
        return self._task.done()

    async def result(self, seconds: float) -> Result | None:
        """What became of it. None: after so many seconds nothing yet, and it goes on."""
        await asyncio.wait((self._task,), timeout=seconds)
        return self._task.result() if self.done and not self._task.cancelled() else None

    def printed(self) -> str:
        return "" if self._running is None else self._running.printed()

    def forget(self) -> None:
        """Follow it no longer. In the session it goes on."""
        self._task.cancel()
        if self._running is not None:
            self._running.forget()


def _looked_at(task: asyncio.Task[Result]) -> None:
    """Whoever submitted it may be gone: it is no mistake that nobody asks."""
    if not task.cancelled():
        task.exception()
