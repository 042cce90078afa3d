"""One end of a link to another host: what is sealed in its channel, sorted by what it is about.

    channel  ──▶  messages, in a window     for whoever speaks over the link (ports/host_link.py)
             ──▶  a checkpoint on its way   continuity/image_transfer.py

Which host is at the other end, and what it may bring, was settled before (host_links.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from holdfast.model.checkpoint import CheckpointId
from holdfast.model.errors import HostLost, InvalidArgument, ProtocolViolation
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import (
    FRAME_MAX_BYTES,
    HOST_IMAGE_CHUNKS,
    HOST_LINK_WINDOW_BYTES,
    HOST_MESSAGE_BYTES,
)
from holdfast.ports.host_link import Progress
from holdfast.wire import host_link as w
from holdfast.wire.messages.base import Message

T = TypeVar("T")
PIECE_BYTES = 256 << 10  # of what goes at once: what else is said need not wait long
_TELL_BYTES = HOST_LINK_WINDOW_BYTES // 4  # read before the other end is told
_MESSAGES_MAX = HOST_LINK_WINDOW_BYTES // 64  # not read; messages of moves are longer
_IMAGE_MESSAGES_MAX = 1024  # about a checkpoint, not read
_IMAGE_MAX_BYTES = 2 * HOST_IMAGE_CHUNKS * FRAME_MAX_BYTES  # of a checkpoint, not yet stored


class LinkChannel(Protocol):
    """A sealed channel to the other host, whichever end of it."""

    @property
    def has_room(self) -> bool: ...

    def send(self, body: bytes) -> None: ...

    def close(self) -> None: ...


class RecordCarrier(Protocol):
    """What brings the records of a channel here and back."""

    @property
    def has_room(self) -> bool: ...

    def carry(self, record: bytes) -> None: ...

    def close(self) -> None: ...


class ImageGiver(Protocol):
    """Sends checkpoints of this host."""

    async def give(
        self,
        lane: LinkEnd,
        session: SessionId,
        id: CheckpointId,
        progress: Progress | None,
    ) -> None: ...


class _Lane(Generic[T]):
    """What has come and was not read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[T] = deque()
        self._came = asyncio.Event()
        self.over = False

    def put(self, each: T) -> None:
        """Raises ProtocolViolation."""
        if len(self._waiting) >= self._most:
            raise ProtocolViolation("the other host sent more than can wait here")
        self._waiting.append(each)
        self._came.set()

    def end(self) -> None:
        self.over = True
        self._came.set()

    async def next(self) -> T | None:
        """None: nothing more comes."""
        while not self._waiting and not self.over:
            self._came.clear()
            await self._came.wait()
        return self._waiting.popleft() if self._waiting else None


class LinkEnd:
    """The port HostLink. Made with its channel; whoever it leads to is set when that is known."""

    peer = b""
    peer_name = ""
    session: SessionId
    admitted_by: tuple[ActorId, ActorId]
    brought: CheckpointId | None = None

    def __init__(self, images: ImageGiver) -> None:
        self.channel: LinkChannel
        self._images = images
        self._greetings = _Lane[Message](1)
        self._messages = _Lane[bytes](_MESSAGES_MAX)
        self._image = _Lane[tuple[int, Message]](_IMAGE_MESSAGES_MAX)  # with their sizes
        self._image_bytes = 0
        self._unread = 0  # bytes of messages that we have and nobody took
        self._taken = 0  # and that were taken, which the other end was not told
        self._untaken = 0  # bytes that the other end has not taken
        self._room = asyncio.Event()
        self._sending = asyncio.Lock()  # the pieces of a message are not mixed with another's
        self._pieces = bytearray()  # of a message that is not complete
        self._giving = asyncio.Lock()  # one checkpoint at a time
        self.gone = False

    # -- the port -------------------------------------------------------------------------------

    async def send(self, message: bytes) -> None:
        if len(message) > HOST_MESSAGE_BYTES:
            raise InvalidArgument(
                f"a message to another host has at most {HOST_MESSAGE_BYTES} bytes"
            )
        async with self._sending:
            await self._until(lambda: self._untaken + len(message) <= HOST_LINK_WINDOW_BYTES)
            self._untaken += len(message)
            for at in range(0, max(1, len(message)), PIECE_BYTES):
                rest = at + PIECE_BYTES < len(message)
                await self.say(w.LinkMessage(message[at : at + PIECE_BYTES], rest))

    async def receive(self) -> bytes | None:
        message = await self._messages.next()
        if message is not None:
            self._unread -= len(message)
            self._taken += len(message)
            if self._taken >= _TELL_BYTES and not self.gone:
                taken, self._taken = self._taken, 0
                self.channel.send(w.encode(w.LinkTaken(taken)))
        return message

    async def send_checkpoint(self, id: CheckpointId, progress: Progress | None = None) -> None:
        async with self._giving:
            await self._images.give(self, self.session, id, progress)

    async def close(self) -> None:
        if not self.gone:
            self.channel.close()
            self.ended()

    # -- for the other parts of it ----------------------------------------------------------------

    async def say(self, message: Message) -> None:
        """Raises HostLost."""
        await self._until(lambda: self.channel.has_room)
        self.channel.send(w.encode(message))

    async def greeting(self) -> Message | None:
        return await self._greetings.next()

    async def next_of_image(self) -> Message | None:
        """What the other end says about a checkpoint; None when the link is gone."""
        came = await self._image.next()
        if came is None:
            return None
        size, said = came
        self._image_bytes -= size
        return said

    async def _until(self, free: Callable[[], bool]) -> None:
        while not self.gone and not free():
            self._room.clear()
            await self._room.wait()
        if self.gone:
            raise unreachable(self.peer_name)

    def room(self) -> None:
        """The channel may have room for more."""
        self._room.set()

    def said(self, body: bytes) -> None:
        """By the other end. Raises ProtocolViolation."""
        match w.decode(body):
            case w.LinkMessage(data=data, more=more):
                self._unread += len(data)
                if self._unread > HOST_LINK_WINDOW_BYTES:
                    raise ProtocolViolation("the other host sent more than there was room for")
                self._pieces += data
                if not more:
                    whole, self._pieces = bytes(self._pieces), bytearray()
                    self._messages.put(whole)
            case w.LinkTaken(size=size):
                if not 0 < size <= self._untaken:
                    raise ProtocolViolation("the other host took what was never sent")
                self._untaken -= size
                self._room.set()
            case w.LinkHello() | w.LinkWelcome() | w.LinkRefused() as greeting:
                self._greetings.put(greeting)
            case said:
                self._image_bytes += len(body)
                if self._image_bytes > _IMAGE_MAX_BYTES:
                    raise ProtocolViolation("the other host sent more than it was asked for")
                self._image.put((len(body), said))

    def ended(self) -> None:
        """Nothing more comes, and nothing can be sent."""
        self.gone = True
        self._room.set()
        for lane in (self._greetings, self._messages, self._image):
            lane.end()


def unreachable(name: str) -> HostLost:
    return HostLost(
        f"the link to {name or 'the other host'} is gone", hint="try again; what arrived is kept"
    )
