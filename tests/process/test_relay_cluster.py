"""Several relays as one (R1, R4, F1, F5): a NATS cluster of three, two relay processes, a host at
one and operators at the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from holdfast.adapters.nats.server import NatsCluster
from holdfast.adapters.signing import SigningKey
from holdfast.wire import relay_messages as r
from process.relay_pairs import Pair, both, far_subscriber, pair_on
from process.relaying import announced, device_of, fresh_session, stop_reading


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    with NatsCluster(tmp_path_factory.mktemp("nats"), 3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def relays(nats: NatsCluster) -> Iterator[Pair]:
    """Shared by tests that break nothing; each has keys of its own."""
    with pair_on(nats, "shared") as pair:
        yield pair


# -- streams ----------------------------------------------------------------------------------


@pytest.mark.requirement("R1", "R4")
async def test_a_host_at_one_relay_is_reached_from_another_by_session_and_by_key(
    relays: Pair,
) -> None:
    """And what it said of itself comes through word for word: operators check it (R4)."""

    async with both(relays) as (here, there):
        host, operator = await here.host(), await there.operator()
        key, session = fresh_session()
        assert (await operator.refused(r.Open(7, b"", session))).code == "no_such_session"
        assert (await operator.refused(r.Open(8, host.key.public[::-1]))).code == "host_down"
        assert (await host.announce((key, 3))).refused == ()
        opened = await operator.open(session)
        said = announced(host.key, key, 3)
        assert opened.replace(id=0, stream=0) == r.StreamOpened(
            0, 0, host.key.public, 3, *device_of(host.key), key.public, said.signature
        )
        assert (await host.hear(r.Incoming)).session == session
        by_key = await operator.open(host.key.public)
        assert (by_key.host, by_key.epoch, by_key.vouched) == (host.key.public, 0, b"")
        assert (await host.hear(r.Incoming)).session is None
        await host.say(r.WithdrawSession(session))
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(opened.stream, r.Why.WITHDRAWN)


async def test_bytes_cross_both_ways_in_order_with_their_own_numbers_at_each_relay(
    relays: Pair,
) -> None:
    async with both(relays) as (here, there):
        host, operator = await here.host(), await there.operator()
        local = await here.operator()
        for _ in range(3):  # so that the two relays' numbers differ
            await local.open(host.key.public)
            await host.hear(r.Incoming)
        mine = (await operator.open(host.key.public)).stream
        theirs = (await host.hear(r.Incoming)).stream
        pieces = [bytes([n]) * n * 50 for n in range(100)]  # less than a window
        await operator.say(*(r.StreamData(mine, piece) for piece in pieces))
        await host.say(*(r.StreamData(theirs, piece) for piece in pieces))
        for client, number in ((host, theirs), (operator, mine)):
            heard = [await client.hear_among(r.StreamData) for _ in range(100)]
            assert [one.data for one in heard] == pieces
            assert {one.stream for one in heard} == {number}
        await operator.say(r.Close(mine))
        assert await host.hear_among(r.StreamClosed) == r.StreamClosed(theirs, r.Why.CLOSED)
        # Closed, it is unknown at both relays, and the host cannot speak in it.
        await host.say(r.StreamData(theirs, b"late"))
        assert await host.hear(r.StreamClosed) == r.StreamClosed(theirs, r.Why.UNKNOWN)
        await operator.say(r.Open(9, host.key.public))
        assert (await operator.hear_among(r.StreamOpened)).stream != mine
        number = (await host.hear(r.Incoming)).stream
        await operator.ws.close()
        assert await host.hear(r.StreamClosed) == r.StreamClosed(number, r.Why.OPERATOR_GONE)


async def test_credit_goes_from_end_to_end_through_both_relays(
    relays: Pair,
) -> None:
    """A far operator that does not read stops the host at one window; one that reads does not."""

    async with both(relays) as (here, there):
        host, operator = await here.host(), await there.operator()
        window, piece = host.greeted.stream_window_bytes, bytes(32 << 10)
        await operator.open(host.key.public)
        number = (await host.hear(r.Incoming)).stream
        left, count = window, 100

        async def read() -> None:
            for _ in range(count):
                assert len((await operator.hear(r.StreamData)).data) == len(piece)

        reading = asyncio.create_task(read())
        for _ in range(count):
            while left < len(piece):
                left += (await host.hear(r.Credit)).size
            await host.say(r.StreamData(number, piece))
            left -= len(piece)
        await reading
        # One that does not read: what its sockets and its relay take comes back as credit, then
        # none does; and sending on ends this stream, not the others.
        stalled = await there.operator()
        await stalled.open(host.key.public)
        second = (await host.hear_among(r.Incoming)).stream
        stop_reading(stalled)
        for _ in range(300):
            await host.say(r.StreamData(second, piece))
        assert await host.hear_among(r.StreamClosed) == r.StreamClosed(second, r.Why.OVERRUN)
        await host.say(r.StreamData(number, b"still"))
        assert (await operator.hear(r.StreamData)).data == b"still"


async def test_a_host_that_keeps_to_its_credit_waits_for_a_far_operator_and_loses_nothing(
    relays: Pair,
) -> None:
    """The way between the relays gives no credit of its own: what is on it was not received."""

    async with both(relays) as (here, there):
        host, operator = await here.host(), await there.operator()
        piece = bytes(32 << 10)
        opened = await operator.open(host.key.public)
        number = (await host.hear(r.Incoming)).stream
        transport = stop_reading(operator)
        left, sent = host.greeted.stream_window_bytes, 0
        with contextlib.suppress(TimeoutError):
            while sent < 1000:
                while left < len(piece):
                    async with asyncio.timeout(0.5):
                        left += (await host.hear(r.Credit)).size
                await host.say(r.StreamData(number, sent.to_bytes(4) + piece[4:]))
                left, sent = left - len(piece), sent + 1
        assert sent < 1000, "nobody reads, and all could be sent"
        transport.resume_reading()
        for expected in range(sent):
            data = await operator.hear(r.StreamData)
            assert (data.stream, int.from_bytes(data.data[:4])) == (opened.stream, expected)
        assert (await host.hear(r.Credit)).size > 0


# -- one to many ------------------------------------------------------------------------------


async def test_a_broadcast_crosses_once_and_reaches_every_subscriber_there(
    relays: Pair,
) -> None:
    async with both(relays) as (here, there):
        host = await here.host()
        key, session = fresh_session()
        await host.announce((key, 4))
        stranger = await there.operator()
        await stranger.open(session)
        await host.hear(r.Incoming)
        assert (await stranger.refused(r.Subscribe(5, session))).code == "not_permitted"
        near = await here.subscriber(host, session)
        far = [(await far_subscriber(host, there, session))[0] for _ in range(5)]
        received = await relays[1].metric("delivered_frames_total")
        before = await relays[0].metric("delivered_frames_total")
        for seq in range(50):
            await host.say(r.Broadcast(session, seq, b"%d" % seq))
        for one in (near, *far):
            heard = [await one.hear(r.Broadcast) for _ in range(50)]
            assert [(b.seq, b.data) for b in heard] == [(n, b"%d" % n) for n in range(50)]
        assert await relays[1].metric("delivered_frames_total") - received == 5 * 50
        # To the operator here and to one relay: not to five operators.
        assert await relays[0].metric("delivered_frames_total") - before == 2 * 50
        # The last one there leaves, and the last one here: then nobody wants it.
        for one in far:
            await one.say(r.Unsubscribe(session))
        await near.say(r.Unsubscribe(session))
        while (await host.hear_among(r.SubscribersWanted)).wanted:
            pass


async def test_a_lone_subscriber_at_another_relay_that_stops_reading_stops_the_host(
    relays: Pair,
) -> None:
    """And misses nothing: `taken` comes from its relay, not from the way there."""

    async with both(relays) as (here, there):
        host = await here.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator, _, _ = await far_subscriber(host, there, session)
        piece = bytes(32 << 10)
        allowed = host.greeted.broadcast_window_bytes // len(piece)
        transport = stop_reading(operator)
        taken, sent = -1, 0
        with contextlib.suppress(TimeoutError):
            while sent < 1000:
                while sent - taken > allowed:
                    async with asyncio.timeout(0.5):
                        taken = (await host.hear_among(r.Taken)).seq
                await host.say(r.Broadcast(session, sent, piece))
                sent += 1
        assert sent < 1000, "nobody reads, and all could be sent"
        transport.resume_reading()
        for seq in range(sent):
            assert (await operator.hear(r.Broadcast)).seq == seq
        assert (await host.hear_among(r.Taken)).seq > taken


@pytest.mark.requirement("F1")
async def test_closing_the_stream_ends_a_far_subscription_and_moving_the_session_tells_why(
    relays: Pair,
) -> None:
    async with both(relays) as (here, there):
        host, other = await here.host(), await there.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator, opened, number = await far_subscriber(host, there, session)
        assert (await host.hear_among(r.SubscribersWanted)).wanted
        await host.say(r.Close(number))
        assert await operator.hear(r.SessionGone) == r.SessionGone(session, r.Why.CLOSED)
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(opened.stream, r.Why.CLOSED)
        assert (await host.hear_among(r.SubscribersWanted)).wanted is False
        assert (await operator.refused(r.Subscribe(2, session))).code == "not_permitted"
        operator, opened, number = await far_subscriber(host, there, session)
        await host.say(r.Broadcast(session, 1, b"last words"))
        assert (await operator.hear(r.Broadcast)).data == b"last words"
        await other.announce((key, 2))
        told = [await operator.next(), await operator.next()]
        assert r.SessionGone(session, r.Why.MOVED) in told
        assert r.StreamClosed(opened.stream, r.Why.MOVED) in told
        assert await host.hear_among(r.Superseded) == r.Superseded(session, 2)
        assert (await operator.open(session)).host == other.key.public


# -- epochs -----------------------------------------------------------------------------------


@pytest.mark.requirement("F1")
async def test_lower_epochs_are_refused_at_every_relay(relays: Pair) -> None:
    """F1: whichever relay an old incarnation, or another host of the same epoch, comes back to."""

    async with both(relays) as (here, there):
        key, session = fresh_session()
        new, old = await here.host(), SigningKey.generate()
        assert (await new.announce((key, 8))).refused == ()
        for dialler in (here, there):
            back = await dialler.host(old)
            for epoch in (7, 8):
                refused = (await back.announce((key, epoch))).refused
                assert refused == (r.AnnounceRefusal(session, "fenced", 8),)
        # The one it belongs to may be at both; and when it leaves, the floor stays.
        twice = await there.host(new.key)
        assert (await twice.announce((key, 8))).refused == ()
        await new.ws.close()
        await twice.ws.close()
        assert (await back.announce((key, 7))).refused[0].epoch == 8
        operator = await here.operator()
        assert (await operator.refused(r.Open(1, b"", session))).code == "no_such_session"


@pytest.mark.requirement("F1")
async def test_of_two_hosts_that_announce_one_epoch_at_two_relays_at_once_one_is_refused(
    relays: Pair,
) -> None:
    async with both(relays) as (here, there):
        one, other = await here.host(), await there.host()
        for _ in range(10):
            key, session = fresh_session()
            answers = await asyncio.gather(one.announce((key, 5)), other.announce((key, 5)))
            assert sorted(len(answer.refused) for answer in answers) == [0, 1]
            won = one if not answers[0].refused else other
            for dialler in (here, there):
                operator = await dialler.operator()
                assert (await operator.open(session)).host == won.key.public
