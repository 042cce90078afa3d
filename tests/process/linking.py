"""Two hosts as far as links between them go: each with its key, its store of checkpoints, and a
socket that it listens on. Between them something can count, cut, or alter what goes through."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from holdfast.adapters.blobs.directory import DirectoryBlobs
from holdfast.host.continuity.checkpoint_book import CheckpointBook
from holdfast.host.continuity.image_store import ImageStore
from holdfast.host.continuity.image_transfer import ImageTransfer
from holdfast.host.reach.host_links import HostLinkService
from holdfast.host.session_store import SessionStore
from holdfast.model.ids import ActorId, SessionId
from holdfast.ports.host_link import HostLink
from holdfast.wire.frames import Decoder
from holdfast.wire.messages.host_links import OpenLink

PATIENCE_S = 20.0
ASKED_BY, FETCHED_BY = ActorId("a" * 26), ActorId("b" * 26)


class LinkedHost:
    """One of them."""

    def __init__(self, directory: Path) -> None:
        self.state = directory
        directory.mkdir()
        self.sessions = SessionStore(str(directory))
        self.key = self.sessions.host_key
        self.secret = os.urandom(32)
        self.place = directory / "store"
        self.book = CheckpointBook(str(directory / "book.json"))
        self.images = ImageStore(
            DirectoryBlobs(str(self.place)), self.key, self.secret, self.book, 0
        )
        self.socket = str(directory / "s")
        self.links = HostLinkService(
            self.key,
            str(directory),
            self.socket,
            lambda: (),
            ImageTransfer(lambda: self.images, self.sessions, str(directory)),
        )
        self._listening: asyncio.Task[None] | None = None

    def listen(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        listener.bind(self.socket)
        listener.listen()
        listener.setblocking(False)
        self._listening = asyncio.ensure_future(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        """What a daemon does before a connection becomes a link."""
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                sock, _ = await loop.sock_accept(listener)
                decoder, asked = Decoder(), None
                while asked is None:
                    said = decoder.feed(await loop.sock_recv(sock, 1 << 16))
                    asked = next((each for each in said if isinstance(each, OpenLink)), None)
                self.links.answer_local(sock)

    def ticket(self, session: SessionId, source: LinkedHost, way: str = "") -> str:
        given = self.links.give_ticket(session, source.key.public, FETCHED_BY)
        return given.replace(socket=way or given.socket).text()

    async def dial(self, ticket: str, session: SessionId, what: str = "test") -> HostLink:
        return await asyncio.wait_for(self.links.dial(ticket, session, ASKED_BY, what), PATIENCE_S)

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        await self.links.close()
        await self.images.close()


class Tap:
    """Between a source and the target's socket. `alter` may change what the source sends, and is
    told how many bytes went before."""

    def __init__(self, directory: Path, target: str) -> None:
        self.path, self._target = str(directory / "tap"), target
        self.seen = bytearray()
        self.alter: Callable[[bytes, int], bytes] = lambda data, _: data
        self.cut_after: int | None = None
        self._server: asyncio.Server

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._joined, self.path)

    async def _joined(self, here: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_unix_connection(self._target)
        passed = 0

        async def forth() -> None:
            nonlocal passed
            while data := await here.read(1 << 16):
                self.seen += data
                if self.cut_after is not None and passed + len(data) > self.cut_after:
                    break
                on.write(self.alter(data, passed))
                passed += len(data)
                await on.drain()
            on.close()
            back.close()

        async def answers() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await there.read(1 << 16):
                    self.seen += data
                    back.write(data)
                    await back.drain()
            back.close()

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(forth(), answers())

    def close(self) -> None:
        self._server.close()


@contextlib.asynccontextmanager
async def linked(directory: Path) -> AsyncIterator[tuple[LinkedHost, LinkedHost]]:
    """A source and a target that listens."""
    source, target = LinkedHost(directory / "source"), LinkedHost(directory / "target")
    target.listen()
    try:
        yield source, target
    finally:
        await source.close()
        await target.close()


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scene(), 3 * PATIENCE_S)

    asyncio.run(bounded())
