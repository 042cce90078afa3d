"""What the client needs of the outside: one connection at a time, and the time. For type checkers
only: importing it costs `typing`, which no `hold` verb needs."""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.wire.messages import session as m


class ClientIo(Protocol):
    """Carried out by asyncio, by a blocking socket, or by a test. An inbox is the driver's own: it
    comes from one of these methods, and goes back to others."""

    @property
    def patience_s(self) -> float:
        """How long to try to get back to a host that was lost."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    async def connect(self) -> None:
        """Return when there is a connection. What this raises is final: it has tried again."""

    async def exchange(self, request: m.Request) -> m.Answer:
        """One request on the connection there is, and its answer; a Failed is raised as the error
        it names, a lost connection as HostLost."""

    async def send(self, request: m.Request) -> Any:
        """A request that is answered more than once: the inbox of its answers."""

    async def attach(self, request: m.Attach) -> tuple[m.Attached, Any]:
        """Open a channel, whatever its number: the answer, and the inbox of what comes on it."""

    async def watch(self, session: str) -> Any:
        """The inbox of this session's events, its present state first; "": of all sessions."""

    async def next(self, inbox: Any, pause_s: float | None = None) -> m.Message | None:
        """The next message; None: nothing came for so long. Raises HostLost behind the last one,
        and FellBehind when the reader of a channel was too slow."""

    def release(self, inbox: Any) -> None:
        """Nobody reads it any longer."""
