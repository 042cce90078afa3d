"""An agent beside a browser: the browser's driver has this thread's event loop, so the agent's
client has a thread with one of its own. Calls block."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from e2e.agents import PATIENCE_S, Agent, agent
from process.commanding import Hold


class AgentThread:
    """A connected agent, for as long as the block lasts."""

    def __init__(self, hold: Hold, name: str, *words: str) -> None:
        self._how = (hold, name, words)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._leave = asyncio.Event()
        self._agent: Future[Agent] = Future()

    def __enter__(self) -> Self:
        self._thread.start()
        self._gone = asyncio.run_coroutine_threadsafe(self._stay(), self._loop)
        self._agent.result(PATIENCE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        self._gone.result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _stay(self) -> None:
        hold, name, words = self._how
        try:
            async with agent(hold, name, *words) as connected:
                self._agent.set_result(connected)
                await self._leave.wait()
        except BaseException as error:
            if not self._agent.done():
                self._agent.set_exception(error)
            raise

    def begin(self, tool: str, **arguments: Any) -> Future[dict[str, Any]]:
        """A call that goes on."""
        called = self._agent.result()(tool, **arguments)
        return asyncio.run_coroutine_threadsafe(called, self._loop)

    @property
    def instructions(self) -> str:
        return self._agent.result().client.instructions or ""

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        called = self._agent.result().refused(tool, **arguments)
        return asyncio.run_coroutine_threadsafe(called, self._loop).result(PATIENCE_S)

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.begin(tool, **arguments).result(PATIENCE_S)
