"""A connection to NATS with the settings we need, and the care its client needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nats.aio.client import Client
from nats.errors import Error as NatsError

from holdfast.model.limits import COORDINATION_CALL_S

FAILURES = (NatsError, asyncio.TimeoutError, OSError)
RETRY_S = 0.2  # between attempts to connect, or while a cluster chooses its leader
_T = TypeVar("_T")


async def connected(
    urls: Sequence[str],
    *,
    lost: Callable[[], Awaitable[None]] | None = None,
    found: Callable[[], Awaitable[None]] | None = None,
) -> Client:
    """A client that reconnects by itself, forever. Raises one of FAILURES if no server answers. A
    paused server is noticed by pings each second, not by the client's default of two minutes."""
    client = Client()
    try:
        await client.connect(
            list(urls),
            name="holdfast",
            connect_timeout=COORDINATION_CALL_S,  # type: ignore[arg-type]
            ping_interval=1,
            max_outstanding_pings=2,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RETRY_S,  # type: ignore[arg-type]
            error_cb=_ignored,
            no_echo=True,  # nobody listens to itself
            disconnected_cb=lost,
            reconnected_cb=found,
        )
    except BaseException:
        await client.close()
        raise
    return client


def shown(urls: Sequence[str]) -> str:
    """For people: a URL may carry a password."""
    return ", ".join(url.rpartition("@")[2].rpartition("://")[2] for url in urls)


async def noticing_cancellation(call: Awaitable[_T]) -> _T:
    """nats-py swallows a cancellation that arrives while it writes to its socket; the canceller
    would wait forever."""
    try:
        return await call
    finally:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError


async def _ignored(_error: Exception) -> None:
    """Ignored: each call reports its own errors, and listeners notice the silence."""
