"""An operator at a relay that keeps no rule it does not want to: it opens streams to a host, makes
real handshakes when it likes, and sends what it likes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.model.device import Device as PublicDevice
from holdfast.model.ids import OperatorId, SessionId
from holdfast.sdk import identity
from holdfast.sdk.machines import Machine
from holdfast.sdk.remote_channel import Device
from holdfast.wire import relay_messages as r
from holdfast.wire.base64url import decoded
from holdfast.wire.channel import Dialling, OperatorChannel
from holdfast.wire.fencing import EpochFloor
from holdfast.wire.input_streams import InputStream
from holdfast.wire.keys import KeyPair
from holdfast.wire.opening import HOST_EPOCH, Opening, host_channel
from holdfast.wire.remote_requests import body_of, fields_of
from holdfast.wire.sealed import Kind
from process.relaying import OperatorClient, RelayProcess, at

ANSWER_S = 15.0
HELLO = {"t": "hello", "versions": [1], "operator": "ab" * 16, "client": "rude"}


class RudeStream:
    """One stream of it."""

    def __init__(self, client: OperatorClient, opened: r.Opened, machine: Machine) -> None:
        self.client, self.number = client, opened.stream
        self._host = PublicDevice(opened.host, opened.static, opened.binding)
        self._machine = machine
        self.channel: OperatorChannel

    async def throw(self, *pieces: bytes) -> None:
        for piece in pieces:
            await self.client.say(r.Data(self.number, piece))

    def first(
        self, session: SessionId | None = None, *, grant: bytes | None = None, seed: bytes = b""
    ) -> tuple[Dialling, bytes]:
        """A real message 1, with its opening."""
        device = Device(seed or bytes.fromhex(identity.load(self._machine.identity).private))
        about = session or host_channel(self._host.key)
        inputs = InputStream(
            about, device.public.key, OperatorId(os.urandom(16).hex()), device.sign
        )
        shown = (decoded(self._machine.grant) or b"") if grant is None else grant
        dialling = Dialling(
            inputs, device.public, device.static, KeyPair(os.urandom(32)), self._host,
            EpochFloor(0 if session else HOST_EPOCH), grant=shown,
        )  # fmt: skip
        return dialling, Opening(session).encoded() + dialling.first()

    async def shake(
        self, session: SessionId | None = None, *, grant: bytes | None = None, seed: bytes = b""
    ) -> None:
        """The whole handshake; from then on `say` and `hear`."""
        dialling, message = self.first(session, grant=grant, seed=seed)
        await self.throw(message)
        self.channel, _ = dialling.finish(await self._data(), 0.0)

    async def say(self, fields: dict[str, Any], *, signed: bool = False) -> None:
        await self.throw(*self.records(fields, signed=signed))

    def records(self, fields: dict[str, Any], *, signed: bool = False) -> list[bytes]:
        if signed:
            return self.channel.write(body_of(fields), 0.0)
        return self.channel.sealed.seal(Kind.MESSAGE, body_of(fields), 0.0)

    async def hear(self, number: int) -> dict[str, Any]:
        """The answer with this number."""
        while True:
            said = self.channel.receive(await self._data(), 0.0)
            if said is not None and said.kind == Kind.MESSAGE:
                fields = fields_of(said.body)
                if fields.get("id") == number:
                    return fields

    async def ask(self, fields: dict[str, Any], *, signed: bool = False) -> dict[str, Any]:
        await self.say(fields, signed=signed)
        return await self.hear(fields["id"])

    async def _data(self) -> bytes:
        """What comes next through this stream; EOFError when it is closed."""
        async with asyncio.timeout(ANSWER_S):
            while True:
                message = await self.client.next()
                if isinstance(message, r.Data) and message.stream == self.number:
                    return message.data
                if isinstance(message, r.Closed) and message.stream == self.number:
                    raise EOFError(message.why)

    async def closed(self) -> None:
        """Until the host has closed it, whatever it says before."""
        try:
            while True:
                await self._data()
        except EOFError:
            return


@asynccontextmanager
async def rude(relay: RelayProcess) -> AsyncIterator[OperatorClient]:
    async with at(relay) as dialler:
        yield await dialler.operator()


async def stream_to(
    client: OperatorClient, machine: Machine, session: SessionId | None = None
) -> RudeStream:
    client._last += 1
    await client.say(r.Open(client._last, b"" if session else machine.key, session))
    return RudeStream(client, await client.hear_among(r.Opened), machine)
