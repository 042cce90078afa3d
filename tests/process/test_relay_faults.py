"""What a relay must bear: those who do not read, do not speak, speak nonsense, or leave; and its
own end. A real process on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgpack
import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.model.errors import ProtocolViolation
from holdfast.model.limits import (
    RELAY_DRAIN_S,
    RELAY_FRAME_MAX_BYTES,
    RELAY_OPERATOR_QUEUE_BYTES,
    RELAY_SOCKET_BYTES,
)
from holdfast.relay.certificate import fingerprint_of, self_signed
from holdfast.wire import relay_messages as r
from process.relaying import (
    PATIENCE_S,
    Client,
    Dialler,
    HostClient,
    OperatorClient,
    RelayProcess,
    at,
    bounded,
    fresh_session,
)


@pytest.fixture(scope="module")
def relay() -> Iterator[RelayProcess]:
    with RelayProcess("--limit", "failed_proofs=1000", "--limit", "opens=100000") as process:
        yield process


# -- slow readers -----------------------------------------------------------------------------


def test_one_stalled_operator_among_100_holds_up_nobody_and_costs_bounded_memory() -> None:
    """600 frames of 16 KB, 10 MB to each, while one of a hundred does not read."""
    count, piece = 600, os.urandom(16 << 10)

    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host = await dialler.host()
            key, session = fresh_session()
            await host.announce((key, 1))
            stalled, *others = await dialler.audience(host, session, 100)
            _pause(stalled)
            before = relay.resident_bytes()
            window = asyncio.Semaphore(host.greeted.broadcast_window_bytes // len(piece))
            most = before

            async def pace() -> None:
                last = -1
                while True:
                    taken = await host.hear_among(r.Taken)
                    for _ in range(last, taken.seq):
                        window.release()
                    last = taken.seq

            async def read(one: OperatorClient) -> int:
                """How many frames came; gaps are told for the rest."""
                got = 0
                while True:
                    message = await one.next()
                    if isinstance(message, r.BroadcastGap):
                        last = message.last
                    else:
                        assert isinstance(message, r.Broadcast), message
                        got, last = got + 1, message.seq
                    if last == count - 1:
                        return got

            pacing = asyncio.create_task(pace())
            readers = [asyncio.create_task(read(one)) for one in others]
            for seq in range(count):
                await window.acquire()
                await host.say(r.Broadcast(session, seq, piece))
                if seq % 100 == 0:
                    most = max(most, relay.resident_bytes())
            got = await asyncio.gather(*readers)
            pacing.cancel()
            most = max(most, relay.resident_bytes())
            # The one that sets the pace misses nothing. Others share a core with it here, and may;
            # held up by the stalled one, they would get what is in the sockets and no more.
            assert max(got) == count
            assert sum(got) > 99 * count * 0.5
            held = await relay.metric("held_bytes")
            assert held <= RELAY_OPERATOR_QUEUE_BYTES
            # 100 sockets at their mark, and a queue for each that fell behind.
            assert most - before < 100 * (RELAY_SOCKET_BYTES + RELAY_OPERATOR_QUEUE_BYTES)
            print(f"relay {before >> 20} -> {most >> 20} MiB at most; got {min(got)}..{max(got)}")
            # It reads on: some frames that were on their way, the gap, and then what is new.
            _resume(stalled)
            first = await stalled.hear_among(r.BroadcastGap)
            assert 0 < first.first < first.last == count - 1
            await host.say(r.Broadcast(session, count, b"new"))
            assert (await stalled.hear(r.Broadcast)).data == b"new"

    with RelayProcess("--limit", "heartbeat_s=100") as relay:
        bounded(scene(relay), 100)


def _pause(client: Client) -> None:
    client.ws._response.connection.transport.pause_reading()  # type: ignore[union-attr]


def _resume(client: Client) -> None:
    client.ws._response.connection.transport.resume_reading()  # type: ignore[union-attr]


async def test_a_gap_names_exactly_what_was_left_out(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        key, session = fresh_session()
        await host.announce((key, 1))
        operator = await dialler.subscriber(host, session)
        _pause(operator)
        count = 1000
        for seq in range(count):  # far more than fits: a host that ignores `taken`
            await host.say(r.Broadcast(session, seq, bytes(16 << 10)))
        await host.announce()
        _resume(operator)
        covered: list[int] = []
        while not covered or covered[-1] < count - 1:
            message = await operator.next()
            if isinstance(message, r.BroadcastGap):
                covered += range(message.first, message.last + 1)
            else:
                assert isinstance(message, r.Broadcast)
                covered.append(message.seq)
        assert covered == list(range(count))


def test_a_flood_in_one_session_costs_no_frame_of_another() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, quiet = await dialler.host(), await dialler.host()
            (key, flood), (other, calm) = fresh_session(), fresh_session()
            await host.announce((key, 1))
            await quiet.announce((other, 1))
            operator = await dialler.subscriber(host, flood)
            stream = (await operator.open(calm)).stream
            await quiet.say(r.Admit(stream, calm))
            await quiet.announce()
            await operator.say(r.Subscribe(5, calm))
            await operator.hear(r.Subscribed)
            _pause(operator)
            # Fill its queue with the one, nearly; then comes the other.
            seq = 0
            while await relay.metric("held_bytes") < RELAY_OPERATOR_QUEUE_BYTES - (20 << 10):
                await host.say(r.Broadcast(flood, seq, bytes(16 << 10)))
                await host.announce()
                seq += 1
            await quiet.say(*(r.Broadcast(calm, n, bytes(10 << 10)) for n in range(10)))
            await quiet.announce()
            _resume(operator)
            seen: list[int] = []
            gaps: list[r.BroadcastGap] = []
            while len(seen) < 10 or not gaps:
                message = await operator.next()
                if isinstance(message, r.BroadcastGap):
                    gaps.append(message)
                if isinstance(message, r.Broadcast) and message.session == calm:
                    seen.append(message.seq)
            assert seen == list(range(10))
            assert [(gap.session, gap.last) for gap in gaps] == [(flood, seq - 1)]

    with RelayProcess() as relay:
        bounded(scene(relay))


def test_who_asks_and_does_not_read_the_answers_is_not_read_and_then_let_go_of() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            operator = await dialler.operator()
            _pause(operator)
            before = relay.resident_bytes()

            async def flood() -> None:
                while True:
                    await operator.say(r.Open(1, bytes(32), None))  # each is answered

            flooding = asyncio.create_task(flood())
            # It does not answer pings either: it is let go of.
            await relay.metric_is("operators", 0)
            await relay.metric_is("held_bytes", 0)
            assert relay.resident_bytes() - before < 32 << 20
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)

    with RelayProcess("--limit", "heartbeat_s=2") as relay:
        bounded(scene(relay))


# -- bad input --------------------------------------------------------------------------------


def _nonsense() -> list[bytes]:
    return [
        b"",
        b"\x00",
        b"\xc1",
        b"GET / HTTP/1.1\r\n\r\n",
        msgpack.packb([1, 2, 3]),
        msgpack.packb({"t": "no such thing"}),
        msgpack.packb({"t": "data"}),
        msgpack.packb({"t": "data", "stream": "1", "data": b""}),
        msgpack.packb({"t": "open", "id": 1, "session": "not an id"}),
        msgpack.packb({"t": "announce", "id": 1, "sessions": [{"key": b"", "epoch": -1}]}),
        msgpack.packb({"t": "greeted", "version": 1}),
        b"\x91" * 100_000,  # nested deeper than anybody needs
        b"\xdf\xff\xff\xff\xff",  # a map of four billion
        os.urandom(1000),
    ]


@pytest.mark.parametrize("number", range(len(_nonsense())))
@pytest.mark.parametrize("greeted", [False, True])
@pytest.mark.parametrize("end", ["host", "operator"])
async def test_nonsense_ends_its_own_connection_with_a_reason(
    relay: RelayProcess, end: str, greeted: bool, number: int
) -> None:
    async with at(relay) as dialler:
        client: Client
        if greeted:
            client = await (dialler.host() if end == "host" else dialler.operator())
        else:
            client = Client(await dialler.dial(f"/v1/{end}"))
            if end == "host":
                await client.hear(r.Challenge)
        await client.ws.send_bytes(_nonsense()[number])
        assert (await client.hear(r.RelayFailed)).code == "protocol_violation"
        assert await client.closed() == 1002
        assert (await relay.get("/healthz"))[0] == 200


async def test_text_is_not_the_protocol(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        operator = await dialler.operator()
        await operator.ws.send_str("hello")
        assert (await operator.hear(r.RelayFailed)).code == "protocol_violation"


async def test_a_message_over_the_limit_ends_the_connection(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        operator = await dialler.operator()
        await operator.ws.send_bytes(bytes(RELAY_FRAME_MAX_BYTES + 1))
        assert await operator.closed() == 1009


def test_a_message_that_says_it_will_be_huge_is_not_waited_for(relay: RelayProcess) -> None:
    """The header alone, of a gigabyte: nothing is kept for it."""
    with socket.create_connection(("127.0.0.1", relay.port), PATIENCE_S) as raw:
        _upgrade(raw, "/v1/operator")
        raw.sendall(struct.pack(">BBQ", 0x82, 0xFF, 1 << 30) + bytes(4) + bytes(1000))
        raw.settimeout(PATIENCE_S)
        assert raw.recv(2)[0] == 0x88  # close


def _upgrade(raw: socket.socket, path: str) -> None:
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert b" 101 " in head


async def test_another_version_is_told_so(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        operator = OperatorClient(await dialler.dial("/v1/operator"))
        await operator.say(r.Greet((2, 99)))
        assert (await operator.hear(r.RelayFailed)).code == "version_mismatch"
        host = HostClient(await dialler.dial("/v1/host"))
        await host.hear(r.Challenge)
        await host.say(r.ProveHost(2, bytes(32), "", bytes(64), bytes(32), bytes(64)))
        assert (await host.hear(r.RelayFailed)).code == "version_mismatch"
        assert (await relay.get("/v2/host"))[0] == 404


def test_one_that_leaves_before_it_is_let_in_is_no_accident() -> None:
    """As when a relay was paused: it finds the request and the end of the connection at once."""

    async def scene(relay: RelayProcess) -> None:
        relay.signal(signal.SIGSTOP)
        for path in ("host", "operator"):
            with socket.create_connection(("127.0.0.1", relay.port)) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.sendall(
                    f"GET /v1/{path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    f"Sec-WebSocket-Key: {'A' * 22}==\r\n\r\n".encode()
                )
        relay.signal(signal.SIGCONT)
        await relay.metric_is("sockets", 0)

    with RelayProcess() as relay:  # whose end finds any complaint it wrote
        bounded(scene(relay))


def test_a_fuzzed_decoder_refuses_or_decodes_and_nothing_else() -> None:
    """Messages cut, altered, joined: two seconds of them, from a fixed seed."""
    dice = random.Random(20)
    _, session = fresh_session()
    whole = [
        r.encode(message)
        for message in (
            r.ProveHost(1, bytes(32), "relay:1", bytes(64), bytes(32), bytes(64)),
            r.Greet((1, 2)),
            r.Announce(1, (r.Announced(bytes(32), 5, bytes(64)),)),
            r.Open(1, b"", session),
            r.StreamData(9, b"data" * 10),
            r.Broadcast(session, 3, b"data"),
            r.StreamClosed(1, r.Why.MOVED),
            r.RelayFailed(1, "code", "text", "", 1.5),
        )
    ]
    decoded = refused = 0
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        body = bytearray(dice.choice(whole))
        for _ in range(dice.randrange(1, 6)):
            place = dice.randrange(len(body)) if body else 0
            match dice.randrange(4):
                case 0:
                    body[place : place + 1] = bytes([dice.randrange(256)])
                case 1:
                    del body[place:]
                case 2:
                    body[place:place] = dice.randbytes(dice.randrange(1, 9))
                case _:
                    body += dice.choice(whole)
        try:
            message = r.decode(bytes(body))
        except ProtocolViolation:
            refused += 1
        else:
            decoded += 1
            assert r.decode(r.encode(message)) == message
    assert decoded > 100 and refused > 100


# -- slow and many ----------------------------------------------------------------------------


def test_who_does_not_get_on_with_its_handshake_is_closed() -> None:
    """A head that never ends, a WebSocket that never greets, and one that proves nothing."""

    async def silent(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            for path in ("/v1/operator", "/v1/host"):
                client = Client(await dialler.dial(path))
                failed = await client.hear_among(r.RelayFailed)
                assert failed.code == "timed_out"
                assert await client.closed() == 1008

    with RelayProcess("--limit", "handshake_s=0.5") as relay:
        sockets = []
        for sent in (b"", b"GET /v1/host HTTP/1.1\r\nHost: x\r\n", b"\r\n"):
            raw = socket.create_connection(("127.0.0.1", relay.port), PATIENCE_S)
            raw.sendall(sent)
            sockets.append(raw)
        began = time.monotonic()
        for raw in sockets:
            while raw.recv(4096):  # an answer such as 400 may come first
                pass
            raw.close()
        assert time.monotonic() - began < 5
        bounded(silent(relay))


def test_dribbling_a_head_does_not_buy_time() -> None:
    with (
        RelayProcess("--limit", "handshake_s=0.5") as relay,
        socket.create_connection(("127.0.0.1", relay.port), PATIENCE_S) as raw,
    ):
        raw.settimeout(0.05)
        raw.sendall(b"GET / HTTP/1.1\r\n")
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                raw.sendall(b"X-A: b\r\n")
                if raw.recv(100) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("still being listened to")


def test_failed_proofs_of_an_address_are_limited_before_they_cost_anything() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            for _ in range(3):
                host = HostClient(await dialler.dial("/v1/host"))
                await host.hear(r.Challenge)
                await host.say(r.ProveHost(1, bytes(32), "", bytes(64), bytes(32), bytes(64)))
                await host.hear(r.RelayFailed)
                await host.closed()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await dialler.dial("/v1/host")
            assert refused.value.status == 429
            assert refused.value.headers is not None and refused.value.headers["Retry-After"]
            assert await relay.metric("failed_proofs_total") == 3
            await dialler.operator()  # which proves nothing, and is not concerned

    with RelayProcess("--limit", "failed_proofs=3", "--limit", "failed_proofs_per_s=0.01") as relay:
        bounded(scene(relay))


def test_sessions_announced_without_their_key_are_limited_too() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host = await dialler.host()
            forged = r.Announced(SigningKey.generate().public, 1, bytes(64))
            await host.say(r.Announce(1, (forged,) * 3))
            assert len((await host.hear(r.Registered)).refused) == 3
            await host.say(r.Announce(2, (forged,)))
            assert (await host.hear(r.RelayFailed)).code == "bad_signature"
            assert await host.closed() == 1008

    with RelayProcess("--limit", "failed_proofs=3", "--limit", "failed_proofs_per_s=0.01") as relay:
        bounded(scene(relay))


def test_opens_of_an_address_are_limited() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, one, other = (
                await dialler.host(),
                await dialler.operator(),
                await dialler.operator(),
            )
            for _ in range(5):
                await one.open(host.key.public)
            refused = await other.refused(r.Open(1, host.key.public, None))
            assert refused.code == "rate_limited" and refused.retry_after_s > 0

    with RelayProcess("--limit", "opens=5", "--limit", "opens_per_s=0.01") as relay:
        bounded(scene(relay))


def test_hosts_operators_sessions_and_streams_have_a_limit() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, operator = await dialler.host(), await dialler.operator()
            for path in ("/v1/host", "/v1/operator"):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await dialler.dial(path)
                assert refused.value.status == 503
            keys = [SigningKey.generate() for _ in range(3)]
            codes = (await host.announce(*((key, 1) for key in keys))).refused
            assert [one.code for one in codes] == ["limit_reached"]
            for _ in range(2):
                await operator.open(host.key.public)
            third = await operator.refused(r.Open(3, host.key.public, None))
            assert third.code == "limit_reached"

    words = ["hosts_max=1", "operators_max=1", "sessions_max=2", "operator_streams=2"]
    with RelayProcess(*(word for limit in words for word in ("--limit", limit))) as relay:
        bounded(scene(relay))


# -- its own end ------------------------------------------------------------------------------


def test_a_relay_that_drains_sends_everybody_elsewhere_and_ends() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, operator = await dialler.host(), await dialler.operator()
            asleep = await dialler.operator()  # it never says anything again
            stream = (await operator.open(host.key.public)).stream
            await host.hear(r.Incoming)
            assert (await relay.get("/readyz"))[0] == 200
            relay.signal(signal.SIGTERM)
            for end in (host, operator):
                assert (await end.hear(r.GoingAway)).within_s == 10.0
            # What is open goes on; nothing new begins.
            await operator.say(r.StreamData(stream, b"still here"))
            assert (await host.hear(r.StreamData)).data == b"still here"
            refused = await operator.refused(r.Open(8, host.key.public, None))
            assert refused.code == "limit_reached"
            assert (await relay.get("/readyz"))[0] == 503
            assert (await relay.get("/healthz"))[0] == 200
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await dialler.dial("/v1/host")
            # When the hosts have gone, and nothing is open, it does not wait any longer.
            await host.ws.close()
            await operator.ws.close()
            began = time.monotonic()
            assert await asyncio.to_thread(relay.process.wait, PATIENCE_S) == 0
            assert time.monotonic() - began < RELAY_DRAIN_S / 2, "it waited for one who sleeps"
            assert await asleep.closed() == 1012

    with RelayProcess() as relay:
        bounded(scene(relay))


def test_a_drain_does_not_wait_for_ever() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, stalled = await dialler.host(), await dialler.operator()
            _pause(stalled)
            relay.signal(signal.SIGTERM)
            assert await host.closed() == 1012
            assert await asyncio.to_thread(relay.process.wait, PATIENCE_S) == 0

    with RelayProcess("--limit", "drain_s=0.5", "--limit", "close_s=0.5") as relay:
        bounded(scene(relay))


def test_a_second_signal_does_not_wait_at_all() -> None:
    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host = await dialler.host()
            relay.signal(signal.SIGTERM)
            await host.hear(r.GoingAway)
            relay.signal(signal.SIGTERM)
            assert await asyncio.to_thread(relay.process.wait, RELAY_DRAIN_S / 2) == 0

    with RelayProcess() as relay:
        bounded(scene(relay))


async def test_after_a_relay_was_killed_everybody_comes_back_and_is_routed_again() -> None:
    key, session = fresh_session()
    host_key = SigningKey.generate()
    with RelayProcess() as first:
        async with at(first) as dialler:
            host = await dialler.host(host_key)
            await host.announce((key, 3))
            operator = await dialler.subscriber(host, session)
            first.signal(signal.SIGKILL)
            assert await host.closed() == 1006
            assert await operator.closed() == 1006
            first.process.wait(PATIENCE_S)
    with RelayProcess(listen=first.name) as second:
        assert second.port == first.port
        async with at(second) as dialler:
            host = await dialler.host(host_key)
            assert (await host.announce((key, 3))).refused == ()
            operator = await dialler.subscriber(host, session)
            await host.say(r.Broadcast(session, 1, b"on we go"))
            assert (await operator.hear(r.Broadcast)).data == b"on we go"


async def test_nothing_is_left_of_those_who_came_and_went(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        for _ in range(20):
            host = await dialler.host()
            key, session = fresh_session()
            await host.announce((key, 1))
            operator = await dialler.subscriber(host, session)
            _pause(operator)
            for seq in range(100):
                await host.say(r.Broadcast(session, seq, bytes(30_000)))
            await host.announce()
        # And data of streams that nobody took.
        host, operator = await dialler.host(), await dialler.operator()
        _pause(operator)
        streams = []
        for number in range(32):
            await operator.say(r.Open(number, host.key.public, None))
            streams.append((await host.hear(r.Incoming)).stream)
        for stream in streams:
            for _ in range(4):
                await host.say(r.StreamData(stream, bytes(64 << 10)))
        await host.announce()
        assert await relay.metric("held_bytes") > 0
    for gauge in ("hosts", "operators", "sessions", "streams", "subscriptions", "sockets"):
        await relay.metric_is(gauge, 0)
    await relay.metric_is("held_bytes", 0)


# -- HTTP and TLS -----------------------------------------------------------------------------


async def test_metrics_are_what_prometheus_reads(relay: RelayProcess) -> None:
    async with at(relay) as dialler:
        host = await dialler.host()
        status, text = await relay.get("/metrics")
        assert status == 200 and not host.ws.closed
        assert "holdfast_relay_hosts 1\n" in text
        for line in text.splitlines():
            words = line.split()
            assert line.startswith(("# HELP ", "# TYPE ")) or (
                len(words) == 2 and words[0].startswith("holdfast_relay_") and words[1].isdigit()
            )


def test_a_self_signed_relay_is_known_by_its_fingerprint_which_stays(tmp_path: Path) -> None:
    async def scene(relay: RelayProcess) -> str:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", relay.port, ssl=unchecked)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        assert hashlib.sha256(certificate).hexdigest() == relay.fingerprint
        # And the whole protocol over TLS, by a client that checks it the way aiohttp does.
        pinned = aiohttp.Fingerprint(bytes.fromhex(relay.fingerprint))
        async with Dialler(relay, pinned) as dialler:
            host, operator = await dialler.host(), await dialler.operator()
            stream = (await operator.open(host.key.public)).stream
            await operator.say(r.StreamData(stream, b"x" * 100_000))
            await host.hear(r.Incoming)
            assert len((await host.hear(r.StreamData)).data) == 100_000
        async with Dialler(relay, aiohttp.Fingerprint(bytes(32))) as dialler:
            with pytest.raises(aiohttp.ServerFingerprintMismatch):
                await dialler.host()
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await relay.get("/healthz")  # nobody vouches for it
        return relay.fingerprint

    seen = set()
    for _ in range(2):
        with RelayProcess("--self-signed", home=str(tmp_path)) as relay:
            seen.add(bounded(scene(relay)))
    assert len(seen) == 1
    assert (tmp_path / "relay/self-signed.key").stat().st_mode & 0o777 == 0o600


def test_a_renewed_certificate_is_read_on_sighup_and_a_bad_one_leaves_the_old(
    tmp_path: Path,
) -> None:
    first, second = (self_signed(str(tmp_path / name), ["127.0.0.1"]) for name in ("a", "b"))
    used = (tmp_path / "used.crt", tmp_path / "used.key")

    def put(files: tuple[str, str]) -> None:
        for source, target in zip(files, used, strict=True):
            target.write_bytes(Path(source).read_bytes())

    async def hung_up(relay: RelayProcess, told: str) -> None:
        relay.signal(signal.SIGHUP)
        assert relay.process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while told not in (await asyncio.to_thread(relay.process.stderr.readline)).decode():
                pass

    async def scene(relay: RelayProcess) -> None:
        async with Dialler(relay, _pinned(first)) as dialler:
            host = await dialler.host()
            used[0].write_text("no certificate")
            await hung_up(relay, "keeping the old certificate")
            operator = await dialler.operator()
            put(second)
            await hung_up(relay, "the certificate was reloaded")
            await operator.open(host.key.public)  # who is there stays
            with pytest.raises(aiohttp.ServerFingerprintMismatch):
                await dialler.operator()
        async with Dialler(relay, _pinned(second)) as dialler:
            await dialler.operator()

    put(first)
    with RelayProcess("--cert", str(used[0]), "--key", str(used[1])) as relay:
        assert relay.fingerprint == fingerprint_of(first[0])
        bounded(scene(relay))


def _pinned(files: tuple[str, str]) -> aiohttp.Fingerprint:
    return aiohttp.Fingerprint(bytes.fromhex(fingerprint_of(files[0])))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--listen", "0.0.0.0:0"], "invalid_argument"),
        (["--listen", "nowhere"], "invalid_argument"),
        (["--cert", "/nonexistent", "--key", "/nonexistent"], "invalid_argument"),
        (["--cert", __file__, "--key", __file__], "invalid_argument"),
        (["--cert", "only"], "invalid_argument"),
        (["--limit", "no_such=1"], "invalid_argument"),
        (["--limit", "hosts_max=many"], "invalid_argument"),
        (["--limit", "hosts_max=-1"], "invalid_argument"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: list[str], code: str) -> None:
    hold = str(Path(sys.executable).with_name("hold"))
    done = subprocess.run(
        [hold, "relay", *words], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 64, done
    assert f"({code})" in done.stderr and done.stderr.count("\n") == 1, done


def test_a_port_that_is_taken_is_said(relay: RelayProcess) -> None:
    hold = str(Path(sys.executable).with_name("hold"))
    done = subprocess.run(
        [hold, "relay", "--listen", relay.name], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 64 and "cannot listen" in done.stderr, done


def test_hold_relay_runs_one_and_other_verbs_do_not_load_its_server() -> None:
    hold = str(Path(sys.executable).with_name("hold"))
    with subprocess.Popen(
        [hold, "relay", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("the relay is at http://127.0.0.1:")
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    code = (
        "import sys\nfrom holdfast.cli.dispatch import VERBS, load\n"
        "[load(verb) for verb in VERBS]\nprint('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout == "False\n", done
