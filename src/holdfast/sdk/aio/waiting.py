"""Bounded waiting, and waiting for a port: the kernel has no event for it, so the graph is looked
at, less and less often. The other waits are those of `client_core`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from holdfast.model.errors import TimedOut
from holdfast.model.graph import Process
from holdfast.sdk.client_core.retry_policy import PORT_FIRST_S, PORT_MAX_S

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

T = TypeVar("T")


async def within(work: Awaitable[T], timeout: float | None, what: str) -> T:
    """Raises TimedOut; whatever ran goes on."""
    try:
        return await asyncio.wait_for(work, timeout)
    except TimeoutError:
        raise TimedOut(
            f"{what} did not come within {timeout:g} s", hint="its state and screen tell why"
        ) from None


async def port(session: Session, number: int) -> Process:
    pause = PORT_FIRST_S
    while True:
        found = (await session.graph()).listening(number)
        if found is not None:
            return found
        await asyncio.sleep(pause)
        pause = min(PORT_MAX_S, pause * 1.5)
