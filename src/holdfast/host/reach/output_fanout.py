"""A session's output for all readers behind relays: read once from the ring, sealed once, sent once
to each relay where somebody reads (wire/output_broadcast.py).

The fastest reader at a relay sets the pace there. A relay that holds up the others is passed over;
its readers notice what is missing and start again with a screen. The streams say who joins and
leaves (remote_stream.py); each change of who may read changes the key.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

from holdfast.model.errors import Fenced
from holdfast.model.limits import OUTPUT_UNSIGNED_S
from holdfast.wire.output_broadcast import Broadcaster
from holdfast.wire.record_layer import RecordKind
from holdfast.wire.relay_messages import Broadcast

if TYPE_CHECKING:
    from holdfast.adapters.session_memory.output_ring import Ring
    from holdfast.host.reach.relay_presence import RelayPresence
    from holdfast.host.reach.remote_stream import RemoteStream
    from holdfast.host.reach.uplink import Uplink
    from holdfast.host.session.parcel import SessionSpec
    from holdfast.wire.epochs import Incarnation

log = logging.getLogger(__name__)

_PIECE_BYTES = 48 << 10
_KEY_BYTES = 32


class BroadcastSource(Protocol):
    """A live session, as far as its output is sent to all readers behind relays."""

    spec: SessionSpec
    ring: Ring
    incarnation: Incarnation


class _Flow:
    """What is on its way through one relay, and taken there by nobody yet."""

    def __init__(self, window: int) -> None:
        self._window, self._size = window, 0
        self._sent: deque[tuple[int, int]] = deque()  # number and size

    @property
    def has_room(self) -> bool:
        return self._size < self._window

    def sent(self, seq: int, size: int) -> None:
        self._sent.append((seq, size))
        self._size += size

    def taken(self, seq: int) -> None:
        while self._sent and self._sent[0][0] <= seq:
            self._size -= self._sent.popleft()[1]


class Fanout:
    """Of one incarnation of one session, from the first reader on."""

    def __init__(self, relays: RelayPresence, live: BroadcastSource) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._broadcaster = Broadcaster(
            live.incarnation, relays.host_key.sign, os.urandom(_KEY_BYTES), self._loop.time(),
            life=relays.life,
        )  # fmt: skip
        self.cursor = live.ring.head
        self._members: dict[str, RemoteStream] = {}
        self._flows: dict[Uplink, _Flow] = {
            uplink: _Flow(uplink.broadcast_window) for uplink in relays.wanting(live.spec.id)
        }
        self._settling: asyncio.TimerHandle | None = None

    # -- readers --------------------------------------------------------------------------------

    def join(self, stream: RemoteStream) -> None:
        """It gets the key, and reads from the next frame on."""
        self.pump()
        self._members[stream.id] = stream
        stream.seal(RecordKind.OUTPUT_KEY, self._broadcaster.join(stream.id))

    def leave(self, stream: RemoteStream) -> None:
        """It can read nothing that comes after this."""
        if self._members.pop(stream.id, None) is not None:
            key, now = os.urandom(_KEY_BYTES), self._loop.time()
            self._tell(self._broadcaster.leave(stream.id, key, now))

    def mark(self, stream: RemoteStream) -> None:
        """With each beat of its channel: how far the output has gone."""
        if stream.id in self._members:
            stream.seal(RecordKind.OUTPUT_MARK, self._broadcaster.mark())

    def wanted(self, uplink: Uplink, wanted: bool) -> None:
        """Whether anybody is subscribed at that relay."""
        if wanted:
            self._flows.setdefault(uplink, _Flow(uplink.broadcast_window))
        else:
            self._flows.pop(uplink, None)

    def taken(self, uplink: Uplink, seq: int) -> None:
        flow = self._flows.get(uplink)
        if flow is not None:
            flow.taken(seq)
            self.pump()

    # -- output ---------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what there is, as far as somebody takes it."""
        ring = self._live.ring
        if not self._members:
            self.cursor = ring.head  # nobody reads: it is on its way to nobody
            return
        try:
            while self.cursor < ring.head and self._some_room():
                self.cursor = max(self.cursor, ring.tail)  # what is gone is gone: readers notice
                end = min(self.cursor + _PIECE_BYTES, ring.head)
                self._send(self.cursor.to_bytes(8) + ring.copy(self.cursor, end))
                self.cursor = end
        except Fenced as error:
            log.info("session %s: %s", self._live.spec.id, error.message)
            return
        if self._settling is None and self._broadcaster.settle_at() != float("inf"):
            self._settling = self._loop.call_at(self._broadcaster.settle_at(), self._settle)

    def _some_room(self) -> bool:
        return any(flow.has_room and uplink.has_room for uplink, flow in self._flows.items())

    def _send(self, data: bytes) -> None:
        now = self._loop.time()
        if self._broadcaster.rotation_due(now):
            self._tell(self._broadcaster.rotate(os.urandom(_KEY_BYTES), now))
        self._put(self._broadcaster.frame(data, now))

    def _put(self, frame: bytes) -> None:
        seq = self._broadcaster.next_number - 1
        message = Broadcast(self._live.spec.id, seq, frame)
        for uplink, flow in self._flows.items():
            if flow.has_room:
                flow.sent(seq, len(frame))
                uplink.say(message)

    def _settle(self) -> None:
        """Vouch for what was sent unsigned."""
        self._settling = None
        if not self._some_room():  # as soon as there is: a frame that nobody is sent is a gap
            self._settling = self._loop.call_later(OUTPUT_UNSIGNED_S, self._settle)
            return
        try:
            frame = self._broadcaster.settle(self._loop.time())
        except Fenced:
            return
        if frame is not None:
            self._put(frame)
        elif self._broadcaster.settle_at() != float("inf"):
            self._settling = self._loop.call_at(self._broadcaster.settle_at(), self._settle)

    def _tell(self, keys: dict[str, bytes]) -> None:
        for member, body in keys.items():
            stream = self._members.get(member)
            if stream is not None:
                stream.seal(RecordKind.OUTPUT_KEY, body)

    def close(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        self._members.clear()
        self._flows.clear()
