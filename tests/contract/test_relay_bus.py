"""The bus between relays: one contract, shown on every adapter (F5)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from contract.buses import BUSES, Buses, Listener
from contract.stores import PATIENCE_S, Clusters
from holdfast.adapters.nats.relay_bus import NatsBus
from holdfast.adapters.nats.server import NatsCluster
from holdfast.model.errors import CoordinationDown
from holdfast.model.limits import RELAY_FRAME_MAX_BYTES
from holdfast.ports.relay_bus import NAME_CHARS


@pytest.fixture(params=BUSES)
def buses(request: pytest.FixtureRequest, clusters: Clusters) -> Buses:
    return Buses(request.param, clusters)


async def test_a_packet_reaches_the_relay_it_is_for_and_no_other(buses: Buses) -> None:
    async with buses.listeners(3) as (one, other, third):
        one.bus.send(other.bus.name, b"for you")
        await other.until(lambda packets: packets == [b"for you"])
        third.bus.send(one.bus.name, b"back")
        await one.until(lambda packets: packets == [b"back"])
        assert third.packets == []


async def test_a_packet_to_all_reaches_all_but_its_sender(buses: Buses) -> None:
    async with buses.listeners(3) as (one, other, third):
        one.bus.send_all(b"to all")
        for listener in (other, third):
            await listener.until(lambda packets: packets == [b"to all"])
        other.bus.send_all(b"and mine")
        await one.until(lambda packets: packets == [b"and mine"])
        await third.until(lambda packets: len(packets) == 2)
        assert other.packets == [b"to all"]


async def test_names_are_of_one_form_and_no_two_are_the_same(buses: Buses) -> None:
    async with buses.listeners(3) as listeners:
        names = {listener.bus.name for listener in listeners}
        assert len(names) == 3
        assert all(len(bytes.fromhex(name)) * 2 == NAME_CHARS for name in names)


async def test_what_one_relay_sends_another_arrives_once_whole_and_in_order(buses: Buses) -> None:
    async with buses.listeners(3) as (one, other, third):
        largest = os.urandom(RELAY_FRAME_MAX_BYTES + 64)
        sent = [b"%d " % number + largest[: number * 70] for number in range(1000)] + [largest]
        async with asyncio.timeout(PATIENCE_S):
            for packet in sent:
                if not one.bus.ready(len(packet)):
                    await one.bus.drain()
                one.bus.send(other.bus.name, packet)
                third.bus.send(other.bus.name, b"")  # another's come in between
        heard = await other.until(
            lambda packets: len(packets) == 2 * len(sent) or packets[-1:] == [largest]
        )
        assert [packet for packet in heard if packet] == sent


async def test_a_sender_that_asks_first_does_not_pile_up_more_than_a_bound(
    clusters: Clusters,
) -> None:
    """In memory nothing waits."""

    async with Buses("nats-1", clusters).listeners(2) as (one, other):
        size, sent = 16 << 10, 0
        while one.bus.ready(size) and sent < 1000:
            one.bus.send(other.bus.name, bytes(size))
            sent += 1
        assert 1 < sent < 100, "the bus took everything at once"
        async with asyncio.timeout(PATIENCE_S):
            await one.bus.drain()
        assert one.bus.ready(size)
        await other.until(lambda packets: len(packets) == sent)


async def test_what_is_sent_to_nobody_harms_nobody(buses: Buses) -> None:
    async with buses.listeners(2) as (one, other):
        one.bus.send("0" * NAME_CHARS, b"is there anybody")
        one.bus.send(other.bus.name, b"you are")
        await other.until(lambda packets: packets == [b"you are"])


async def test_last_words_are_sent_before_a_bus_closes(buses: Buses) -> None:
    async with buses.listeners(1) as (stays,):
        goes = Listener(await buses.open())
        await goes.bus.listen(goes.heard)
        for _ in range(10):
            goes.bus.send(stays.bus.name, bytes(1000))
        goes.bus.send_all(b"farewell")
        await goes.bus.close()
        await stays.until(lambda packets: len(packets) == 11 and b"farewell" in packets)


async def test_two_clusters_on_one_nats_do_not_hear_each_other(clusters: Clusters) -> None:
    first, second = Buses("nats-1", clusters), Buses("nats-1", clusters)
    async with first.listeners(2) as (one, other), second.listeners(1) as (stranger,):
        one.bus.send_all(b"among us")
        one.bus.send(stranger.bus.name, b"among us")
        await other.until(lambda packets: packets == [b"among us"])
        assert stranger.packets == []


# -- faults of NATS ---------------------------------------------------------------------------


async def test_a_bus_whose_server_hangs_says_so_and_comes_back(tmp_path: Path) -> None:
    """Noticed within seconds, not the two minutes of the client's default."""

    with NatsCluster(tmp_path, 1) as nats:
        one, other = [Listener(await NatsBus.connect(nats.urls, "p")) for _ in range(2)]
        for each in (one, other):
            await each.bus.listen(each.heard)
        nats.nodes[0].pause()
        async with asyncio.timeout(8.0):
            while one.bus.up:
                await asyncio.sleep(0.02)
        assert not one.bus.ready(1)
        draining = asyncio.create_task(one.bus.drain())
        nats.nodes[0].resume()
        await asyncio.wait_for(draining, PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while b"again" not in other.packets:  # the other may come back later
                one.bus.send(other.bus.name, b"again")
                await asyncio.sleep(0.05)
        for each in (one, other):
            await each.bus.close()


async def test_no_nats_at_all_is_a_typed_error_without_the_password() -> None:
    with pytest.raises(CoordinationDown) as refused:
        await NatsBus.connect(["nats://me:secret@127.0.0.1:1"], "p", within_s=0.5)
    assert "127.0.0.1:1" in refused.value.message
    assert "secret" not in refused.value.message
