"""One WebSocket: messages in, an outbox out. Knows nothing of what the messages mean."""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_websocket import WebSocketError

from holdfast.model.errors import HoldfastError, ProtocolViolation, TimedOut
from holdfast.relay.limits import Bounds
from holdfast.relay.metrics import Metrics
from holdfast.relay.outbox import HeldBytes, Outbox, OutboxSocket
from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import RelayFailed, decode

# Close codes of the WebSocket; the `failed` message before it says more.
_CLOSE_CODES = {
    "protocol_violation": 1002,
    "bad_signature": 1008,
    "version_mismatch": 1008,
    "timed_out": 1008,
    "limit_reached": 1013,
    "rate_limited": 1013,
}


class WebSocketConnection(OutboxSocket):
    """A WebSocket after its handshake, until it is closed."""

    def __init__(
        self, request: web.Request, bounds: Bounds, held: HeldBytes, metrics: Metrics
    ) -> None:
        self._request, self._bounds = request, bounds
        self._ws = web.WebSocketResponse(
            compress=False,  # ciphertext cannot be compressed
            max_msg_size=bounds.frame_max_bytes,
            heartbeat=bounds.heartbeat_s,
            timeout=bounds.close_s,
        )
        self.outbox = Outbox(self, bounds, held, metrics)
        self._transport: asyncio.Transport | None = None
        self._writer: AbstractStreamWriter | None = None
        self._farewell: asyncio.Task[None] | None = None

    async def accept(self) -> None:
        self._writer = await self._ws.prepare(self._request)
        self._transport = self._request.transport
        if self._transport is None:
            raise ConnectionResetError("disconnected during the handshake")
        self._transport.set_write_buffer_limits(high=self._bounds.socket_bytes)

    @property
    def response(self) -> web.StreamResponse:
        """For the server. A client that left during the handshake has no WebSocket to close."""
        return self._ws if self._ws.prepared else web.Response(status=400)

    # -- reading ------------------------------------------------------------------------------

    async def receive(self) -> Message | None:
        """The next message; None when the connection ended."""
        await self.outbox.room()
        message = await self._ws.receive()
        if message.type is WSMsgType.BINARY:
            return decode(message.data)
        if message.type is WSMsgType.TEXT:
            raise ProtocolViolation("messages must be binary")
        if message.type is WSMsgType.ERROR and isinstance(message.data, WebSocketError):
            raise ProtocolViolation(str(message.data))
        return None

    async def first(self) -> Message | None:
        """The first message, within a deadline."""
        try:
            return await asyncio.wait_for(self.receive(), self._bounds.handshake_s)
        except TimeoutError:
            raise TimedOut(
                f"no greeting within {self._bounds.handshake_s:g} s", hint="see docs/relay.md"
            ) from None

    # -- the outbox's socket ------------------------------------------------------------------

    def ready(self, size: int) -> bool:
        """Below its high-water mark a transport accepts everything at once."""
        transport = self._transport
        assert transport is not None
        return (
            not self._request.protocol.writing_paused
            and transport.get_write_buffer_size() + size < self._bounds.socket_bytes
        )

    def write(self, frame: bytes) -> None:
        """Straight to the transport: the frame is complete (server_frame.py). aiohttp also writes
        only whole frames (pings, pongs, close)."""
        if self._transport is None or self._transport.is_closing() or self._ws.closed:
            raise ConnectionResetError("closed")
        self._transport.write(frame)

    async def drain(self) -> None:
        assert self._writer is not None
        await self._writer.drain()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- ending -------------------------------------------------------------------------------

    def dismiss(self, error: HoldfastError, code: int | None = None, wait_s: float = 0.0) -> None:
        """Send the reason and close, without blocking the caller."""
        if self._farewell is None:
            self.outbox.say(RelayFailed(0, error.code, error.message, error.hint, wait_s))
            close = code or _CLOSE_CODES.get(error.code, 1011)
            self._farewell = asyncio.create_task(self._close(close))

    async def _close(self, code: int) -> None:
        """A client that reads gets the last messages; one that does not is cut off."""
        await self.outbox.flush(self._bounds.close_s)
        self._cut_off()
        await self._ws.close(code=code)
        # The client's own close has set the heartbeat again, and that would hold all of this in
        # memory until it is due: megabytes for a client that comes back to be refused.
        self._ws._cancel_heartbeat()

    async def finish(self) -> None:
        """The last call for a connection: release everything."""
        if self._farewell is not None:
            await self._farewell
        self._cut_off()

    def _cut_off(self) -> None:
        """Abort, because closing a transport first sends what it holds, which never ends for a
        client that does not read. One that holds nothing is closed by now, and not kept."""
        self.outbox.close()
        if self._transport is not None and self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(self._bounds.close_s, self.abort)
