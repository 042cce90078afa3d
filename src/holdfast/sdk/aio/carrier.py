"""One connection: whole frames out; answers, channels and events in, each to whoever waits for it.

A frame is handed to the transport in one call and never awaited half-way, so a caller that is
cancelled has either sent its request or not. What a cancelled caller left behind does no harm: an
answer nobody waits for is dropped, and a channel nobody reads is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from holdfast.model.errors import HoldfastError, HostLost, from_code
from holdfast.sdk.connection import Connection
from holdfast.wire.frames import encode
from holdfast.wire.messages import session as m

# To a request, a channel or everybody: a message, or None when the connection is lost.
Heard = Callable[[m.Message | None], None]
_OF_A_CHANNEL = m.Output | m.Gap | m.Resync | m.Closed | m.Dismissed | m.Answering
_UNREAD_MAX_BYTES = 256 << 10  # of the transport's buffer; then requests wait to be sent


class AsyncDriver(asyncio.Protocol):
    """A greeted connection in an event loop."""

    def __init__(self, connection: Connection, on_event: Heard) -> None:
        self.welcome = connection.welcome
        self._transport: asyncio.Transport
        self._decoder = connection.decoder  # the beginning of a frame may be in it already
        self._last_id = connection.last_id
        self._last_channel = 0
        self._asked: dict[int, Heard] = {}
        self._channels: dict[int, Heard] = {}
        self._on_event = on_event
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.error: HoldfastError | None = None  # why it is over
        self._gone = asyncio.Event()
        for message in iter(connection.take, None):  # said right behind the greeting
            self._take(message)

    @classmethod
    async def over(cls, connection: Connection, on_event: Heard) -> AsyncDriver:
        loop = asyncio.get_running_loop()
        connection.sock.setblocking(False)
        try:
            _, made = await loop.create_unix_connection(
                lambda: cls(connection, on_event), sock=connection.sock
            )
        except BaseException:
            connection.close()
            raise
        return made

    # -- out ------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Until a request can be sent. From here to `send` nothing may be awaited."""
        await self._may_write.wait()
        if self.error is not None:
            raise self.error

    def send(self, request: m.Request, heard: Heard) -> int:
        """Send it, whole; `heard` gets every answer to it until it is forgotten. Gives its id."""
        if self.error is not None:
            raise self.error
        self._last_id += 1
        self._asked[self._last_id] = heard
        self._transport.write(encode(request.replace(id=self._last_id)))
        return self._last_id

    def forget(self, request: int) -> None:
        self._asked.pop(request, None)

    async def ask(self, request: m.Request) -> m.Answer:
        """Send it and wait for the answer. A Failed is raised as the error it names."""
        await self.ready()
        answered: asyncio.Future[m.Answer] = asyncio.get_running_loop().create_future()
        number = self.send(request, lambda message: self._settle(answered, message))
        try:
            return await answered
        finally:
            self.forget(number)

    def _settle(self, answered: asyncio.Future[m.Answer], message: m.Message | None) -> None:
        if answered.done():
            return
        if isinstance(message, m.Failed):
            answered.set_exception(from_code(message.code, message.message, message.hint))
        elif isinstance(message, m.Answer):
            answered.set_result(message)
        else:
            answered.set_exception(self.error or HostLost("the connection to the host was lost"))

    # -- channels -------------------------------------------------------------------------------

    def new_channel(self) -> int:
        """A number that no channel has here."""
        self._last_channel += 1
        return self._last_channel

    def open(self, number: int, heard: Heard) -> None:
        """What comes on this channel goes there. The caller attaches it, and closes it."""
        self._channels[number] = heard

    def close_channel(self, number: int) -> None:
        """Whoever read it does not any more. Nothing is waited for."""
        if self._channels.pop(number, None) is not None and self.error is None:
            asked = self.send(m.Detach(0, number), lambda _: self.forget(asked))

    # -- in -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own are not of that class
        self._transport.set_write_buffer_limits(high=_UNREAD_MAX_BYTES)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._decoder.feed(data):
                self._take(message)
        except HoldfastError as error:
            self._over(error)
            self._transport.abort()

    def _take(self, message: m.Message) -> None:
        if isinstance(message, m.Failed) and message.id == 0:
            raise from_code(message.code, message.message, message.hint)
        if isinstance(message, m.Answer):
            heard = self._asked.get(message.id)
            if heard is not None:
                heard(message)
        elif isinstance(message, _OF_A_CHANNEL):
            heard = self._channels.get(message.channel)
            if heard is not None:
                heard(message)
        else:
            self._on_event(message)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._over(HostLost("the connection to the host was lost"))
        self._gone.set()

    def _over(self, error: HoldfastError) -> None:
        if self.error is not None:
            return
        self.error = error
        self._may_write.set()
        for heard in [*self._asked.values(), *self._channels.values(), self._on_event]:
            heard(None)
        self._asked.clear()
        self._channels.clear()

    def close(self) -> None:
        self._over(HostLost("this program closed the connection"))
        self._transport.close()

    async def gone(self) -> None:
        """Until what was sent is out and the socket is closed."""
        await self._gone.wait()
