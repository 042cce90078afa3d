"""Relays and NATS servers killed and paused at random, from a seed, while a host and operators talk
through them (F1, F5). What arrives is in order, once, and what it was; all find each other again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from pathlib import Path

import aiohttp
import pytest

from holdfast.adapters.nats.server import NatsCluster
from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from process.relay_pairs import relay_on
from process.relaying import Dialler, HostClient, bounded, fresh_session

SEED = 4
STORM_S = 20.0
BACK_S = 30.0  # after the last fault: a leader of NATS takes up to ten seconds to be chosen
OPERATORS = 4
_GONE = (AssertionError, ConnectionError, aiohttp.ClientError, TimeoutError, OSError)


class Place:
    """A relay that is started again on its port when it was killed."""

    def __init__(self, nats: NatsCluster) -> None:
        self._nats = nats
        self.relay = relay_on(nats, "storm")

    async def kill(self, for_s: float) -> None:
        self.relay.process.kill()
        await asyncio.sleep(for_s)
        await asyncio.to_thread(self._again)

    def _again(self) -> None:
        self.relay.__exit__(None, None, None)
        self.relay = relay_on(self._nats, "storm", listen=f"127.0.0.1:{self.relay.port}")

    async def pause(self, for_s: float) -> None:
        self.relay.signal(signal.SIGSTOP)
        await asyncio.sleep(for_s)
        self.relay.signal(signal.SIGCONT)


class StormHost:
    """At both relays at once, as a host is. Sends back what comes, and checks its order."""

    def __init__(self, key: SigningKey, session: SigningKey) -> None:
        self.key, self._session = key, session

    async def stay(self, place: Place) -> None:
        while True:
            with contextlib.suppress(*_GONE):
                async with Dialler(place.relay) as dialler, asyncio.timeout(None) as patience:
                    await self._serve(await dialler.host(self.key), patience)
            await asyncio.sleep(0.1)

    async def _serve(self, host: HostClient, patience: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        while (await host.announce((self._session, 1))).refused:
            await asyncio.sleep(0.1)
        expected: dict[int, int] = {}
        while True:
            patience.reschedule(loop.time() + 5.0)  # a paused relay says nothing: dial again
            message = await host.next()
            if isinstance(message, r.StreamData):
                number = int.from_bytes(message.data)
                if number != expected.get(message.stream, 0):
                    raise SystemExit(f"stream {message.stream}: {number} is not the next")
                expected[message.stream] = number + 1
                await host.say(r.StreamData(message.stream, message.data))


class StormOperator:
    """Sends numbers, waits for each to come back, opens anew when it must."""

    def __init__(self, session: SessionId, host: bytes, dice: random.Random) -> None:
        self._session, self._host, self._dice = session, host, dice
        self.echoes = self.streams = 0
        self.longest_s = 0.0
        self.last = time.monotonic()

    async def talk(self, places: list[Place]) -> None:
        while True:
            with contextlib.suppress(*_GONE):
                async with Dialler(self._dice.choice(places).relay) as dialler:
                    await self._through(dialler)
            await asyncio.sleep(0.05)

    async def _through(self, dialler: Dialler) -> None:
        async with asyncio.timeout(2.0):
            operator = await dialler.operator()
            opened = await operator.open(self._session)
        if opened.host != self._host or opened.epoch != 1:
            raise SystemExit("sent to somebody else")
        self.streams += 1
        for number in range(self._dice.randrange(50, 2000)):
            async with asyncio.timeout(3.0):
                await operator.say(r.StreamData(opened.stream, number.to_bytes(4)))
                while not isinstance(message := await operator.next(), r.StreamData):
                    if isinstance(message, r.StreamClosed):
                        return
            if int.from_bytes(message.data) != number:
                raise SystemExit("an echo was lost, doubled or out of order")
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - self.last)
            self.echoes, self.last = self.echoes + 1, now


async def _storm(dice: random.Random, places: list[Place], nats: NatsCluster) -> list[str]:
    """One thing at a time breaks, and is mended before the next."""
    over, faults = time.monotonic() + STORM_S, list[str]()
    while time.monotonic() < over:
        place, node = dice.choice(places), dice.choice(nats.nodes)
        fault, for_s = dice.choice(["kill", "pause", "kill nats", "pause nats"]), dice.uniform(1, 6)
        faults.append(f"{fault} {for_s:.1f} s")
        if fault == "kill":
            await place.kill(for_s / 3)
        elif fault == "pause":
            await place.pause(for_s)
        elif fault == "kill nats":
            node.kill()
            await asyncio.sleep(for_s)
            node.start()
            await asyncio.to_thread(node.wait_ready)
        else:
            node.pause()
            await asyncio.sleep(for_s)
            node.resume()
    return faults


@pytest.mark.timeout(180)
@pytest.mark.requirement("F1", "F5")
def test_a_storm_of_faults_loses_doubles_and_misroutes_nothing(tmp_path: Path) -> None:
    key, session = fresh_session()
    owner = SigningKey.generate()

    async def scene(places: list[Place], nats: NatsCluster) -> None:
        host = StormHost(owner, key)
        operators = [
            StormOperator(session, owner.public, random.Random(SEED + 1 + n))
            for n in range(OPERATORS)
        ]
        tasks = [asyncio.create_task(host.stay(place)) for place in places]
        tasks += [asyncio.create_task(one.talk(places)) for one in operators]
        faults = await _storm(random.Random(SEED), places, nats)
        before, began = [one.echoes for one in operators], time.monotonic()
        async with asyncio.timeout(BACK_S):
            while any(one.echoes < was + 50 for one, was in zip(operators, before, strict=True)):
                assert not [task.result() for task in tasks if task.done()]
                await asyncio.sleep(0.05)
        print(
            f"{faults}: {sum(before)} echoes on {sum(one.streams for one in operators)} streams, "
            f"longest silence {max(one.longest_s for one in operators):.1f} s, "
            f"all back {time.monotonic() - began:.1f} s after the last"
        )
        while pending := [task for task in tasks if not task.done()]:
            for task in pending:
                task.cancel()  # once is not enough: in Python 3.11 wait_for may lose it
            await asyncio.wait(pending, timeout=0.2)
        await _lower_epochs_are_refused(places)

    async def _lower_epochs_are_refused(places: list[Place]) -> None:
        for place in places:
            async with Dialler(place.relay) as dialler, asyncio.timeout(BACK_S):
                thief = await dialler.host()
                while (await thief.announce((key, 1))).refused[0].code != "fenced":
                    await asyncio.sleep(0.1)

    with NatsCluster(tmp_path, 3) as nats:
        places = [Place(nats), Place(nats)]
        try:
            bounded(scene(places, nats), STORM_S + 2 * BACK_S)
        finally:
            for place in places:
                place.relay.__exit__(None, None, None)


def test_a_relay_process_is_one_that_can_be_started_again(tmp_path: Path) -> None:
    """What the storm rests on: the same port, another process, the same cluster."""

    async def scene(place: Place) -> None:
        port, first = place.relay.port, place.relay.process.pid
        await place.kill(0.0)
        assert place.relay.port == port
        assert place.relay.process.pid != first

    with NatsCluster(tmp_path, 1) as nats:
        place = Place(nats)
        try:
            bounded(scene(place))
        finally:
            place.relay.__exit__(None, None, None)
