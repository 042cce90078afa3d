"""What a session prints, as a stream of pieces by offset.

The offset makes coming back exact: after a lost connection the host is asked for what follows the
last byte given. A reader that is slow costs nothing here: when it falls behind, its channel is
closed and opened again where it is; what the host no longer holds by then is a visible gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import partial

from holdfast.model.errors import Fenced, HostLost, NoSuchSession, NotPermitted
from holdfast.sdk.aio.carrier import AsyncDriver
from holdfast.sdk.aio.link import HostLink
from holdfast.sdk.aio.values import Piece
from holdfast.sdk.connection import NOT_SENT
from holdfast.wire.messages import session as m

_ELSEWHERE = "it may live on another host; look it up again"
_BEHIND_BYTES = 1 << 20  # held for a reader; then the host is to hold the rest


class _Feed:
    """One channel's messages, until they are read."""

    def __init__(self, behind: Callable[[], None]) -> None:
        """`behind`: called when the reader is; no more is to come then."""
        self._behind = behind
        self.waiting: deque[m.Message] = deque()
        self.bytes = 0
        self.over = False  # nothing more comes: the connection is lost, or the reader is behind
        self._came = asyncio.Event()

    def heard(self, message: m.Message | None) -> None:
        if message is None:
            self.over = True
        elif not self.over:
            self.waiting.append(message)
            self.bytes += len(message.data) if isinstance(message, m.Output) else 0
            if self.bytes > _BEHIND_BYTES:
                self.over = True
                self._behind()
        self._came.set()

    async def next(self) -> m.Message | None:
        """None: attach again."""
        while not self.waiting:
            if self.over:
                return None
            self._came.clear()
            await self._came.wait()
        message = self.waiting.popleft()
        self.bytes -= len(message.data) if isinstance(message, m.Output) else 0
        return message


async def pieces(link: HostLink, session: str, since: int | None) -> AsyncGenerator[Piece, None]:
    """From `since` on, or from now on; until the session ends."""
    position, gap, patience, dismissed = since, 0, link.patience, False
    while True:
        carrier = await link.carrier()
        number = carrier.new_channel()
        feed = _Feed(partial(carrier.close_channel, number))
        carrier.open(number, feed.heard)
        try:
            attached = await _attach(carrier, m.Attach(0, session, number, False, True, position))
            position = attached.offset if position is None else position
            patience = link.patience
            while (message := await feed.next()) is not None:
                if isinstance(message, m.Gap):
                    gap, position = gap + message.skipped, message.offset
                elif isinstance(message, m.Output) and message.data:
                    skipped, gap = gap, 0
                    position = message.offset + len(message.data)
                    yield Piece(message.offset, message.data, skipped)
                elif isinstance(message, m.Dismissed):
                    if message.code == Fenced.code:
                        raise Fenced("the host lost the session's lease", hint=_ELSEWHERE)
                    dismissed = True
                    break  # and come back to observe, if that is still allowed
                elif isinstance(message, m.Closed):
                    if gap:
                        yield Piece(position, b"", gap)
                    return
        except NoSuchSession as error:
            if dismissed:
                raise NotPermitted("you may not watch this session any more") from error
            raise
        except HostLost:
            patience.lost(link.closed)
        except NOT_SENT:
            await patience.not_yet()
        finally:
            carrier.close_channel(number)


async def _attach(carrier: AsyncDriver, request: m.Attach) -> m.Attached:
    """As somebody who may write, where that is permitted: an operator that only observes a session
    cannot write to it beside that."""
    try:
        attached = await carrier.ask(request)
    except NotPermitted:
        attached = await carrier.ask(request.replace(observe=True))
    assert isinstance(attached, m.Attached), attached
    return attached
