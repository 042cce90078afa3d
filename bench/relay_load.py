"""What a relay costs: `python -m bench.relay_load`. Relay and load each on a core of its own, over
loopback, without the end-to-end channel: opaque bytes.

    echo         64 bytes operator -> relay -> host -> relay -> operator
    throughput   16 KB broadcasts to 1 and to 100 observers, paced by `taken`
    crowd        1,000 hosts with 10,000 sessions: memory, and how fast they come in
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from process.relaying import Client, Dialler, HostClient, RelayProcess, announced

ECHOES = 20_000
FRAMES = {1: 40_000, 100: 2_000}
PIECE = bytes(16 << 10)
HOSTS, SESSIONS_EACH = 1000, 10


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def echo(relay: RelayProcess) -> None:
    async with Dialler(relay) as dialler:
        host, operator = await dialler.host(), await dialler.operator()
        stream = (await operator.open(host.key.public)).stream
        await host.hear(r.Incoming)
        frame = r.encode(r.Data(stream, bytes(64)))

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
        took.sort()
        p50, p99 = (took[int(len(took) * share)] * 1e6 for share in (0.5, 0.99))
        print(f"echo 64 B: p50 {p50:.0f} us, p99 {p99:.0f} us")


async def throughput(relay: RelayProcess, observers: int) -> None:
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
                    assert isinstance(gap, r.Gap), gap
                    if gap.last == frames - 1:
                        return got

        pacing = asyncio.create_task(pace())
        readers = [asyncio.create_task(read(one)) for one in audience]
        cpu, began = cpu_s(relay.process.pid), time.perf_counter()
        for seq in range(frames):
            while seq - taken > window:
                moved.clear()
                await moved.wait()
            data = PIECE if seq < frames - 1 else PIECE[:-5] + b"\xfflast"
            await host.say(r.Broadcast(session, seq, data))
        got = await asyncio.gather(*readers)
        seconds, cpu = time.perf_counter() - began, cpu_s(relay.process.pid) - cpu
        pacing.cancel()
        delivered = sum(got)
        print(
            f"16 KB x {observers}: {delivered * len(PIECE) / seconds / 1e6:.0f} MB/s delivered, "
            f"relay {cpu / delivered * 1e6:.1f} us per delivery, "
            f"left out {observers * frames - delivered}, RSS {relay.resident_bytes() >> 20} MiB"
        )


async def crowd(relay: RelayProcess) -> None:
    keys = [
        (SigningKey.generate(), [SigningKey.generate() for _ in range(SESSIONS_EACH)])
        for _ in range(HOSTS)
    ]
    announcements = [
        r.Announce(1, tuple(announced(host, session, 1) for session in sessions))
        for host, sessions in keys
    ]
    async with Dialler(relay) as dialler:
        before, cpu, began = relay.resident_bytes(), cpu_s(relay.process.pid), time.perf_counter()
        slots = asyncio.Semaphore(100)

        async def come(number: int) -> HostClient:
            async with slots:
                host = await dialler.host(keys[number][0])
                await host.say(announcements[number])
                assert (await host.hear(r.Registered)).refused == ()
                return host

        hosts = await asyncio.gather(*(come(number) for number in range(HOSTS)))
        seconds, cpu = time.perf_counter() - began, cpu_s(relay.process.pid) - cpu
        after = relay.resident_bytes()
        assert await relay.metric("sessions") == HOSTS * SESSIONS_EACH
        print(
            f"{HOSTS} hosts, {HOSTS * SESSIONS_EACH} sessions: RSS {before >> 20} -> "
            f"{after >> 20} MiB ({(after - before) / HOSTS / 1024:.0f} KiB per host with its "
            f"{SESSIONS_EACH} sessions), {HOSTS / seconds:.0f} hosts/s proved and announced, "
            f"relay {cpu / HOSTS * 1e3:.2f} ms of CPU each"
        )
        # Found again among all: the time to open a stream by a session's id.
        operator = await dialler.operator()
        took = []
        for number in range(0, HOSTS, 10):
            began = time.perf_counter()
            await operator.open(SessionId.of_key(keys[number][1][0].public))
            took.append(time.perf_counter() - began)
            await operator.say(r.Close((await hosts[number].hear(r.Incoming)).stream))
        print(f"open by session id: p50 {statistics.median(took) * 1e6:.0f} us")


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    with RelayProcess("--limit", "opens=100000") as relay:
        if len(cores) > 1:
            os.sched_setaffinity(relay.process.pid, {cores[0]})
            os.sched_setaffinity(0, {cores[1]})
        uvloop.run(echo(relay))
        for observers in FRAMES:
            uvloop.run(throughput(relay, observers))
    os.sched_setaffinity(0, set(cores))
    with RelayProcess() as relay:
        if len(cores) > 1:
            os.sched_setaffinity(relay.process.pid, {cores[0]})
            os.sched_setaffinity(0, {cores[1]})
        uvloop.run(crowd(relay))


if __name__ == "__main__":
    main()
