"""The relay as hosts and operators meet it: a real process on loopback, real WebSockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.wire import relay_messages as r
from process.relaying import (
    HostClient,
    RelayProcess,
    announced,
    at,
    bounded,
    device_of,
    fresh_session,
    proof,
    stop_reading,
    subscribe,
)


@pytest.fixture(scope="module")
def relay() -> Iterator[RelayProcess]:
    """Shared; each test has keys of its own."""
    with RelayProcess("--limit", "failed_proofs=1000", "--limit", "opens=100000") as process:
        yield process


# -- who a host is ----------------------------------------------------------------------------


async def test_a_host_that_signs_the_challenge_is_let_in(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        assert host.greeted.version == r.RELAY_VERSION
        operator = await dialler.operator()
        assert (await operator.open(host.key.public)).host == host.key.public


async def test_a_host_that_signs_with_another_key_is_refused(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = HostClient(await dialler.dial("/v1/host"))
        challenge = await host.hear(r.Challenge)
        claimed, own = SigningKey.generate(), SigningKey.generate()
        await host.say(proof(own, relay.name, challenge, claimed.public))
        assert (await host.hear(r.RelayFailed)).code == "bad_signature"
        assert await host.closed() == 1008
        refused = await (await dialler.operator()).refused(r.Open(1, claimed.public, None))
        assert refused.code == "host_down"


@pytest.mark.parametrize("key", [b"", b"short", b"\xff" * 32, bytes(33)])
async def test_a_key_that_is_none_proves_nothing(relay: RelayProcess, key: bytes) -> None:
    async with at(relay) as dialler:
        host = HostClient(await dialler.dial("/v1/host"))
        await host.hear(r.Challenge)
        await host.say(r.ProveHost(1, key, relay.name, bytes(64), bytes(32), bytes(64)))
        assert (await host.hear(r.RelayFailed)).code == "bad_signature"


async def test_a_proof_seen_before_is_worth_nothing_on_another_connection(
    relay: RelayProcess,
) -> None:
    async with at(relay) as dialler:
        key = SigningKey.generate()
        first = HostClient(await dialler.dial("/v1/host"))
        second = HostClient(await dialler.dial("/v1/host"))
        challenge = await first.hear(r.Challenge)
        seen = proof(key, relay.name, challenge)
        await first.say(seen)
        await first.hear(r.Greeted)
        assert (await second.hear(r.Challenge)).challenge != challenge.challenge
        await second.say(seen)
        assert (await second.hear(r.RelayFailed)).code == "bad_signature"


def test_a_proof_for_another_relay_is_refused_by_one_that_knows_its_name() -> None:
    """So that a relay a host dials cannot be that host at another relay."""

    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host = HostClient(await dialler.dial("/v1/host"))
            await host.prove(SigningKey.generate(), "evil.example:443", greeted=False)
            assert (await host.hear(r.RelayFailed)).code == "bad_signature"
            host = HostClient(await dialler.dial("/v1/host"))
            await host.prove(SigningKey.generate(), "good.example:443")

    with RelayProcess("--name", "good.example:443") as relay:
        bounded(scene(relay))


async def test_the_newest_connection_with_a_host_key_is_the_host(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        key = SigningKey.generate()
        old = await dialler.host(key)
        operator = await dialler.operator()
        stream = (await operator.open(key.public)).stream
        new = await dialler.host(key)
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(stream, r.Why.HOST_GONE)
        assert await old.closed() == 1000
        assert (await operator.open(key.public)).stream == (await new.hear(r.Incoming)).stream


@pytest.mark.parametrize(
    ("static", "binding"), [(b"", b""), (bytes(31), bytes(64)), (bytes(32), bytes(65))]
)
async def test_a_host_without_a_device_is_refused(
    relay: RelayProcess, static: bytes, binding: bytes
) -> None:
    async with at(relay) as dialler:
        host = HostClient(await dialler.dial("/v1/host"))
        good = proof(SigningKey.generate(), relay.name, await host.hear(r.Challenge))
        await host.say(good.replace(static=static, binding=binding))
        assert (await host.hear(r.RelayFailed)).code == "protocol_violation"


@pytest.mark.requirement("R4")
async def test_who_opens_a_stream_is_handed_what_the_host_said_of_itself(
    relay: RelayProcess,
) -> None:
    """Word for word: the operator checks it, and so need not believe the relay."""

    async with at(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        key, session = fresh_session()
        await host.announce((key, 3))
        said = announced(host.key, key, 3)
        device = device_of(host.key)
        by_session = await operator.open(session)
        assert by_session.replace(id=0, stream=0) == r.StreamOpened(
            0, 0, host.key.public, 3, *device, key.public, said.signature
        )
        by_key = await operator.open(host.key.public)
        assert by_key.replace(id=0, stream=0) == r.StreamOpened(0, 0, host.key.public, 0, *device)


# -- streams ----------------------------------------------------------------------------------


async def test_bytes_go_both_ways_unchanged_and_in_order(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        stream = (await operator.open(host.key.public)).stream
        assert await host.hear(r.Incoming) == r.Incoming(stream, None)
        pieces = [bytes([n]) * n for n in range(200)]
        await operator.say(*(r.StreamData(stream, piece) for piece in pieces))
        assert [(await host.hear(r.StreamData)).data for _ in pieces] == pieces
        await host.say(*(r.StreamData(stream, piece) for piece in pieces))
        assert [(await operator.hear(r.StreamData)).data for _ in pieces] == pieces


async def test_several_operators_each_have_their_own_stream(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        operators = [await dialler.operator() for _ in range(5)]
        streams = [(await one.open(host.key.public)).stream for one in operators]
        assert len(set(streams)) == 5
        for number, (one, stream) in enumerate(zip(operators, streams, strict=True)):
            await one.say(r.StreamData(stream, b"from %d" % number))
        heard = {}
        for _ in range(10):
            message = await host.next()
            if isinstance(message, r.StreamData):
                heard[message.stream] = message.data
        assert heard == {stream: b"from %d" % n for n, stream in enumerate(streams)}
        for number, stream in enumerate(streams):
            await host.say(r.StreamData(stream, b"to %d" % number))
        for number, one in enumerate(operators):
            assert (await one.hear(r.StreamData)).data == b"to %d" % number


async def test_both_ends_hear_of_a_close_and_why(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        one = (await operator.open(host.key.public)).stream
        two = (await operator.open(host.key.public)).stream
        three = (await operator.open(host.key.public)).stream
        for _ in range(3):
            await host.hear(r.Incoming)
        await operator.say(r.Close(one))
        assert await host.hear(r.StreamClosed) == r.StreamClosed(one, r.Why.CLOSED)
        await host.say(r.Close(two))
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(two, r.Why.CLOSED)
        await operator.ws.close()
        assert await host.hear(r.StreamClosed) == r.StreamClosed(three, r.Why.OPERATOR_GONE)


async def test_a_guessed_stream_reaches_nobody(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, operator, guesser = (
            await dialler.host(),
            await dialler.operator(),
            await dialler.operator(),
        )
        stream = (await operator.open(host.key.public)).stream
        await host.hear(r.Incoming)
        for number in (stream, stream + 1, stream - 1, 0, -1, 2**63):
            await guesser.say(r.StreamData(number, b"not mine"))
            assert await guesser.hear(r.StreamClosed) == r.StreamClosed(number, r.Why.UNKNOWN)
        await guesser.say(r.Close(stream))
        assert (await guesser.hear(r.StreamClosed)).why is r.Why.UNKNOWN
        # Nothing of it came through, and the stream is as it was.
        await operator.say(r.StreamData(stream, b"mine"))
        assert await host.hear(r.StreamData) == r.StreamData(stream, b"mine")


async def test_another_host_cannot_speak_in_a_stream_either(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, other = await dialler.host(), await dialler.host()
        operator = await dialler.operator()
        stream = (await operator.open(host.key.public)).stream
        await other.say(r.StreamData(stream, b"forged"))
        assert await other.hear(r.StreamClosed) == r.StreamClosed(stream, r.Why.UNKNOWN)
        await host.say(r.StreamData(stream, b"true"))
        assert (await operator.hear(r.StreamData)).data == b"true"


async def test_a_sender_gets_its_credit_back_and_is_cut_off_when_it_takes_more(
    relay: RelayProcess,
) -> None:
    async with at(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        window = host.greeted.stream_window_bytes
        stream = (await operator.open(host.key.public)).stream
        piece = bytes(64 << 10)
        returned = 0
        for _ in range(4 * window // len(piece)):
            await host.say(r.StreamData(stream, piece))
            await operator.hear(r.StreamData)
            returned += len(piece)
        credits = 0
        await host.hear(r.Incoming)
        while credits < returned - window // 4:
            credits += (await host.hear(r.Credit)).size
        assert credits <= returned
        # An operator that does not read, and a host that sends on all the same.
        stalled = await dialler.operator()
        stream = (await stalled.open(host.key.public)).stream
        stop_reading(stalled)
        await host.hear_among(r.Incoming)
        for _ in range(200):
            await host.say(r.StreamData(stream, piece))
        assert await host.hear_among(r.StreamClosed) == r.StreamClosed(stream, r.Why.OVERRUN)
        # Others are not concerned.
        assert (await operator.open(host.key.public)).stream


# -- sessions ---------------------------------------------------------------------------------


async def test_a_session_is_reached_by_its_id(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        key, session = fresh_session()
        assert (await operator.refused(r.Open(5, b"", session))).code == "no_such_session"
        assert (await host.announce((key, 3))).refused == ()
        opened = await operator.open(session)
        assert (opened.host, opened.epoch) == (host.key.public, 3)
        assert await host.hear(r.Incoming) == r.Incoming(opened.stream, session)
        await host.say(r.WithdrawSession(session))
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(opened.stream, r.Why.WITHDRAWN)
        assert (await operator.refused(r.Open(6, b"", session))).code == "no_such_session"


async def test_only_the_highest_epoch_is_routed(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        old, new, operator = (
            await dialler.host(),
            await dialler.host(),
            await dialler.operator(),
        )
        key, session = fresh_session()
        await old.announce((key, 7))
        first = await operator.open(session)
        await old.hear(r.Incoming)
        await new.announce((key, 8))
        # The old incarnation and its operators are told; its streams are no more.
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(first.stream, r.Why.MOVED)
        told = [await old.next(), await old.next()]
        assert r.Superseded(session, 8) in told
        assert r.StreamClosed(first.stream, r.Why.MOVED) in told
        assert (await operator.open(session)).host == new.key.public
        # A lower epoch stays out, also when the later incarnation has left.
        refusal = r.AnnounceRefusal(session, "fenced", 8)
        assert (await old.announce((key, 7))).refused == (refusal,)
        await new.ws.close()
        await operator.hear(r.StreamClosed)
        assert (await old.announce((key, 7))).refused == (refusal,)
        assert (await operator.refused(r.Open(9, b"", session))).code == "no_such_session"
        assert (await old.announce((key, 9))).refused == ()
        assert (await operator.open(session)).host == old.key.public


async def test_an_epoch_belongs_to_one_host(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        first, second = await dialler.host(), await dialler.host()
        key, session = fresh_session()
        await first.announce((key, 4))
        refused = (await second.announce((key, 4))).refused
        assert refused == (r.AnnounceRefusal(session, "fenced", 4),)
        # The one it belongs to comes back on a new connection.
        again = await dialler.host(first.key)
        assert (await again.announce((key, 4))).refused == ()


async def test_a_session_is_announced_only_by_who_has_its_key(relay: RelayProcess) -> None:
    """An id alone is worth nothing: not to take a session's place, nor to raise its epoch."""

    async with at(relay) as dialler:
        host, thief, operator = (
            await dialler.host(),
            await dialler.host(),
            await dialler.operator(),
        )
        key, session = fresh_session()
        await host.announce((key, 1))
        own = SigningKey.generate()
        text = r.session_text(session, thief.key.public, 1 << 62)
        forged = r.Announced(key.public, 1 << 62, own.sign(text))
        copied = announced(host.key, key, 1)  # what the true host announced, word for word
        await thief.say(r.Announce(1, (forged, copied)))
        refused = (await thief.hear(r.Registered)).refused
        assert [one.code for one in refused] == ["bad_signature"] * 2
        assert (await operator.open(session)).host == host.key.public
        assert (await host.announce((key, 2))).refused == ()


# -- one to many ------------------------------------------------------------------------------


async def test_what_a_host_sends_once_comes_to_every_subscriber(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        audience = await dialler.audience(host, session, 5)
        frames = [r.Broadcast(session, seq, b"frame %d" % seq) for seq in range(50)]
        await host.say(*frames)
        for one in audience:
            assert [await one.hear(r.Broadcast) for _ in frames] == frames


async def test_nobody_subscribes_whom_the_host_has_not_admitted(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host, other = await dialler.host(), await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator, stranger = await dialler.operator(), await dialler.operator()
        stream = (await operator.open(session)).stream
        refused = await operator.refused(r.Subscribe(1, session))
        _, nowhere = fresh_session()
        # A session that exists and one that does not are the same to a stranger.
        assert refused == (await stranger.refused(r.Subscribe(1, nowhere)))
        assert refused.code == "not_permitted"
        # Another host cannot admit to it, not even at a stream of its own.
        theirs = (await operator.open(other.key.public)).stream
        await other.hear(r.Incoming)
        await other.say(
            r.Admit(stream, session), r.Admit(theirs, session), r.WithdrawSession(session)
        )
        await other.announce((fresh_session()[0], 1))
        assert (await operator.refused(r.Subscribe(2, session))).code == "not_permitted"
        await host.say(r.Admit(stream, session))
        assert (await subscribe(operator, session)).epoch == 1
        # Nor can it take an admission away.
        await operator.say(r.Unsubscribe(session))
        await other.say(r.Admit(theirs, session))
        await other.announce()
        await operator.say(r.Subscribe(3, session))
        assert (await operator.hear(r.Subscribed)).epoch == 1
        assert (await stranger.refused(r.Subscribe(1, session))).code == "not_permitted"


async def test_a_subscription_ends_with_the_stream_it_was_admitted_at(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator = await dialler.operator()
        stream = (await operator.open(session)).stream
        await host.say(r.Admit(stream, session))
        await subscribe(operator, session)
        assert (await host.hear_among(r.SubscribersWanted)).wanted is True
        await host.say(r.Close(stream))
        assert (await host.hear(r.SubscribersWanted)).wanted is False
        assert await operator.hear(r.SessionGone) == r.SessionGone(session, r.Why.CLOSED)
        await host.say(r.Broadcast(session, 1, b"not for it"))
        assert await operator.hear(r.StreamClosed) == r.StreamClosed(stream, r.Why.CLOSED)
        assert (await operator.refused(r.Subscribe(2, session))).code == "not_permitted"


async def test_subscribers_hear_when_the_session_moves_or_its_host_leaves(
    relay: RelayProcess,
) -> None:
    async with at(relay) as dialler:
        host, other = await dialler.host(), await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator = await dialler.subscriber(host, session)
        await host.say(r.Broadcast(session, 1, b"last words"))
        await host.announce()  # answered after the broadcast: it has been passed on
        await other.announce((key, 2))
        assert (await operator.hear(r.Broadcast)).data == b"last words"
        assert await operator.hear(r.SessionGone) == r.SessionGone(session, r.Why.MOVED)
        await operator.hear(r.StreamClosed)
        # The old incarnation speaks to nobody any more.
        second = await dialler.subscriber(other, session)
        await host.say(r.Broadcast(session, 2, b"from the past"))
        await host.announce()
        await other.say(r.Broadcast(session, 1, b"now"))
        assert (await second.hear(r.Broadcast)).data == b"now"
        await other.ws.close()
        assert await second.hear(r.SessionGone) == r.SessionGone(session, r.Why.HOST_GONE)


async def test_the_numbers_of_broadcasts_rise(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        await host.say(r.Broadcast(session, 5, b""), r.Broadcast(session, 5, b""))
        assert (await host.hear(r.RelayFailed)).code == "protocol_violation"


async def test_a_lone_slow_subscriber_paces_the_host_instead_of_missing_anything(
    relay: RelayProcess,
) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator = await dialler.subscriber(host, session)
        piece, count = bytes(32 << 10), 400
        allowed = host.greeted.broadcast_window_bytes // len(piece)
        free = asyncio.Semaphore(allowed)

        async def hear_taken() -> None:
            last = -1
            while last < count - 1:
                taken = await host.hear_among(r.Taken)
                for _ in range(last, taken.seq):
                    free.release()
                last = taken.seq

        async def send() -> None:
            for seq in range(count):
                await free.acquire()
                await host.say(r.Broadcast(session, seq, piece))

        hearing, sending = asyncio.create_task(hear_taken()), asyncio.create_task(send())
        for seq in range(count):
            assert (await operator.hear(r.Broadcast)).seq == seq
            if seq % 50 == 0:
                await asyncio.sleep(0.02)  # slow: not waiting for anything
        await sending
        hearing.cancel()
