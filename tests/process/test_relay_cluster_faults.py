"""Several relays when one of them, or NATS, dies, hangs, or is cut off (F1, F5). Real processes;
what is waited for is bounded by what docs/relay.md says."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.nats.server import NatsCluster
from holdfast.adapters.signing import SigningKey
from holdfast.model.limits import COORDINATION_CALL_S, RELAY_SILENCE_S
from holdfast.wire import relay_messages as r
from process.relay_pairs import both, far_subscriber, pair_on
from process.relaying import (
    PATIENCE_S,
    HostClient,
    OperatorClient,
    RelayProcess,
    announced,
    at,
    bounded,
    fresh_session,
)

NOTICED_S = RELAY_SILENCE_S + 4.0  # silence, two beats, and a busy machine


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    with NatsCluster(tmp_path_factory.mktemp("nats"), 3) as cluster:
        yield cluster


async def open_soon(operator: OperatorClient, to: r.Open) -> r.StreamOpened:
    """Asked again until it is there, as a client does."""
    async with asyncio.timeout(PATIENCE_S * 2):
        while True:
            await operator.say(to)
            while not isinstance(answer := await operator.next(), r.StreamOpened | r.RelayFailed):
                pass
            if isinstance(answer, r.StreamOpened):
                return answer
            await asyncio.sleep(0.05)


async def announce_soon(host: HostClient, key: SigningKey, epoch: int) -> None:
    async with asyncio.timeout(PATIENCE_S * 2):
        while refused := (await host.announce((key, epoch))).refused:
            assert refused[0].code == "coordination_down", refused
            await asyncio.sleep(0.05)


# -- relays -----------------------------------------------------------------------------------


@pytest.mark.requirement("F5")
def test_a_killed_relay_is_forgotten_within_seconds_and_its_host_found_at_the_other(
    nats: NatsCluster,
) -> None:
    async def scene(one: RelayProcess, other: RelayProcess) -> None:
        async with both((one, other)) as (here, there):
            host = await here.host()
            key, session = fresh_session()
            await host.announce((key, 2))
            operator, opened, _ = await far_subscriber(host, there, session)
            began = time.monotonic()
            one.process.kill()
            told = [await operator.next(), await operator.next()]
            assert r.SessionGone(session, r.Why.HOST_GONE) in told
            assert r.StreamClosed(opened.stream, r.Why.HOST_GONE) in told
            assert time.monotonic() - began < NOTICED_S
            await other.metric_is("relays", 0)
            # Nothing points to it, and its epochs are known: the host comes back elsewhere.
            assert (await operator.refused(r.Open(5, b"", session))).code == "no_such_session"
            thief = await there.host()
            assert (await thief.announce((key, 2))).refused[0].code == "fenced"
            again = await there.host(host.key)
            assert (await again.announce((key, 2))).refused == ()
            assert (await operator.open(session)).host == host.key.public

    with pair_on(nats, "killed") as pair:
        bounded(scene(*pair))


@pytest.mark.requirement("F1", "F5")
def test_a_paused_relay_is_lost_and_when_it_goes_on_its_host_hears_what_it_missed(
    nats: NatsCluster,
) -> None:
    async def scene(one: RelayProcess, other: RelayProcess) -> None:
        async with both((one, other)) as (here, there):
            host = await here.host()
            key, session = fresh_session()
            await host.announce((key, 2))
            operator, opened, number = await far_subscriber(host, there, session)
            one.signal(signal.SIGSTOP)
            began = time.monotonic()
            assert (await operator.hear_among(r.StreamClosed)).stream == opened.stream
            assert time.monotonic() - began < NOTICED_S
            # Meanwhile the session moves. What the sleeper still believes is told it when it wakes.
            mover = await there.host()
            assert (await mover.announce((key, 3))).refused == ()
            assert (await operator.open(session)).epoch == 3
            one.signal(signal.SIGCONT)
            heard: list[object] = []
            while not (
                r.Superseded(session, 3) in heard
                and any(isinstance(one, r.StreamClosed) and one.stream == number for one in heard)
            ):
                heard.append(await host.next())
            await other.metric_is("relays", 1)
            at_sleeper = await here.operator()
            assert (await at_sleeper.open(session)).host == mover.key.public
            assert (await host.announce((key, 2))).refused[0].code == "fenced"

    with pair_on(nats, "paused") as pair:
        bounded(scene(*pair))


def test_a_relay_that_drains_opens_nothing_new_and_is_forgotten_when_it_ends(
    nats: NatsCluster,
) -> None:
    async def scene(one: RelayProcess, other: RelayProcess) -> None:
        async with both((one, other)) as (here, there):
            host, operator = await here.host(), await there.operator()
            opened = await operator.open(host.key.public)
            number = (await host.hear(r.Incoming)).stream
            one.process.terminate()
            await host.hear_among(r.GoingAway)
            assert (await operator.refused(r.Open(9, host.key.public))).code == "host_down"
            # What is open stays open until the host has gone.
            await host.say(r.StreamData(number, b"on my way"))
            assert (await operator.hear(r.StreamData)).data == b"on my way"
            await host.ws.close()
            assert await operator.hear(r.StreamClosed) == r.StreamClosed(
                opened.stream, r.Why.HOST_GONE
            )
            assert await asyncio.to_thread(one.process.wait, PATIENCE_S) == 0
            await other.metric_is("relays", 0)

    with pair_on(nats, "drained") as pair:
        bounded(scene(*pair))


# -- NATS -------------------------------------------------------------------------------------


@pytest.mark.requirement("F1", "F5")
def test_without_nats_what_is_local_goes_on_and_new_epochs_are_refused(tmp_path: Path) -> None:
    async def scene(nats: NatsCluster, one: RelayProcess, other: RelayProcess) -> None:
        async with both((one, other)) as (here, there):
            host, local, far = await here.host(), await here.operator(), await there.operator()
            key, session = fresh_session()
            await host.announce((key, 1))
            await local.open(session)
            near = (await host.hear(r.Incoming)).stream
            await far.open(session)
            await host.hear(r.Incoming)
            nats.nodes[0].pause()  # the only one: nobody is told, everybody waits
            # The far stream ends; the near one does not notice, also while announcing hangs.
            keys = [SigningKey.generate() for _ in range(64)]
            began = time.monotonic()
            await host.say(r.Announce(7, tuple(announced(host.key, one, 1) for one in keys)))
            async with asyncio.timeout(COORDINATION_CALL_S * 0.8):
                for number in range(5):
                    await host.say(r.StreamData(near, b"%d" % number))
                    assert (await local.hear(r.StreamData)).data == b"%d" % number
            refused = (await host.hear(r.Registered)).refused
            assert [one.code for one in refused] == ["coordination_down"] * 64
            assert time.monotonic() - began < COORDINATION_CALL_S * 3, "waited for each of them"
            assert (await far.hear(r.StreamClosed)).why is r.Why.HOST_GONE
            # What is routed stays routed, and announcing it again needs nobody.
            assert (await host.announce((key, 1))).refused == ()
            assert (await local.open(session)).epoch == 1
            await other.metric_is("relays", 0)
            code = (await far.refused(r.Open(3, b"", session))).code
            assert code == "coordination_down"
            nats.nodes[0].resume()
            await announce_soon(host, keys[0], 1)
            assert (await open_soon(far, r.Open(4, b"", session))).epoch == 1

    with NatsCluster(tmp_path, 1) as nats, pair_on(nats, "alone") as pair:
        bounded(scene(nats, *pair))


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_the_loss_of_one_nats_server_of_three_is_survived(tmp_path: Path, fault: str) -> None:
    """Bytes arrive in order or their stream is closed, whichever server it was; then all works."""

    async def scene(nats: NatsCluster, one: RelayProcess, other: RelayProcess) -> None:
        async with both((one, other)) as (here, there):
            host, operator = await here.host(), await there.operator()
            key, session = fresh_session()
            await host.announce((key, 1))
            for node in nats.nodes:
                opened = await open_soon(operator, r.Open(1, b"", session))
                number = (await host.hear_among(r.Incoming)).stream
                half = asyncio.Event()
                sending = asyncio.create_task(_count_up(host, number, 400, half))
                await half.wait()
                getattr(node, fault)()
                await _counted(operator, opened.stream, 400)
                await sending
                if fault == "kill":
                    node.start()
                    await asyncio.to_thread(node.wait_ready)
                else:
                    node.resume()
            await announce_soon(host, fresh_session()[0], 1)
            async with at(one) as again:
                thief = await again.host()
                async with asyncio.timeout(PATIENCE_S * 2):
                    while (await thief.announce((key, 1))).refused[0].code != "fenced":
                        await asyncio.sleep(0.05)

    with NatsCluster(tmp_path, 3) as nats, pair_on(nats, "one-less") as pair:
        bounded(scene(nats, *pair), 120.0)


async def _count_up(host: HostClient, stream: int, count: int, half: asyncio.Event) -> None:
    for number in range(count):
        if number == count // 2:
            half.set()
        await host.say(r.StreamData(stream, number.to_bytes(4)))
        await asyncio.sleep(0.002)


async def _counted(operator: OperatorClient, stream: int, count: int) -> None:
    """All of it in order, or a beginning of it and then the end."""
    expected = 0
    while expected < count:
        message = await operator.next()
        if isinstance(message, r.StreamClosed) and message.stream == stream:
            return
        if isinstance(message, r.StreamData) and message.stream == stream:
            assert int.from_bytes(message.data) == expected, "out of order, or something is missing"
            expected += 1
