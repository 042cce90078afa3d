"""An operator at a relay that keeps no rule it does not want to: it opens streams to a host, makes
real handshakes when it likes, and sends what it likes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from holdfast.dial.secure_channel import DeviceKeys
from holdfast.model.device import Device
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import OperatorId, SessionId
from holdfast.sdk import identity
from holdfast.sdk.reach.machines import Machine
from holdfast.wire import relay_messages as r
from holdfast.wire.base64url import decoded
from holdfast.wire.channel import OperatorChannel, OperatorHandshake
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.input_chain import InputStream
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.messages.base import Message
from holdfast.wire.output_listener import Listener
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.request_classes import body_of, fields_of
from holdfast.wire.stream_opening import HOST_EPOCH, Opening, host_channel
from process.relaying import OperatorClient, RelayProcess, at

ANSWER_S = 15.0
HELLO = {"t": "hello", "versions": [1], "operator": "ab" * 16, "client": "rude"}


class RudeStream:
    """One stream of it."""

    def __init__(self, client: OperatorClient, opened: r.StreamOpened, machine: Machine) -> None:
        self.client, self.number = client, opened.stream
        self.host = Device(opened.host, opened.static, opened.binding)
        self._machine = machine
        self.channel: OperatorChannel

    async def throw(self, *pieces: bytes) -> None:
        for piece in pieces:
            await self.client.say(r.StreamData(self.number, piece))

    def first(
        self, session: SessionId | None = None, *, grant: bytes | None = None, seed: bytes = b""
    ) -> tuple[OperatorHandshake, bytes]:
        """A real message 1, with its opening."""
        device = DeviceKeys(seed or bytes.fromhex(identity.load(self._machine.identity).private))
        about = session or host_channel(self.host.key)
        inputs = InputStream(
            about, device.public.key, OperatorId(os.urandom(16).hex()), device.sign
        )
        shown = (decoded(self._machine.grant) or b"") if grant is None else grant
        dialling = OperatorHandshake(
            inputs, device.public, device.static, KeyPair(os.urandom(32)), self.host,
            EpochFloor(0 if session else HOST_EPOCH), grant=shown,
        )  # fmt: skip
        return dialling, Opening(session).encoded() + dialling.first()

    async def shake(
        self, session: SessionId | None = None, *, grant: bytes | None = None, seed: bytes = b""
    ) -> None:
        """The whole handshake; from then on `say` and `hear`."""
        dialling, message = self.first(session, grant=grant, seed=seed)
        await self.throw(message)
        self.channel = dialling.finish(await self._data(), 0.0)

    async def say(self, fields: dict[str, Any], *, signed: bool = False) -> None:
        await self.throw(*self.records(fields, signed=signed))

    def records(self, fields: dict[str, Any], *, signed: bool = False) -> list[bytes]:
        if signed:
            return self.channel.write(body_of(fields), 0.0)
        return self.channel.sealed.seal(RecordKind.MESSAGE, body_of(fields), 0.0)

    async def hear(self, number: int) -> dict[str, Any]:
        """The answer with this number."""
        while True:
            said = self.channel.receive(await self._data(), 0.0)
            if said is not None and said.kind == RecordKind.MESSAGE:
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
                if isinstance(message, r.StreamData) and message.stream == self.number:
                    return message.data
                if isinstance(message, r.StreamClosed) and message.stream == self.number:
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
    return RudeStream(client, await client.hear_among(r.StreamOpened), machine)


class Reader:
    """One who is attached to a session and reads what is sent to all of it. That it is told to go
    means nothing to it: it keeps its stream, its subscription and every key it ever got."""

    def __init__(self, stream: RudeStream, session: SessionId) -> None:
        self._stream, self._client, self.session = stream, stream.client, session
        self._listener = Listener(session, stream.host.key, EpochFloor())
        self.read = b""
        self.refused = 0  # frames it could not open
        self.told: list[str] = []  # messages, by their tags
        self.over = False  # the relay sends it nothing of the session any more
        self._began = asyncio.get_running_loop().time()

    @classmethod
    async def attach(cls, client: OperatorClient, machine: Machine, session: SessionId) -> Reader:
        stream = await stream_to(client, machine)
        await stream.shake(session)
        await stream.say(HELLO)
        looks = {"t": "attach", "id": 1, "session": session, "channel": 1, "observe": True}
        assert (await stream.ask(looks))["t"] == "attached"
        reader = cls(stream, session)
        await client.say(r.Subscribe(99, session))
        await reader.until(lambda: "subscribed" in reader.told)
        shares = {"t": "share", "id": 2, "session": session, "channel": 1, "anew": False}
        await stream.say(shares)
        await reader.until(lambda: "shared" in reader.told)
        return reader

    async def ask(self, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._stream.ask(fields)

    async def until(self, fulfilled: Callable[[], bool]) -> None:
        async with asyncio.timeout(ANSWER_S):
            while not fulfilled():
                await self._hear(await self._client.next())

    async def _hear(self, message: Message) -> None:
        match message:
            case r.StreamData(stream=number, data=data) if number == self._stream.number:
                now = asyncio.get_running_loop().time() - self._began
                self._opened(self._stream.channel.receive(data, now))
                await self._stream.throw(*self._stream.channel.sealed.poll(now))
            case r.Broadcast(session=self.session, data=frame):
                try:
                    self.read += self._listener.open(frame, 0.0).data[8:]
                except HoldfastError:
                    self.refused += 1
            case r.SessionGone(session=self.session):
                self.over = True
            case _:
                self.told.append(message.tag)

    def _opened(self, said: OpenedRecord | None) -> None:
        if said is None:
            return
        if said.kind == RecordKind.OUTPUT_KEY:
            self._listener.take_key(said.body, 0.0)
        elif said.kind == RecordKind.MESSAGE:
            self.told.append(fields_of(said.body)["t"])
