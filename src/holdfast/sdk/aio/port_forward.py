"""A port of a session's programs on this machine, for as long as a block of code runs.

    async with session.forward(3000) as forward:
        page = await fetch(forward.url)

How connections are carried, and what happens when the host is lost: `sdk/forward.py`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from holdfast.model.errors import HoldfastError
from holdfast.model.state import Ending
from holdfast.sdk.forward import Forwarder, ForwardEvent, ForwardRefused


class PortForward:
    """A port that is forwarded. Made by `Session.forward`."""

    def __init__(self, forwarder: Forwarder, of: int, local: int | None, address: str) -> None:
        self._forwarder, self._of, self._local = forwarder, of, local
        self.address = address  # where it listens here
        self.port = 0  # and at which port
        self.refused = ""  # why the host refused a connection, the last time it did
        self._running: asyncio.Task[Ending] | None = None

    @property
    def url(self) -> str:
        """The address here as that of a web page."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}"

    async def wait(self) -> Ending:
        """Until the session ends. Raises what keeps it from going on: the right to it, first of
        all."""
        assert self._running is not None, "it is forwarded inside its block"
        return await asyncio.shield(self._running)

    async def __aenter__(self) -> Self:
        self._forwarder.tell = self._on_event
        try:
            await self._forwarder.start()
            self.address, self.port = await self._forwarder.listen(
                self._of, self._local, self.address
            )
        except BaseException:
            self._forwarder.close()
            raise
        self._running = asyncio.create_task(self._forwarder.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._running is not None
        self._running.cancel()
        with suppress(asyncio.CancelledError, HoldfastError):  # `wait` tells of it
            await self._running
        self._forwarder.close()

    def _on_event(self, event: ForwardEvent) -> None:
        if isinstance(event, ForwardRefused):
            self.refused = event.message
