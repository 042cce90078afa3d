"""A stream that a relay tells of: before anybody is known to be at its other end, who is let in
there, and for how long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.dial.secure_channel import DeviceKeys
from holdfast.host.reach import remote_stream as remote
from holdfast.host.reach.remote_stream import RemoteStream
from holdfast.model.errors import HoldfastError, NoSuchActor, ProtocolViolation
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.limits import CHANNEL_OVERDUE_S, CHANNEL_RENEW_S
from holdfast.wire import relay_messages as r
from holdfast.wire.channel import OperatorChannel, OperatorHandshake
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.input_chain import InputBook, InputStream
from holdfast.wire.key_agreement import KeyPair, channel_key, device_of
from holdfast.wire.messages.base import Message
from holdfast.wire.record_layer import RecordKind
from holdfast.wire.request_classes import body_of
from holdfast.wire.stream_opening import Opening

SESSION, HOST = SessionId("0" * 26), SigningKey(bytes(32))
STATIC = channel_key(HOST.seed)
STRANGERS = 200


class Uplink:
    """A relay that is told when a stream is closed."""

    window = 1 << 18
    has_room = True

    def __init__(self) -> None:
        self.reach = SimpleNamespace(host=None, input_book=lambda _: None)
        self.complaints: list[HoldfastError] = []
        self.closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def complain(self, error: HoldfastError) -> None:
        self.complaints.append(error)

    def close_stream(self, number: int) -> None:
        self.closed.set_result(number)


@pytest.mark.requirement("R3")
async def test_one_who_opens_it_and_says_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_GREETING_S", 0.01)

    uplink = Uplink()
    RemoteStream(uplink, 7)  # type: ignore[arg-type]
    assert await asyncio.wait_for(uplink.closed, 10) == 7


@pytest.mark.requirement("R3")
@pytest.mark.parametrize("first", [b"", b"?", b"S", b"S" + b"!" * 26, b"I1234567"])
async def test_what_is_no_opening_ends_it(first: bytes) -> None:
    uplink = Uplink()
    stream = RemoteStream(uplink, 7)  # type: ignore[arg-type]
    stream.receive(first)
    assert uplink.closed.done()
    # Not for want of a session: one that is no session's at all is not even looked for.
    assert [type(each) for each in uplink.complaints] == [ProtocolViolation]


# -- who comes ------------------------------------------------------------------------------------


class Host(Uplink):
    """A host with one session, seen from its relay. Whoever is `known` is let in."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Message] = []
        self.known: set[bytes] = set()
        self.observes = True
        self.book = InputBook(Incarnation(SESSION, 4))
        live = SimpleNamespace(spec=SimpleNamespace(id=SESSION))
        host = SimpleNamespace(
            admission=SimpleNamespace(admit=self._admit, withdraw=lambda _: None),
            sessions=SimpleNamespace(live={SESSION: live}, may_see=lambda *_: self.observes),
            operators=SimpleNamespace(add=lambda _: None, closed=lambda _: None),
        )
        self.reach = SimpleNamespace(host=host, static=STATIC, input_book=lambda _: self.book)

    def _admit(self, _: str, key: bytes, *__: object) -> object:
        if key not in self.known:
            raise NoSuchActor("this device is not known here")
        return SimpleNamespace(uid=os.getuid(), id="guest")

    def say(self, message: Message) -> None:
        self.said.append(message)

    def close_stream(self, number: int) -> None:
        if not self.closed.done():
            super().close_stream(number)

    @property
    def admits(self) -> list[r.Admit]:
        return [each for each in self.said if isinstance(each, r.Admit)]


class Caller:
    """A device at the other end of a stream, with a channel that stands, and not a word said."""

    def __init__(self, host: Host, device: DeviceKeys, about: SessionId | None = SESSION) -> None:
        self.host, self.stream = host, RemoteStream(host, 7)  # type: ignore[arg-type]
        self.name = OperatorId(os.urandom(16).hex())
        inputs = InputStream(SESSION, device.public.key, self.name, device.sign)
        known = device_of(HOST.public, STATIC, HOST.sign)
        dialling = OperatorHandshake(
            inputs, device.public, device.static, KeyPair(os.urandom(32)), known, EpochFloor()
        )
        host.said.clear()
        self.stream.receive(Opening(about).encoded() + dialling.first())
        (answer,) = host.said
        assert isinstance(answer, r.StreamData)
        self.channel: OperatorChannel
        self.channel = dialling.finish(answer.data, self.now)
        host.said.clear()

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def sends(self, records: list[bytes]) -> None:
        for record in records:
            self.stream.receive(record)

    def beats(self) -> None:
        """Hear what there is, and say that we live."""
        for message in self.host.said:
            if isinstance(message, r.StreamData):
                self.channel.receive(message.data, self.now)
        self.host.said.clear()
        self.sends(self.channel.sealed.poll(self.now))


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be moved."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def play(scene: Callable[[Host], Coroutine[Any, Any, None]]) -> None:
    async def all_of_it() -> None:
        await scene(Host())

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(all_of_it())


def let_in(host: Host) -> Caller:
    device = DeviceKeys(bytes(range(32)))
    host.known.add(device.public.key)
    return Caller(host, device)


@pytest.mark.requirement("R3")
def test_of_strangers_nothing_is_kept_and_of_who_is_let_in_the_stream() -> None:
    async def scene(host: Host) -> None:
        for number in range(STRANGERS):
            stranger = Caller(host, DeviceKeys(number.to_bytes(32)))
            if number % 2:
                stranger.sends(stranger.channel.sealed.poll(stranger.now))
            else:
                stranger.sends(stranger.channel.write(b"let me in", stranger.now))
            assert stranger.stream._operator is None
            stranger.stream.gone()
        assert not host.book.marks and not host.book._channels and not host.book._own
        known = let_in(host)
        known.beats()
        assert [stream for _, stream in host.book.marks] == [known.name]
        known.stream.gone()

    play(scene)


@pytest.mark.requirement("R3")
def test_a_stranger_that_goes_on_asking_is_not_heard() -> None:
    async def scene(host: Host) -> None:
        stranger = Caller(host, DeviceKeys(bytes(32)), about=None)
        asks = body_of({"t": "attach", "id": 1, "session": SESSION, "channel": 1})
        stranger.sends(stranger.channel.sealed.seal(RecordKind.MESSAGE, asks, stranger.now))
        assert not host.closed.done() and not host.complaints, "its refusal is on its way"
        stranger.stream.gone()

    play(scene)


@pytest.mark.requirement("A2", "R3")
def test_what_goes_to_all_is_for_who_may_observe_and_its_stream_ends_with_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_LINGER_S", 0.01)

    async def scene(host: Host) -> None:
        host.observes = False
        caller = let_in(host)
        caller.sends(caller.channel.sealed.poll(caller.now))
        assert not host.admits, "it is let in, and may not observe this session"
        host.observes = True
        for _ in range(2):
            caller.stream.judge()
        assert host.admits == [r.Admit(7, SESSION)]
        host.observes = False
        caller.stream.judge()
        assert await asyncio.wait_for(host.closed, 10) == 7

    play(scene)


@pytest.mark.requirement("R4")
def test_a_channel_that_is_not_renewed_in_time_is_closed_by_the_host() -> None:
    async def scene(host: Host) -> None:
        loop, caller = asyncio.get_running_loop(), let_in(host)
        assert isinstance(loop, Clock)
        caller.beats()
        while not host.closed.done():
            assert loop.ahead < CHANNEL_RENEW_S + CHANNEL_OVERDUE_S + 10, "it reads on for ever"
            loop.ahead += 5.0
            caller.stream._watch_channel()
            caller.beats()
        assert loop.ahead > CHANNEL_RENEW_S + CHANNEL_OVERDUE_S - 10, "an honest one has time"
        assert not host.complaints

    play(scene)


@pytest.mark.requirement("R4")
def test_a_stream_that_is_over_closes_no_other_of_its_number() -> None:
    async def scene(host: Host) -> None:
        stream = RemoteStream(host, 7)  # type: ignore[arg-type]
        stream.gone()
        stream.close()
        assert not host.closed.done()

    play(scene)
