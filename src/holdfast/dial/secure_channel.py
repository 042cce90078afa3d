"""One end-to-end channel to a host, over a stream through a relay or a socket: the end of whoever
dialled, with its timers. What is said in it is the caller's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from holdfast.model.device import Device
from holdfast.model.errors import ChannelBroken, HandshakeFailed, HoldfastError
from holdfast.model.ids import OperatorId, SessionId
from holdfast.wire.channel import OperatorChannel, OperatorHandshake
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.input_chain import InputStream
from holdfast.wire.key_agreement import KeyPair, channel_key, device_of
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.stream_opening import Opening

_HANDSHAKE_S = 10.0
_LAST_WORDS_S = 0.05


class RecordStream(Protocol):
    """A two-way pipe to a host: records in order, or its end."""

    on_data: Callable[[bytes], None]
    on_closed: Callable[[str], None]

    @property
    def host(self) -> Device: ...

    @property
    def has_room(self) -> bool: ...

    def send(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class DeviceKeys:
    """This program's keys: who it acts as."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(seed)
        self.sign = key.sign
        self.static = channel_key(seed)
        self.public = device_of(key.public_key().public_bytes_raw(), self.static, key.sign)


class RemoteChannel:
    """Made by `dial`. Each channel has a stream of inputs of its own: what is sent again after a
    loss, and under which number, is decided by whoever numbers the inputs (sdk/client_core)."""

    def __init__(
        self,
        stream: RecordStream,
        channel: OperatorChannel,
        floor: EpochFloor,
        on_end: Callable[[HoldfastError], None],
    ) -> None:
        self.stream, self._channel, self.floor, self._on_end = stream, channel, floor, on_end
        self.on_said: Callable[[OpenedRecord], None] = lambda _: None
        self._loop = asyncio.get_running_loop()
        self._beat: asyncio.TimerHandle | None = None
        self.over = False
        stream.on_data, stream.on_closed = self._on_record, self._on_closed
        self._watch()

    def send(self, body: bytes, *, signed: bool) -> None:
        """One message of the protocol."""
        now = self._loop.time()
        if signed:
            records = self._channel.write(body, now)
        else:
            records = self._channel.sealed.seal(RecordKind.MESSAGE, body, now)
        for record in records:
            self.stream.send(record)

    def close(self, why: HoldfastError | None = None) -> None:
        """Nothing more comes from us. `why`: reported as the reason of the end."""
        if self.over:
            return
        self._stop()
        try:
            for record in self._channel.sealed.finish(self._loop.time()):
                self.stream.send(record)
        except HoldfastError:
            pass
        self._loop.call_later(_LAST_WORDS_S, self.stream.close)
        if why is not None:
            self._on_end(why)

    def _on_record(self, record: bytes) -> None:
        if self.over:
            return
        try:
            said = self._channel.receive(record, self._loop.time())
        except HoldfastError as error:
            self._end(error)
            return
        if said is not None:
            self.on_said(said)
        if self._channel.sealed.peer_finished:
            self.stream.close()
            self._end(ChannelBroken("the host has ended the channel"))

    def _on_closed(self, why: str) -> None:
        self._end(ChannelBroken(f"the connection to the host was lost: {why}"))

    def _watch(self) -> None:
        sealed = self._channel.sealed
        try:
            for record in sealed.poll(self._loop.time()):
                self.stream.send(record)
        except HoldfastError as error:
            self.stream.close()
            self._end(error)
            return
        if sealed.renewal_due(self._loop.time()):
            # Its user comes back at once, through a channel with new secrets.
            self.close(ChannelBroken("the channel was too old; a new one is made"))
            return
        self._beat = self._loop.call_at(sealed.wake_at(), self._watch)

    def _stop(self) -> None:
        self.over = True
        if self._beat is not None:
            self._beat.cancel()

    def _end(self, error: HoldfastError) -> None:
        if not self.over:
            self._stop()
            self._on_end(error)


async def dial(
    stream: RecordStream,
    opening: Opening,
    session: SessionId,
    device: DeviceKeys,
    floor: EpochFloor,
    on_end: Callable[[HoldfastError], None],
    *,
    grant: bytes = b"",
    psk: bytes = b"",
    before: bytes = b"",
) -> RemoteChannel:
    """The channel over this stream, made with the host that the stream leads to. `session` is what
    inputs are signed for: the session, or what represents the host."""
    answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def said(data: bytes) -> None:
        if not answered.done():
            answered.set_result(data)

    def closed(why: str) -> None:
        if not answered.done():
            answered.set_exception(
                HandshakeFailed(f"the host did not answer: {why}", hint="was this device revoked?")
            )

    stream.on_data, stream.on_closed = said, closed
    inputs = InputStream(session, device.public.key, OperatorId(os.urandom(16).hex()), device.sign)
    dialling = OperatorHandshake(
        inputs, device.public, device.static, KeyPair(os.urandom(32)), stream.host, floor,
        grant=grant, psk=psk, before=before,
    )  # fmt: skip
    stream.send(opening.encoded() + dialling.first())
    try:
        async with asyncio.timeout(_HANDSHAKE_S):
            message = await answered
    except TimeoutError:
        stream.close()
        raise HandshakeFailed("the host did not answer in time") from None
    channel = dialling.finish(message, asyncio.get_running_loop().time())
    return RemoteChannel(stream, channel, floor, on_end)
