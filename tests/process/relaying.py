"""A real relay as a process, and the two kinds of clients that dial it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Message

PATIENCE_S = 15.0  # far beyond what anything here takes
_T = TypeVar("_T")
_M = TypeVar("_M", bound=Message)


def bounded(scene: Coroutine[Any, Any, _T], within_s: float = 60.0) -> _T:
    """Play a scene to its end, or fail."""
    return asyncio.run(asyncio.wait_for(scene, within_s))


class RelayProcess:
    """`python -m holdfast.relay` on a port of its own."""

    def __init__(self, *words: str, listen: str = "127.0.0.1:0", home: str | None = None) -> None:
        self._made = "" if home else tempfile.mkdtemp(prefix="hf-", dir="/tmp")
        self.home = home or self._made
        reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "holdfast.relay", "--listen", listen),
                *("--ready-fd", str(writer), *words),
            ],
            env={**os.environ, "HOLDFAST_HOME": self.home},
            pass_fds=(writer,),
            stderr=subprocess.PIPE,
        )
        os.close(writer)
        with open(reader, encoding="ascii") as ready:
            line = ready.readline().split()
        if line[:1] != ["ready"]:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read().decode())
        self.url = line[1]
        self.fingerprint = line[2].removeprefix("sha256:") if len(line) > 2 else ""
        self.port = int(self.url.rpartition(":")[2])
        self.name = self.url.partition("//")[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        if self._made:
            shutil.rmtree(self._made)
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        assert "Traceback" not in said, said

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    async def get(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.url}{path}") as answer,
        ):
            return answer.status, await answer.text()

    async def metric(self, name: str) -> int:
        _, text = await self.get("/metrics")
        found = [line for line in text.splitlines() if line.startswith(f"holdfast_relay_{name} ")]
        return int(found[0].split()[1])

    async def metric_is(self, name: str, wanted: int) -> None:
        """Asked again until it is so: the relay has no event for it."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.metric(name) != wanted:
                await asyncio.sleep(0.01)


class Client:
    """One WebSocket with the relay's messages."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def say(self, *messages: Message) -> None:
        for message in messages:
            await self.ws.send_bytes(r.encode(message))

    async def hear(self, kind: type[_M]) -> _M:
        """The next message, which must be of this kind."""
        message = await self.next()
        assert isinstance(message, kind), message
        return message

    async def next(self) -> Message:
        got = await asyncio.wait_for(self.ws.receive(), PATIENCE_S)
        assert got.type is aiohttp.WSMsgType.BINARY, got
        return r.decode(got.data)

    async def hear_among(self, kind: type[_M]) -> _M:
        """The next message of this kind, whatever comes before."""
        while True:
            message = await self.next()
            if isinstance(message, kind):
                return message

    async def closed(self) -> int:
        """The code it was closed with, whatever came before."""
        while True:
            got = await asyncio.wait_for(self.ws.receive(), PATIENCE_S)
            if got.type is not aiohttp.WSMsgType.BINARY:
                return int(got.data) if got.type is aiohttp.WSMsgType.CLOSE else 1006


class HostClient(Client):
    """A host that proved its key, or tries to."""

    key: SigningKey
    greeted: r.Greeted

    async def prove(self, key: SigningKey, relay: str, *, greeted: bool = True) -> None:
        challenge = await self.hear(r.Challenge)
        self.key = key
        await self.say(proof(key, relay, challenge))
        if greeted:
            self.greeted = await self.hear(r.Greeted)

    async def announce(self, *sessions: tuple[SigningKey, int]) -> r.Registered:
        await self.say(r.Announce(1, tuple(announced(self.key, *one) for one in sessions)))
        return await self.hear_among(r.Registered)


def proof(
    key: SigningKey, relay: str, challenge: r.Challenge, claimed: bytes | None = None
) -> r.ProveHost:
    """A host's proof; with `claimed` another key than the one that signs."""
    signature = key.sign(r.host_text(challenge.challenge, relay))
    return r.ProveHost(r.RELAY_VERSION, claimed or key.public, relay, signature, *device_of(key))


def device_of(key: SigningKey) -> tuple[bytes, bytes]:
    """An X25519 key and its binding, as far as a relay can tell: no two hosts have the same."""
    return hashlib.sha256(key.public).digest(), hashlib.sha512(key.public).digest()


def announced(host: SigningKey, session: SigningKey, epoch: int) -> r.Announced:
    text = r.session_text(SessionId.of_key(session.public), host.public, epoch)
    return r.Announced(session.public, epoch, session.sign(text))


class OperatorClient(Client):
    """An operator that greeted."""

    _last = 0

    async def open(self, to: bytes | SessionId) -> r.StreamOpened:
        self._last += 1
        if isinstance(to, SessionId):
            await self.say(r.Open(self._last, b"", to))
        else:
            await self.say(r.Open(self._last, to, None))
        return await self.hear(r.StreamOpened)

    async def refused(self, request: Message) -> r.RelayFailed:
        await self.say(request)
        return await self.hear(r.RelayFailed)


class Dialler:
    """Clients of one relay, closed together."""

    def __init__(self, relay: RelayProcess, tls: aiohttp.Fingerprint | None = None) -> None:
        self.relay, self._tls = relay, tls

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()

    async def dial(self, path: str) -> aiohttp.ClientWebSocketResponse:
        return await self.http.ws_connect(
            f"{self.relay.url}{path}", compress=0, max_msg_size=1 << 22, timeout=_quick()
        )

    async def host(self, key: SigningKey | None = None) -> HostClient:
        host = HostClient(await self.dial("/v1/host"))
        await host.prove(key or SigningKey.generate(), self.relay.name)
        return host

    async def operator(self) -> OperatorClient:
        operator = OperatorClient(await self.dial("/v1/operator"))
        await operator.say(r.Greet((r.RELAY_VERSION,)))
        await operator.hear(r.Greeted)
        return operator

    async def audience(
        self, host: HostClient, session: SessionId, size: int
    ) -> list[OperatorClient]:
        """So many operators, admitted and subscribed."""
        return [await self.subscriber(host, session) for _ in range(size)]

    async def subscriber(self, host: HostClient, session: SessionId) -> OperatorClient:
        operator = await self.operator()
        stream = (await operator.open(session)).stream
        incoming = await host.hear_among(r.Incoming)
        assert incoming.stream == stream
        await host.say(r.Admit(stream, session))
        await subscribe(operator, session)
        return operator


async def subscribe(operator: OperatorClient, session: SessionId) -> r.Subscribed:
    """The host's word may be behind ours at the relay: asked again until it is there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await operator.say(r.Subscribe(99, session))
            message = await operator.next()
            if isinstance(message, r.Subscribed):
                return message
            assert isinstance(message, r.RelayFailed) and message.code == "not_permitted", message


def _quick() -> aiohttp.ClientWSTimeout:
    return aiohttp.ClientWSTimeout(ws_close=1.0)


@contextlib.asynccontextmanager
async def at(relay: RelayProcess) -> AsyncIterator[Dialler]:
    async with Dialler(relay) as dialler:
        yield dialler


def stop_reading(client: Client) -> asyncio.ReadTransport:
    """Its socket fills, then its relay's buffers; until the transport reads again."""
    transport = client.ws._response.connection.transport  # type: ignore[union-attr]
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    return transport


def fresh_session() -> tuple[SigningKey, SessionId]:
    key = SigningKey.generate()
    return key, SessionId.of_key(key.public)
