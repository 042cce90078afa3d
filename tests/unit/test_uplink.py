"""A host at its relay: what it says, and what it makes of what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.dial import websocket
from holdfast.dial.address import relay_address
from holdfast.dial.backoff import Leaving
from holdfast.host.reach import uplink as module
from holdfast.host.reach.uplink import Uplink
from holdfast.model.errors import RelayUnreachable
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.ed25519 import check
from holdfast.wire.key_agreement import channel_key, device_of
from holdfast.wire.messages.base import Message
from unit.virtual_time import run

HOST, SESSION_KEY = SigningKey(bytes(32)), SigningKey(bytes([1]) * 32)
SESSION = SessionId.of_key(SESSION_KEY.public)
ADDRESS = relay_address("http://relay.example:7420")
PATIENCE_S = 10.0


class Relay:
    """The other end of one connection."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self.has_room = True
        self.said: asyncio.Queue[Message] = asyncio.Queue()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        self.tell(r.Challenge((r.RELAY_VERSION,), b"c" * r.CHALLENGE_BYTES))

    def send(self, message: bytes) -> None:
        self.said.put_nowait(r.decode(message))

    def tell(self, message: Message) -> None:
        self._hear(r.encode(message))

    def close(self) -> None:
        if not self.lost.done():
            self.lost.set_result("closed")

    async def heard(self, kind: type[Message]) -> Any:
        message = await asyncio.wait_for(self.said.get(), PATIENCE_S)
        assert isinstance(message, kind), message
        return message

    async def greeted(self) -> r.Announce:
        proof = await self.heard(r.ProveHost)
        text = r.host_text(b"c" * r.CHALLENGE_BYTES, ADDRESS.name)
        assert check(proof.key, text, proof.signature) and proof.key == HOST.public
        self.tell(r.Greeted(r.RELAY_VERSION, 1 << 17, 1 << 18, 1 << 18))
        return await self.heard(r.Announce)  # type: ignore[no-any-return]


class Operator:
    """Behind a stream."""

    def __init__(self, *_: object) -> None:
        pass

    def gone(self) -> None:
        pass


class Reach:
    """What an uplink needs to know of its host."""

    host_key = HOST
    device = device_of(HOST.public, channel_key(HOST.seed), HOST.sign)
    host = None

    def __init__(self) -> None:
        signature = SESSION_KEY.sign(r.session_text(SESSION, HOST.public, 3))
        self.sessions = [r.Announced(SESSION_KEY.public, 3, signature)]
        self.losses = 0

    def announced(self) -> list[r.Announced]:
        return self.sessions

    def lost(self, _: Uplink) -> None:
        self.losses += 1

    def has_room(self) -> None:
        pass


class Scene:
    def __init__(self) -> None:
        self.reach = Reach()
        self.dialled: asyncio.Queue[Relay] = asyncio.Queue()
        self.refusals = 0

    async def connect(
        self, _: object, path: str, hear: Callable[[bytes], None], on_room: object
    ) -> Relay:
        assert path == "/v1/host"
        if self.refusals:
            self.refusals -= 1
            raise RelayUnreachable("not there")
        relay = Relay(hear)
        self.dialled.put_nowait(relay)
        return relay

    async def relay(self) -> Relay:
        return await asyncio.wait_for(self.dialled.get(), PATIENCE_S)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def played(scene: Callable[[Scene, Uplink], Coroutine[Any, Any, None]]) -> None:
        async def all_of_it() -> None:
            stage = Scene()
            monkeypatch.setattr(websocket, "connect", stage.connect)
            monkeypatch.setattr(module, "_AGAIN_S", 0.01)
            uplink = Uplink(stage.reach, ADDRESS)  # type: ignore[arg-type]
            try:
                await scene(stage, uplink)
            finally:
                uplink.close()
                await uplink.ended()

        run(all_of_it)

    return played


@pytest.mark.requirement("R1")
def test_it_proves_itself_and_then_announces_all_it_has(play: Callable[..., None]) -> None:
    async def scene(stage: Scene, uplink: Uplink) -> None:
        relay = await stage.relay()
        uplink.announce(stage.reach.sessions)  # a session that begins before it is greeted
        announced = await relay.greeted()
        assert announced.sessions == tuple(stage.reach.sessions)
        assert uplink.up and relay.said.empty()

    play(scene)


@pytest.mark.requirement("F5")
def test_it_is_dialled_again_for_as_long_as_it_takes(play: Callable[..., None]) -> None:
    async def scene(stage: Scene, uplink: Uplink) -> None:
        relay = await stage.relay()
        await relay.greeted()
        stage.refusals = 2
        relay.close()
        again = await stage.relay()
        assert stage.refusals == 0 and stage.reach.losses == 1 and not uplink.up
        await again.greeted()

    play(scene)


@pytest.mark.requirement("F5")
def test_a_relay_that_ends_is_left_after_those_who_came_through_it_and_dialled_again(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.001)
    monkeypatch.setattr(module, "RemoteStream", Operator)
    monkeypatch.setattr(module, "SOON_MOST_S", 0.01)

    async def scene(stage: Scene, uplink: Uplink) -> None:
        relay = await stage.relay()
        await relay.greeted()
        relay.tell(r.Incoming(7, None))
        relay.tell(r.GoingAway(2.0))  # of which a host takes a tenth, a third when somebody stays
        done, _ = await asyncio.wait([relay.lost], timeout=0.3)
        assert not done and uplink.up, "somebody is there"
        relay.tell(r.StreamClosed(7, r.Why.OPERATOR_GONE))
        stage.refusals = 8  # by the one that ends; with waits that double it would take too long
        await (await stage.relay()).greeted()
        assert relay.lost.done() and stage.refusals == 0

    play(scene)


@pytest.mark.parametrize("within_s", [0.0, -1.0, float("nan"), float("inf")])
def test_whatever_time_a_relay_gives_it_is_left(within_s: float) -> None:
    leaving = Leaving(within_s, lambda: 1.0)
    assert leaving.operator_s <= leaving.host_s <= leaving.host_latest_s <= 20.0


@pytest.mark.requirement("F5")
def test_what_was_refused_for_a_while_is_announced_again(play: Callable[..., None]) -> None:
    async def scene(stage: Scene, _: Uplink) -> None:
        relay = await stage.relay()
        first = await relay.greeted()
        for _again in range(2):
            relay.tell(
                r.Registered(first.id, (r.AnnounceRefusal(SESSION, "coordination_down", 0),))
            )
            again = await relay.heard(r.Announce)
            assert again.sessions == tuple(stage.reach.sessions)
        # It may have ended meanwhile.
        stage.reach.sessions = []
        relay.tell(r.Registered(first.id, (r.AnnounceRefusal(SESSION, "coordination_down", 0),)))
        await asyncio.sleep(1.0)
        assert relay.said.empty()

    play(scene)


@pytest.mark.requirement("F1")
def test_what_was_fenced_is_not(play: Callable[..., None]) -> None:
    async def scene(stage: Scene, _: Uplink) -> None:
        relay = await stage.relay()
        first = await relay.greeted()
        relay.tell(r.Registered(first.id, (r.AnnounceRefusal(SESSION, "fenced", 9),)))
        await asyncio.sleep(1.0)
        assert relay.said.empty()

    play(scene)


@pytest.mark.parametrize(
    "message", [r.StreamOpened(1, 1, b"", 0, b"", b""), r.RelayFailed(0, "limit_reached", "full")]
)
def test_a_relay_that_says_what_it_should_not_is_left_and_dialled_again(
    play: Callable[..., None], message: Message
) -> None:
    async def scene(stage: Scene, _: Uplink) -> None:
        relay = await stage.relay()
        await relay.greeted()
        relay.tell(message)
        assert relay.lost.done()
        await (await stage.relay()).greeted()

    play(scene)


@pytest.mark.requirement("R4")
def test_a_relay_cannot_put_one_operator_in_the_place_of_another(
    play: Callable[..., None],
) -> None:
    async def scene(stage: Scene, uplink: Uplink) -> None:
        relay = await stage.relay()
        await relay.greeted()
        relay.tell(r.Incoming(5, None))
        first = uplink._streams[5]
        relay.tell(r.Incoming(5, None))
        assert relay.lost.done()
        await (await stage.relay()).greeted()
        assert first._over and not uplink._streams, "the first is not forgotten in its place"

    play(scene)


@pytest.mark.requirement("R4")
def test_a_relay_that_tells_of_more_and_more_operators_fills_no_memory(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RELAY_HOST_STREAMS", 3)

    async def scene(stage: Scene, uplink: Uplink) -> None:
        relay = await stage.relay()
        await relay.greeted()
        for number in range(5):
            relay.tell(r.Incoming(number, None))
        assert [(await relay.heard(r.Close)).stream for _ in range(2)] == [3, 4]
        assert sorted(uplink._streams) == [0, 1, 2] and not relay.lost.done()
        relay.tell(r.StreamClosed(1, r.Why.CLOSED))
        relay.tell(r.Incoming(5, None))
        assert sorted(uplink._streams) == [0, 2, 5]

    play(scene)
