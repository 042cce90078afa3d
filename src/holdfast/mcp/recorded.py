"""Where a session's journal ends, found without side effects. `catch_up` reports it too, but it
counts as a look and asks the shell for its prompt text, which makes the shell print."""

from __future__ import annotations

from contextlib import aclosing

from holdfast.mcp.bounding import ROWS_MAX
from holdfast.sdk.aio.session import Session


async def head(session: Session, known: int = 1) -> int:
    """The number of the last record. `known`: a number that exists. Found by steps that double,
    then halve."""
    step = ROWS_MAX
    while await _has(session, known + step):
        known, step = known + step, 2 * step
    while step > ROWS_MAX:
        step //= 2
        if await _has(session, known + step):
            known += step
    async for entry in session.journal(since=known):
        known = entry.seq
    return known


async def _has(session: Session, seq: int) -> bool:
    async with aclosing(session.journal(since=seq)) as found:
        async for _ in found:
            return True
    return False
