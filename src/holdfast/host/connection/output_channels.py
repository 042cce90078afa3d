"""What flows to one operator on one channel. Each channel is *pulled*: the connection asks for the
next piece when its socket takes more, so nothing is queued for a slow reader. One that
fell behind what the ring holds is resynced."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

from holdfast.core.attachments import Seat
from holdfast.model.ids import SessionId
from holdfast.model.limits import OUTPUT_CHUNK_BYTES
from holdfast.model.size import Size
from holdfast.model.state import Ending
from holdfast.wire.frames import encode, output_head
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.adapters.session_memory.output_ring import Ring
    from holdfast.host.session.closing import Closing
    from holdfast.host.session.presence import Presence
    from holdfast.host.session.screen_view import View
    from holdfast.model.info import SessionInfo

Piece = list["bytes | memoryview"]


class OutputSource(Protocol):
    """A live session, as far as its output can be read, and its readers counted."""

    ring: Ring
    view: View
    presence: Presence
    closing: Closing

    @property
    def size(self) -> Size: ...

    @property
    def ending(self) -> Ending | None: ...

    def lease_allows(self) -> bool: ...


class OutputChannel(Protocol):
    """A flow of frames. `number` is what the operator calls it."""

    number: int

    @property
    def live(self) -> OutputSource | None:
        """The session it is of; None when that has ended."""

    def next_piece(self) -> Piece | None:
        """The next frame, in parts to be sent together; None when there is nothing now."""

    def finished(self) -> bool:
        """Whether nothing will ever come again."""


class _RingChannel:
    """The bytes of the ring from a cursor on, then the end. What to do when the cursor's bytes are
    no longer held is the subclass's matter."""

    def __init__(self, live: OutputSource, number: int, cursor: int) -> None:
        self.live = live
        self.number = number
        self.cursor = cursor
        self._closed = False

    def next_piece(self) -> Piece | None:
        ring, start = self.live.ring, self.cursor
        if not self.live.lease_allows():  # it is closed in this moment
            return None
        if start < ring.tail:  # also a cursor before everything
            return [encode(self.missed())]
        if start < ring.head:
            self.cursor = end = min(start + OUTPUT_CHUNK_BYTES, ring.head)
            return [output_head(self.number, start, end - start), *ring.read(start, end)]
        if self.live.ending is not None and not self._closed:
            self._closed = True
            return [encode(m.Closed(self.number, self.live.ending))]
        return None

    def finished(self) -> bool:
        return self._closed

    def missed(self) -> m.Message:
        raise NotImplementedError


class ViewChannel(_RingChannel):
    """Output for a terminal: a screen first (unless resuming), then the bytes."""

    def __init__(
        self, live: OutputSource, number: int, since: int | None, *, scrollback: bool = True
    ) -> None:
        ring = live.ring
        self._scrollback = scrollback  # wanted, and not sent yet
        resumable = since is not None and ring.tail <= since <= ring.head
        self._shown_to = ring.head if since is None else since
        self.shared_from: int | None = None  # output from there on comes by host.fanout
        # A cursor before everything asks for the screen.
        super().__init__(live, number, since if since is not None and resumable else -1)

    def next_piece(self) -> Piece | None:
        shared = self.shared_from
        if shared is None or self.cursor < min(shared, self.live.ring.head):
            return super().next_piece()
        if self.live.ending is None or self._closed:
            return None
        # The end, behind an empty piece that says how far the output goes.
        self._closed = True
        end = self.live.ring.head
        return [output_head(self.number, end, 0), encode(m.Closed(self.number, self.live.ending))]

    def begin_anew(self) -> None:
        """With the screen, on this channel alone."""
        self.shared_from, self.cursor = None, -1

    def missed(self) -> m.Message:
        offset, data = self.live.view.snapshot(scrollback=self._scrollback)
        self._scrollback = False
        skipped = offset - (self._shown_to if self.cursor < 0 else self.cursor)
        self.cursor = offset
        return m.Resync(self.number, offset, self.live.size, max(0, skipped), data)


class RawChannel(_RingChannel):
    """Output for a program that wants every byte: a Gap tells what it missed."""

    def __init__(self, live: OutputSource, number: int, since: int | None) -> None:
        super().__init__(
            live, number, live.ring.head if since is None else min(since, live.ring.head)
        )

    def missed(self) -> m.Message:
        tail = self.live.ring.tail
        skipped, self.cursor = tail - self.cursor, tail
        return m.Gap(self.number, tail, skipped)


class StoredChannel:
    """The output an ended session left behind, then its ending. What its tombstone counts and the
    file no longer has (the disk was full) is a Gap."""

    live = None

    def __init__(self, info: SessionInfo, file: BinaryIO, number: int, since: int | None) -> None:
        self.number = number
        self._info = info
        self._file = file
        self.cursor = info.output_offset if since is None else since
        self._closed = False

    def next_piece(self) -> Piece | None:
        start, end = self._info.held_from, self._info.output_offset
        if self.cursor < start:
            return self._gap(start)
        if self.cursor < end:
            self._file.seek(self.cursor - start)
            data = self._file.read(min(OUTPUT_CHUNK_BYTES, end - self.cursor))
            if not data:
                return self._gap(end)
            at, self.cursor = self.cursor, self.cursor + len(data)
            return [output_head(self.number, at, len(data)), data]
        if self._closed or self._info.ending is None:
            return None
        self._closed = True
        self._file.close()
        return [encode(m.Closed(self.number, self._info.ending))]

    def _gap(self, to: int) -> Piece:
        skipped, self.cursor = to - self.cursor, to
        return [encode(m.Gap(self.number, to, skipped))]

    def finished(self) -> bool:
        return self._closed


class ParkedChannel:
    """A view of a session that is asleep: nothing comes on it until that is restored here."""

    live = None

    def __init__(self, session: SessionId, seat: Seat, size: Size | None) -> None:
        self.session, self.seat, self.size = session, seat, size
        self.number, self.cursor = seat.channel, -1

    def next_piece(self) -> Piece | None:
        return None

    def finished(self) -> bool:
        return False
