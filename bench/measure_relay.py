"""What a relay itself costs.

Relay and load each on a core of its own, over loopback, without the end-to-end channel: opaque
bytes. Timed are 64 bytes from an operator to a host and back; broadcasts of 16 kB to one and to a
hundred observers, as fast as they are taken; and 1,000 hosts that come in with 10,000 sessions, a
hundred at a time: what the relay needs for them, how fast they are proven and registered, and how
long it then takes to open a stream to one of the sessions by its id."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import uvloop

from bench.results import Row
from bench.sampling import percentile
from bench.stage import Stage

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from process.relaying import Client, Dialler, HostClient, RelayProcess, announced

ECHOES = 20_000
FRAMES = {1: 40_000, 100: 2_000}
PIECE = bytes(16 << 10)
HOSTS, SESSIONS_EACH = 1000, 10


def measure(stage: Stage) -> list[Row]:
    taken: dict[str, float] = {}
    with _on_its_own_core("--limit", "opens=100000") as run:
        taken |= run(_echo)
        for observers in FRAMES:
            taken |= run(partial(_throughput, observers=observers))
    with _on_its_own_core() as run:
        taken |= run(_crowd)
    crowd = f"{HOSTS:,} hosts with {HOSTS * SESSIONS_EACH:,} sessions at one relay"
    rows = (
        ("64 bytes through a relay and back, p50", "µs", "echo"),
        ("16 kB broadcasts through a relay to one observer", "MB/s", "text 1"),
        ("the same to 100 observers, all together", "MB/s", "text 100"),
        (f"{crowd}: memory", "MB", "memory"),
        (f"{crowd}: coming in", "hosts/s", "hosts"),
        (f"{crowd}: opening one by its id, p50", "ms", "open"),
    )
    return [Row(name, unit, {"holdfast": taken[of]}) for name, unit, of in rows]


Load = Callable[[RelayProcess], Coroutine[None, None, dict[str, float]]]


@contextmanager
def _on_its_own_core(*words: str) -> Iterator[Callable[[Load], dict[str, float]]]:
    """A relay; what is run puts its load on it from another core, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    with RelayProcess(*words) as relay:
        if len(cores) > 1:
            os.sched_setaffinity(relay.process.pid, {cores[0]})
            os.sched_setaffinity(0, {cores[1]})
        try:
            yield lambda load: uvloop.run(load(relay))
        finally:
            os.sched_setaffinity(0, set(cores))


async def _echo(relay: RelayProcess) -> dict[str, float]:
    async with Dialler(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        stream = (await operator.open(host.key.public)).stream
        await host.hear(r.Incoming)
        frame = r.encode(r.StreamData(stream, bytes(64)))

        async def answer() -> None:
            while True:
                got = await host.ws.receive()
                if r.decode(got.data).tag == "data":
                    await host.ws.send_bytes(got.data)

        answering = asyncio.create_task(answer())
        took = []
        for _ in range(ECHOES):
            began = time.perf_counter()
            await operator.ws.send_bytes(frame)
            while (await operator.ws.receive()).data != frame:
                pass  # a credit
            took.append(time.perf_counter() - began)
        answering.cancel()
        return {"echo": percentile(took, 50) * 1e6}


async def _throughput(relay: RelayProcess, observers: int) -> dict[str, float]:
    frames = FRAMES[observers]
    async with Dialler(relay) as dialler:
        host = await dialler.host()
        key = SigningKey.generate()
        session = SessionId.of_key(key.public)
        await host.announce((key, 1))
        audience = await dialler.audience(host, session, observers)
        window = host.greeted.broadcast_window_bytes // (len(PIECE) + 100)
        taken, moved = -1, asyncio.Event()

        async def pace() -> None:
            nonlocal taken
            while taken < frames - 1:
                message = await host.next()
                if isinstance(message, r.Taken):
                    taken = message.seq
                    moved.set()

        async def read(one: Client) -> int:
            got = 0
            while True:
                data = (await one.ws.receive()).data
                if len(data) > len(PIECE):
                    got += 1
                    if got == frames:
                        return got
                    if b"\xfflast" in data[-5:]:
                        return got
                else:
                    gap = r.decode(data)
                    assert isinstance(gap, r.BroadcastGap), gap
                    if gap.last == frames - 1:
                        return got

        pacing = asyncio.create_task(pace())
        readers = [asyncio.create_task(read(one)) for one in audience]
        began = time.perf_counter()
        for seq in range(frames):
            while seq - taken > window:
                moved.clear()
                await moved.wait()
            data = PIECE if seq < frames - 1 else PIECE[:-5] + b"\xfflast"
            await host.say(r.Broadcast(session, seq, data))
        got = await asyncio.gather(*readers)
        seconds = time.perf_counter() - began
        pacing.cancel()
        return {f"text {observers}": sum(got) * len(PIECE) / seconds / 1e6}


async def _crowd(relay: RelayProcess) -> dict[str, float]:
    keys = [
        (SigningKey.generate(), [SigningKey.generate() for _ in range(SESSIONS_EACH)])
        for _ in range(HOSTS)
    ]
    announcements = [
        r.Announce(1, tuple(announced(host, session, 1) for session in sessions))
        for host, sessions in keys
    ]
    async with Dialler(relay) as dialler:
        before, began = relay.resident_bytes(), time.perf_counter()
        slots = asyncio.Semaphore(100)

        async def come(number: int) -> HostClient:
            async with slots:
                host = await dialler.host(keys[number][0])
                await host.say(announcements[number])
                assert (await host.hear(r.Registered)).refused == ()
                return host

        hosts = await asyncio.gather(*(come(number) for number in range(HOSTS)))
        seconds, memory = time.perf_counter() - began, relay.resident_bytes() - before
        assert await relay.metric("sessions") == HOSTS * SESSIONS_EACH
        # Found again among all: the time to open a stream by a session's id.
        operator = await dialler.operator()
        took = []
        for number in range(0, HOSTS, 10):
            began = time.perf_counter()
            await operator.open(SessionId.of_key(keys[number][1][0].public))
            took.append(time.perf_counter() - began)
            await operator.say(r.Close((await hosts[number].hear(r.Incoming)).stream))
        return {
            "memory": memory / 1e6,
            "hosts": HOSTS / seconds,
            "open": percentile(took, 50) * 1e3,
        }
