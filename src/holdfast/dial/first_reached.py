"""Several routes to one host: use the first that works.

They are tried in order, each with a head start before the next. So a route that hangs (a stopped
relay, a network that drops packets) costs little time, and only one that works is used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.model.errors import HoldfastError, RelayUnreachable

W = TypeVar("W")
T = TypeVar("T")

HEAD_START_S = 1.5  # far longer than a working relay needs, far shorter than the time-out


async def first_of(
    ways: Sequence[W],
    go: Callable[[W], Awaitable[T]],
    discard: Callable[[T], None],
    head_start_s: float = HEAD_START_S,
) -> T:
    """The result of `go` for the first route that worked; `discard` gets the results of others that
    came too late. When all have failed, raises the first error that a peer answered with, or else
    the first error. `ways` must not be empty."""
    left, failures = deque(ways), list[HoldfastError]()
    running: set[asyncio.Future[T]] = set()
    try:
        while left or running:
            if left:
                running.add(asyncio.ensure_future(go(left.popleft())))
            done, running = await asyncio.wait(
                running,
                timeout=head_start_s if left else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            arrived = [each for each in done if each.exception() is None]
            for late in arrived[1:]:
                discard(late.result())
            if arrived:
                return arrived[0].result()
            for each in done:
                error = each.exception()
                if not isinstance(error, HoldfastError):
                    assert error is not None
                    raise error
                failures.append(error)
    finally:
        await _give_up(running, discard)
    told = [error for error in failures if not isinstance(error, RelayUnreachable)]
    raise (told or failures)[0]


async def _give_up(running: set[asyncio.Future[T]], discard: Callable[[T], None]) -> None:
    for each in running:
        each.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if not isinstance(outcome, BaseException):
            discard(outcome)
