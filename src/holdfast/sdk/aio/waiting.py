"""Until a session does what is waited for: a state, a text, a port, its end.

States and the end come as events. A text is looked for on the screen and in what is printed after
it. For ports the kernel has no event: the graph is looked at, less and less often.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from holdfast.model.errors import InvalidArgument, SessionEnded, TimedOut
from holdfast.model.graph import Process
from holdfast.model.state import Ending, SessionState
from holdfast.sdk import events as ev
from holdfast.sdk.aio.values import Piece
from holdfast.sdk.plain_text import PlainText

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

T = TypeVar("T")

_PAUSE_S = 0.2  # output that pauses so long has settled: then the screen is looked at
_TEXT_KEPT_CHARS = 4096  # of what was printed: a match may begin in one piece and end in another
_PORT_FIRST_S, _PORT_LAST_S = 0.05, 0.5  # between two looks at the graph


async def within(work: Awaitable[T], timeout: float | None, what: str) -> T:
    """Raises TimedOut; whatever ran goes on."""
    try:
        return await asyncio.wait_for(work, timeout)
    except TimeoutError:
        raise TimedOut(
            f"{what} did not come within {timeout:g} s", hint="its state and screen tell why"
        ) from None


async def state(session: Session, wanted: frozenset[SessionState]) -> SessionState:
    async with aclosing(session.events()) as events:
        async for event in events:
            if isinstance(event, ev.StateChanged) and event.state in wanted:
                return event.state
            if isinstance(event, ev.Ended):
                if SessionState.ENDED in wanted:
                    return SessionState.ENDED
                raise SessionEnded(f"{session.name} ended before that: {event.ending}")
    raise AssertionError("events end with the session")


async def ended(session: Session) -> Ending:
    async with aclosing(session.events()) as events:
        async for event in events:
            if isinstance(event, ev.Ended):
                return event.ending
    raise AssertionError("events end with the session")


def pattern(text: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE) if isinstance(text, str) else text
    except re.error as error:
        raise InvalidArgument(
            f"not a regular expression: {str(text)[:80]!r}: {error}",
            hint="escape special characters, as with re.escape",
        ) from error


async def text(session: Session, wanted: re.Pattern[str], since: int | None) -> str:
    """The text that matched; by lines. With `since`: only in the output from there on."""
    look = since is None
    printed, kept = PlainText(), ""
    if since is None:
        screen = await session.screen()
        if found := wanted.search(screen.text):
            return found.group()
        since = screen.offset
    async with aclosing(_with_pauses(session.output(since))) as pieces:
        async for piece in pieces:
            if piece is not None:
                kept = kept[-_TEXT_KEPT_CHARS:] + printed.feed(piece.data)
                found = wanted.search(kept)
            else:
                found = wanted.search((await session.screen()).text) if look else None
            if found:
                return found.group()
    raise SessionEnded(f"{session.name} ended before that text came")


async def _with_pauses(pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece | None, None]:
    """None, once, when output came and then paused."""
    came = False
    ahead: asyncio.Task[Piece] | None = None
    try:
        while True:
            ahead = ahead or asyncio.create_task(_next(pieces))
            if (await asyncio.wait((ahead,), timeout=_PAUSE_S if came else None))[0]:
                came = True
                try:
                    yield ahead.result()
                except StopAsyncIteration:
                    return
                ahead = None
            else:
                came = False
                yield None
    finally:
        if ahead is not None:
            ahead.cancel()
            await asyncio.wait((ahead,))
        await pieces.aclose()


async def _next(pieces: AsyncGenerator[Piece, None]) -> Piece:
    return await anext(pieces)


async def port(session: Session, number: int) -> Process:
    pause = _PORT_FIRST_S
    while True:
        found = (await session.graph()).listening(number)
        if found is not None:
            return found
        await asyncio.sleep(pause)
        pause = min(_PORT_LAST_S, pause * 1.5)
