"""The bus of relays on NATS: one subject for each relay, one for all of them. Core NATS, not
JetStream: a stream through two relays must not wait for a disk, nor for a cluster that is choosing
its leader, and what was lost is noticed by the relays.

nats-py takes whatever it is given into a buffer without a bound while it is connected. So packets
wait here, and are handed to it a batch at a time; when more wait, the server's word that it has the
batch is awaited first.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Callable, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg

from holdfast.adapters.nats.client import FAILURES, connected, noticing_cancellation, shown
from holdfast.model.errors import CoordinationDown
from holdfast.model.limits import COORDINATION_CALL_S
from holdfast.ports.relay_bus import NAME_CHARS

_BACKLOG_BYTES = 256 << 10  # being sent before senders have to wait
_BATCH_BYTES = 256 << 10  # handed to the client before the server is asked whether it has it
_PENDING_BYTES = 64 << 20  # arrived and not looked at yet; beyond, the client drops packets
_CLOSE_S = 1.0


class NatsBus:
    """`connect` is the way to make one. Relays with the same `place` hear each other."""

    def __init__(self, place: str) -> None:
        self.name = secrets.token_hex(NAME_CHARS // 2)
        self._place = f"holdfast.{place}"
        self._heard: Callable[[bytes], None] | None = None
        self._client: Client | None = None
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._size = 0
        self._more, self._less, self._way = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, urls: Sequence[str], place: str, *, within_s: float = 30.0) -> NatsBus:
        made = cls(place)
        try:
            async with asyncio.timeout(within_s):
                made._client = await connected(urls, lost=made._lost, found=made._found)
        except FAILURES as error:
            raise CoordinationDown(
                f"no answer from NATS at {shown(urls)} within {within_s:.0f} s"
            ) from error
        made._way.set()
        made._writer = asyncio.create_task(made._write())
        return made

    # -- the port ---------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        return self._way.is_set()

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        assert self._client is not None
        self._heard = heard
        for subject in (f"{self._place}.to.{self.name}", f"{self._place}.all"):
            await self._client.subscribe(
                subject, cb=self._arrived, pending_msgs_limit=0, pending_bytes_limit=_PENDING_BYTES
            )
        await self._client.flush()  # from here on our server knows, and tells the others

    def send(self, to: str, packet: bytes) -> None:
        self._put(f"{self._place}.to.{to}", packet)

    def send_all(self, packet: bytes) -> None:
        self._put(f"{self._place}.all", packet)

    def ready(self, size: int) -> bool:
        return self._size + size <= _BACKLOG_BYTES and self._way.is_set()

    async def drain(self) -> None:
        while not self.ready(_BACKLOG_BYTES // 2):
            self._less.clear()
            await self._less.wait()

    async def close(self) -> None:
        assert self._client is not None and self._writer is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while self._waiting:
                    self._less.clear()
                    await self._less.wait()
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)
        with contextlib.suppress(*FAILURES):
            await self._client.flush(_CLOSE_S)  # type: ignore[arg-type]
        await self._client.close()

    # -- sending ----------------------------------------------------------------------------------

    def _put(self, subject: str, packet: bytes) -> None:
        self._waiting.append((subject, packet))
        self._size += len(packet)
        self._more.set()

    async def _write(self) -> None:
        """For ever. What is in the client's hands when its server dies is lost: relays notice."""
        client = self._client
        assert client is not None
        while True:
            if not self._waiting:
                self._more.clear()
                await self._more.wait()
            await self._way.wait()
            with contextlib.suppress(*FAILURES):
                await self._batch(client)
                if self._waiting:
                    await noticing_cancellation(client.flush(COORDINATION_CALL_S))  # type: ignore[arg-type]

    async def _batch(self, client: Client) -> None:
        size = 0
        while self._waiting and size < _BATCH_BYTES:
            subject, packet = self._waiting[0]
            await noticing_cancellation(client.publish(subject, packet))
            self._waiting.popleft()
            size += len(packet)
            self._size -= len(packet)
        self._less.set()

    # -- arriving, and the way to the server ------------------------------------------------------

    async def _arrived(self, message: Msg) -> None:
        if self._heard is not None:
            self._heard(message.data)

    async def _lost(self) -> None:
        self._way.clear()

    async def _found(self) -> None:
        self._way.set()
        self._less.set()
