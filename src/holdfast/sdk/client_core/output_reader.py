"""What a session prints, by offset, across lost connections.

The offset makes coming back exact: the host is asked for what follows the last byte that came. What
it no longer holds by then shows as a gap.
"""

from __future__ import annotations

from holdfast.model.errors import Fenced, NoSuchSession, NotPermitted
from holdfast.model.record import Record
from holdfast.sdk.client_core.client_machine import Reader
from holdfast.sdk.client_core.retry_policy import RETRIED, Retry
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client_core.client_io import ClientIo


class Piece(Record):
    """A piece of a session's output."""

    offset: int  # of its first byte, counted over the whole life of the session
    data: bytes  # empty in one that only reports a gap, at the end
    gap: int = 0  # bytes right before it that nobody holds now

    @property
    def end(self) -> int:
        """The offset to go on from."""
        return self.offset + len(self.data)


class FellBehind(Exception):
    """A reader was too slow for its channel, which is closed; it may open another."""


class OutputReader(Reader):
    """One reader. `since`: an offset; None: from now on."""

    def __init__(
        self, io: ClientIo, session: str, since: int | None, *, observe: bool = True
    ) -> None:
        """`observe` False: as somebody who may write, where that is permitted. An operator that
        only observes a session cannot write to it beside that."""
        super().__init__(io)
        self._session, self._observe = session, observe
        self.name = session
        self._since = since
        self._dismissed = False
        self._closed: m.Closed | None = None

    @property
    def offset(self) -> int:
        """Of the next byte, once it is open."""
        return self._since or 0

    async def open(self) -> m.Attached:
        """Attach. `next` does it when it was not done, and again after a loss."""
        while True:
            await self._io.connect()
            try:
                attached = await self._attach()
            except NoSuchSession as error:
                if self._dismissed:
                    raise NotPermitted("you may no longer watch this session") from error
                raise
            except RETRIED as error:
                await self._retry.caught(error)
                continue
            self._retry = Retry(self._io)
            self.name, self._session = attached.info.name, attached.info.id  # names are used again
            if self._since is None:
                self._since = attached.offset
            return attached

    async def _attach(self) -> m.Attached:
        request = m.Attach(0, self._session, 0, self._observe, True, self._since)
        try:
            attached, self._inbox = await self._io.attach(request)
        except NotPermitted:
            if self._observe:
                raise
            attached, self._inbox = await self._io.attach(request.replace(observe=True))
        return attached

    async def next(self, pause_s: float | None = None) -> Piece | m.Closed | None:
        """What comes next: a piece, without data for a gap, or Closed at the session's end. None:
        nothing came for so long."""
        while self._closed is None:
            if self._inbox is None:
                await self.open()
            try:
                message = await self._io.next(self._inbox, pause_s)
            except FellBehind:
                self.close()
                continue
            except RETRIED as error:
                self.close()
                await self._retry.caught(error)
                continue
            if message is None:
                return None
            piece = self._take(message)
            if piece is not None:
                return piece
        return self._closed

    def _take(self, message: m.Message) -> Piece | None:
        if isinstance(message, m.Gap):
            self._since = message.offset
            return Piece(message.offset, b"", message.skipped)
        if isinstance(message, m.Output) and message.data:
            self._since = message.offset + len(message.data)
            return Piece(message.offset, message.data)
        if isinstance(message, m.Dismissed):
            if message.code == Fenced.code:
                raise Fenced(
                    "the host lost the session's lease",
                    hint="it may live on another host; look it up again",
                )
            self._dismissed = True  # and come back to observe, if that is still allowed
            self.close()
        elif isinstance(message, m.Closed):
            self._closed = message
        return None
