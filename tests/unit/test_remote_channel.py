"""The operator's end of a channel over a stream: its timers, and its ends."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.dial import secure_channel as remote_channel
from holdfast.dial.secure_channel import DeviceKeys, RemoteChannel, dial
from holdfast.model.errors import ChannelBroken, HoldfastError
from holdfast.model.ids import SessionId
from holdfast.model.limits import CHANNEL_PATIENCE_S, CHANNEL_RENEW_S
from holdfast.sdk.reach import remote_host as remote
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.channel import HostChannel, HostHandshake
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.input_chain import InputBook
from holdfast.wire.key_agreement import KeyPair, channel_key, device_of
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.signed_input import SignedInput
from holdfast.wire.stream_opening import Opening, read_opening

SESSION = SessionId("0" * 26)
HOST = SigningKey(bytes(32))


class Wire:
    """A stream whose other end is a host in the same loop."""

    def __init__(self) -> None:
        static = channel_key(HOST.seed)
        self.host = device_of(HOST.public, static, HOST.sign)
        self._static = static
        self._book = InputBook(Incarnation(SESSION, 4))
        self.channel: HostChannel | None = None
        self.heard: list[SignedInput | OpenedRecord] = []
        self.closed = False
        self.has_room = True
        self.on_data: Callable[[bytes], None] = lambda _: None
        self.on_closed: Callable[[str], None] = lambda _: None

    def send(self, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if self.channel is None:
            opening, message = read_opening(data)
            assert opening == Opening(SESSION)
            answering = HostHandshake(
                self._book.incarnation, self._static, KeyPair(os.urandom(32)), message
            )
            said, self.channel = answering.answer(self._book, lambda _: None, now)
            self.on_data(said)
        elif (heard := self.channel.receive(data, now)) is not None:
            self.heard.append(heard)

    def say(self, kind: RecordKind, body: bytes) -> None:
        assert self.channel is not None
        for record in self.channel.seal(kind, body, asyncio.get_running_loop().time()):
            self.on_data(record)

    def close(self) -> None:
        self.closed = True


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be moved."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def play(scene: Callable[[Wire, RemoteChannel, list[HoldfastError]], None]) -> None:
    async def all_of_it() -> None:
        wire, ends = Wire(), list[HoldfastError]()
        device, floor = DeviceKeys(bytes(range(32))), EpochFloor()
        channel = await dial(wire, Opening(SESSION), SESSION, device, floor, ends.append)
        assert floor.highest == 4
        scene(wire, channel, ends)

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(all_of_it())


@pytest.mark.requirement("R4")
def test_what_changes_something_arrives_signed_and_the_rest_does_not() -> None:
    def scene(wire: Wire, channel: RemoteChannel, ends: list[HoldfastError]) -> None:
        channel.send(b"look", signed=False)
        channel.send(b"change", signed=True)
        looked, changed = wire.heard
        assert looked == OpenedRecord(RecordKind.MESSAGE, b"look")
        assert isinstance(changed, SignedInput) and changed.payload == b"change"
        assert changed.key == DeviceKeys(bytes(range(32))).public.key
        assert not ends

    play(scene)


@pytest.mark.requirement("R4")
def test_a_host_that_falls_silent_is_noticed() -> None:
    def scene(wire: Wire, channel: RemoteChannel, ends: list[HoldfastError]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clock)
        loop.ahead += CHANNEL_PATIENCE_S + 1
        channel._watch()
        assert [type(each) for each in ends] == [ChannelBroken]
        assert wire.closed and channel.over

    play(scene)


@pytest.mark.requirement("R4")
def test_an_old_channel_gives_way_to_a_new_one() -> None:
    def scene(wire: Wire, channel: RemoteChannel, ends: list[HoldfastError]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clock)
        while loop.ahead < CHANNEL_RENEW_S:
            assert not ends
            loop.ahead += 4.0
            wire.say(RecordKind.MESSAGE, b"here")
            assert wire.channel is not None
            for record in wire.channel.sealed.poll(loop.time()):
                wire.on_data(record)
            channel._watch()
        assert [type(each) for each in ends] == [ChannelBroken]
        assert wire.channel is not None and wire.channel.sealed.peer_finished, "it said so"

    play(scene)


def test_what_a_relay_alters_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def scene(wire: Wire, channel: RemoteChannel, ends: list[HoldfastError]) -> None:
        said: list[OpenedRecord] = []
        channel.on_said = said.append
        wire.say(RecordKind.MESSAGE, b"right")
        assert said == [OpenedRecord(RecordKind.MESSAGE, b"right")]
        wire.on_data(b"x" * 40)
        assert [type(each) for each in ends] == [ChannelBroken]
        wire.say(RecordKind.MESSAGE, b"too late")
        assert len(said) == 1

    monkeypatch.setattr(remote_channel, "_HANDSHAKE_S", 1.0)
    play(scene)


class Link:
    """To a relay; it only notes that it is closed."""

    on_leave: Callable[[], None]

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def close(self) -> None:
        self.closed.set()


async def test_a_way_that_ends_before_it_is_used_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay says it ends, or the host refuses, when the channel stands and has no user yet."""
    monkeypatch.setattr(remote, "_LINGER_S", 0.0)

    wire, link, device = Wire(), Link(), DeviceKeys(bytes(range(32)))
    machine = Machine("box", HOST.public.hex(), (), "me")
    bridge = remote._Bridge(machine, device, link)  # type: ignore[arg-type]
    opening, floor = Opening(SESSION), EpochFloor()
    bridge._host = await dial(wire, opening, SESSION, device, floor, bridge._end)
    link.on_leave()
    ours, theirs = socket.socketpair()
    with theirs:
        bridge.serve(ours)
        await asyncio.wait_for(link.closed.wait(), 10)
        assert bridge._host.over and theirs.recv(1) == b""
