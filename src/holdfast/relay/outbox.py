"""What waits to be sent over one connection.

Two lanes: answers and streams first, broadcasts after, so that a key's echo does not wait behind a
screenful. Adding never blocks, and what is held is bounded:

    answers      counted; when there are many, their connection is not read (`room`)
    streams      bounded by credit, by this connection's bound and by the relay's; then refused
    broadcasts   bounded in bytes; then the session that takes most of it loses what waits, and a
                 gap is told in its place. Until the gap is told the session adds nothing more

While the socket accepts data, nothing waits here: it is written at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from holdfast.relay.limits import Bounds
from holdfast.relay.metrics import Metrics
from holdfast.relay.server_frame import framed
from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import BroadcastGap

if TYPE_CHECKING:
    from holdfast.relay.streams import Half
    from holdfast.relay.subscriptions import Subscription


class OutboxSocket:
    """What an outbox writes to."""

    def ready(self, size: int) -> bool:
        """Whether it accepts so many bytes without waiting."""
        raise NotImplementedError

    def write(self, frame: bytes) -> None:
        """Write a frame. Raises ConnectionError when the connection is closed."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until it accepts more."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close the connection at once."""
        raise NotImplementedError


class HeldBytes:
    """Bytes waiting in all outboxes of a relay."""

    def __init__(self) -> None:
        self.bytes = 0


class Outbox:
    """See above. Only this class changes `Subscription.queued` and `.gap`."""

    def __init__(
        self, socket: OutboxSocket, bounds: Bounds, held: HeldBytes, metrics: Metrics
    ) -> None:
        self._socket, self._bounds, self._held, self._metrics = socket, bounds, held, metrics
        self._first: deque[tuple[bytes, Half | None, int]] = deque()
        self._after: deque[tuple[bytes | None, Subscription | None, int]] = deque()
        self._waiting: dict[Subscription, int] = {}  # bytes of each that wait in the second lane
        self._streams_bytes = self._after_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        self.broken = False

    # -- putting in ---------------------------------------------------------------------------

    def say(self, message: Message) -> None:
        """An answer, or news about a stream."""
        frame = framed(message)
        if not self._at_once(frame):
            self._first.append((frame, None, 0))
            self._hold(len(frame))

    def pass_on(self, frame: bytes, half: Half, carried: int) -> bool:
        """Send stream data. False: there is no room, and it was dropped."""
        if self._at_once(frame):
            half.left(carried)
            return True
        size = len(frame)
        if (
            self._streams_bytes + size > self._bounds.connection_bytes
            or self._held.bytes + size > self._bounds.held_max_bytes
        ):
            return False
        self._first.append((frame, half, carried))
        self._streams_bytes += size
        self._hold(size)
        return True

    def broadcast(self, frame: bytes, subscription: Subscription, seq: int) -> None:
        """Send one broadcast to one subscriber, now, later, or as part of a gap."""
        if subscription.gap is not None:
            subscription.gap = (subscription.gap[0], seq)
            self._metrics.count("left_out_frames_total")
            return
        if self._at_once(frame):
            self._metrics.count("delivered_frames_total")
            subscription.took(seq, len(frame))
            return
        if not self._make_room(len(frame), subscription, seq):
            return
        self._after.append((frame, subscription, seq))
        self._waiting[subscription] = self._waiting.get(subscription, 0) + len(frame)
        self._after_bytes += len(frame)
        self._hold(len(frame))

    def gap(self, subscription: Subscription, first: int, last: int) -> None:
        """These broadcasts were lost before they got here. Waiting ones of the same session join
        the gap."""
        if subscription.gap is not None:
            subscription.gap = (subscription.gap[0], last)
            return
        self._tell_gap(subscription, [*self._drop(subscription), first, last])

    def say_after_broadcasts(self, message: Message) -> None:
        """A message that must not overtake the broadcasts before it."""
        if not self._after:
            self.say(message)
            return
        frame = framed(message)
        self._after.append((frame, None, 0))
        self._after_bytes += len(frame)
        self._hold(len(frame))

    def forget(self, subscription: Subscription) -> None:
        """Drop everything of this subscription that still waits."""
        subscription.gap = None
        self._drop(subscription)

    # -- the bound of broadcasts --------------------------------------------------------------

    def _make_room(self, size: int, subscription: Subscription, seq: int) -> bool:
        """Until it fits, drop what waits of the session that holds most. False: that is this
        one."""
        while (
            self._after_bytes + size > self._bounds.operator_queue_bytes
            or self._held.bytes + size > self._bounds.held_max_bytes
        ):
            worst = max(self._waiting, key=self._waiting.__getitem__, default=subscription)
            if self._waiting.get(worst, 0) < self._waiting.get(subscription, 0) + size:
                worst = subscription
            self._fall_behind(worst, seq if worst is subscription else None)
            if worst is subscription:
                return False
        return True

    def _fall_behind(self, subscription: Subscription, seq: int | None) -> None:
        """Its waiting frames, and this one, become a gap, sent when the socket has caught up."""
        lost = self._drop(subscription)
        if seq is not None:
            lost.append(seq)
        self._metrics.count("left_out_frames_total", len(lost))
        self._tell_gap(subscription, lost)

    def _tell_gap(self, subscription: Subscription, lost: list[int]) -> None:
        subscription.gap = (lost[0], lost[-1])
        self._after.append((None, subscription, 0))
        self._hold(0)

    def _drop(self, subscription: Subscription) -> list[int]:
        """Remove its frames, and a gap not sent yet, from the lane; returns their numbers."""
        kept = [item for item in self._after if item[1] is not subscription]
        lost = [seq for frame, of, seq in self._after if of is subscription and frame is not None]
        self._after = deque(kept)
        size = self._waiting.pop(subscription, 0)
        self._after_bytes -= size
        self._held.bytes -= size
        return lost

    # -- writing ------------------------------------------------------------------------------

    def _at_once(self, frame: bytes) -> bool:
        """Write it if nothing waits and the socket accepts it. On a broken connection it is lost;
        the reader notices and removes the end."""
        if self.broken:
            return True
        if self._writer is not None or not self._socket.ready(len(frame)):
            return False
        try:
            self._socket.write(frame)
        except ConnectionError:
            self._break()
        return True

    def _hold(self, size: int) -> None:
        self._held.bytes += size
        if self._writer is None and not self.broken:
            self._writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """Until nothing waits. Only here does the relay wait for a socket."""
        try:
            while self._first or self._after:
                await (self._write_first() if self._first else self._write_after())
                self._progress.set()
        except ConnectionError:
            self._break()
        finally:
            self._writer = None
            self._progress.set()

    async def _send(self, frame: bytes) -> None:
        self._socket.write(frame)
        await self._socket.drain()

    async def _write_first(self) -> None:
        frame, half, carried = self._first.popleft()
        try:
            await self._send(frame)
        finally:
            self._held.bytes -= len(frame)
            if half is not None:
                self._streams_bytes -= len(frame)
        if half is not None:
            half.left(carried)

    async def _write_after(self) -> None:
        frame, subscription, seq = self._after.popleft()
        if frame is None:
            assert subscription is not None and subscription.gap is not None
            (first, last), subscription.gap = subscription.gap, None
            self._metrics.count("gaps_total")
            await self._send(framed(BroadcastGap(subscription.subscribers.session, first, last)))
            subscription.took(last, 0)
            return
        size = len(frame)
        if subscription is not None:
            self._waiting[subscription] -= size
        self._after_bytes -= size
        try:
            await self._send(frame)
        finally:
            self._held.bytes -= size
        if subscription is not None:
            self._metrics.count("delivered_frames_total")
            subscription.took(seq, size)

    # -- waiting and ending -------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until few enough answers are queued: a client that does not read its answers is not
        read either. Its pongs are not read then, so the heartbeat cannot notice that it is dead:
        this does."""
        while len(self._first) > self._bounds.answers_max and not self.broken:
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), 1.5 * self._bounds.heartbeat_s)
            except TimeoutError:
                self._break()

    async def flush(self, within_s: float) -> None:
        """Wait until nothing is queued, or the time is up."""
        if self._writer is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._writer), within_s)

    def close(self) -> None:
        """Send nothing more; drop what waits."""
        self.broken = True
        if self._writer is not None:
            self._writer.cancel()
        waiting = sum(len(frame) for frame, _, _ in self._first) + self._after_bytes
        self._held.bytes -= waiting
        self._first.clear()
        self._after.clear()
        self._waiting.clear()
        self._streams_bytes = self._after_bytes = 0
        self._progress.set()

    def _break(self) -> None:
        if not self.broken:
            self.broken = True
            self._socket.abort()
