"""The coordination point when something breaks: what was acknowledged stands, what was refused was
not done, and what is not known is said not to be known (F5)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.stores import PATIENCE_S, Appender, Clusters, check_history, run, written
from holdfast.adapters.nats.coordination import NatsCoordination
from holdfast.adapters.nats.server import NatsCluster, NatsNode, free_ports
from holdfast.adapters.sqlite.coordination import SqliteCoordination
from holdfast.host.coordination_point import BUCKET, CoordinationPoint
from holdfast.model.errors import CoordinationDown, LaunchFailed, StorageFailed, Unsupported
from holdfast.ports.coordination import CasLost, CasUnknown, StoredValue, Written

# -- SQLite ---------------------------------------------------------------------------------------

_WRITER = """
    import asyncio, sys
    from pathlib import Path
    from holdfast.adapters.sqlite.coordination import SqliteCoordination

    async def main():
        store = SqliteCoordination(Path(sys.argv[1]))
        revision = (await store.get("k")).revision
        for number in range(10_000_000):
            revision = (await store.cas("k", b"%d" % number, revision)).revision
            print(revision, number, flush=True)

    asyncio.run(main())
"""


def test_a_killed_writer_loses_nothing_it_was_told_is_done(tmp_path: Path) -> None:
    path = tmp_path / "coordination.sqlite"
    chance = random.Random(7)
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_WRITER), path],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(chance.randrange(5, 200))]
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait(PATIENCE_S)
        # The last line may be cut off by the kill; what it acknowledged is then not known.
        revision, number = map(int, next(x for x in reversed(lines) if x.endswith("\n")).split())

        async def story(revision: int = revision, number: int = number) -> None:
            store = SqliteCoordination(path)
            entry = await store.get("k")
            assert entry.revision >= revision
            assert entry.value is not None
            assert int(entry.value) >= number
            assert int(entry.value) - number == entry.revision - revision
            await written(store, "k", b"after", entry.revision)
            await store.close()

        run(story)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


async def test_a_full_disk_is_a_typed_error_and_loses_nothing(small_disk: Path) -> None:
    store = SqliteCoordination(small_disk / "coordination.sqlite")
    first = await written(store, "k", b"before", 0)
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    refused = 0
    for number in range(200):
        try:
            await store.cas(f"more.{number}", b"y" * 4000, 0)
        except StorageFailed as error:
            refused += 1
            assert error.hint
            break
    assert refused, "the disk was not full"
    assert await store.get("k") == StoredValue("k", first, b"before")
    ballast.unlink()
    assert await store.cas("k", b"after", first) != CasLost()
    assert (await store.get("k")).value == b"after"
    await store.close()


async def test_a_file_locked_by_another_process_is_unknown_not_an_accident(tmp_path: Path) -> None:
    path = tmp_path / "coordination.sqlite"

    store = SqliteCoordination(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert isinstance(await store.cas("k", b"x", 0), CasUnknown)
    assert await store.get("k") == StoredValue("k", 0, None)  # readers are not in the way
    other.execute("ROLLBACK")
    assert isinstance(await store.cas("k", b"x", 0), Written)
    other.close()
    await store.close()


def test_a_file_that_is_no_database_is_a_typed_error(tmp_path: Path) -> None:
    path = tmp_path / "coordination.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageFailed):
        SqliteCoordination(path)


# -- NATS -----------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    with NatsCluster(tmp_path / "nats", 3) as cluster:
        yield cluster


async def _leader(cluster: NatsCluster, client: NatsCoordination) -> NatsNode:
    info = await client._js.stream_info(client._stream)
    assert info.cluster is not None
    return next(node for node in cluster.nodes if node.name == info.cluster.leader)


class Writers:
    """Four clients that append to one value without pause, and count what is acknowledged."""

    def __init__(self, clients: list[NatsCoordination]) -> None:
        self.appenders = [
            Appender("abcd"[number], client, "history") for number, client in enumerate(clients)
        ]
        self._done = asyncio.Condition()
        self.acknowledged = 0

    async def work(self, appender: Appender) -> None:
        while True:
            try:
                outcome = await appender.append()
            except CoordinationDown:
                continue
            if isinstance(outcome, Written):
                async with self._done:
                    self.acknowledged += 1
                    self._done.notify_all()
            await asyncio.sleep(0.01)  # the value holds its whole history: it must not grow huge

    async def more(self, count: int) -> None:
        """Until so many more writes are acknowledged."""
        wanted = self.acknowledged + count
        async with asyncio.timeout(PATIENCE_S), self._done:
            await self._done.wait_for(lambda: self.acknowledged >= wanted)

    def unknown(self) -> int:
        """Writes of which nobody was told whether they were done."""
        told = (answer for each in self.appenders for answer in each.told.values())
        return sum(isinstance(answer, CasUnknown) for answer in told)


def test_killed_and_paused_nodes_lose_nothing_acknowledged_and_let_nobody_win_twice(
    cluster: NatsCluster,
) -> None:
    chance = random.Random(11)

    async def story() -> None:
        clients = [await NatsCoordination.connect(cluster.urls, "hold") for _ in range(4)]
        writers = Writers(clients)
        tasks = [asyncio.create_task(writers.work(each)) for each in writers.appenders]
        await writers.more(20)
        leader = await _leader(cluster, clients[0])
        leader.pause()
        await writers.more(10)  # the others chose another
        leader.resume()
        await writers.more(10)
        leader = await _leader(cluster, clients[0])
        leader.kill()
        await writers.more(10)
        leader.start()
        await writers.more(10)
        for node in (killed := chance.sample(cluster.nodes, 2)):  # no majority is left
            node.kill()
        stopped_at = writers.acknowledged
        for node in killed:
            node.start()
        await writers.more(10)
        for _ in range(10):  # until a write was under way when its node died
            if writers.unknown():
                break
            (leader := await _leader(cluster, clients[0])).kill()
            leader.start()
            await writers.more(10)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        marks = await check_history(writers.appenders, faults=True)
        answers = [answer for each in writers.appenders for answer in each.told.values()]
        unknown = writers.unknown()
        print(
            f"{len(answers)} writes, {marks} done, {unknown} unknown; {stopped_at} before the end"
        )
        assert unknown, "the faults were not felt"
        for client in clients:
            await client.close()

    run(story, 100)


def test_a_watch_outlives_the_death_of_the_server_it_was_on(cluster: NatsCluster) -> None:
    async def story() -> None:
        client = await NatsCoordination.connect(cluster.urls, "hold")
        revision = await written(client, "k", b"0", 0)
        told = client.watch("k")
        assert (await anext(told)).value == b"0"
        for number in (1, 2):
            node = cluster.nodes[number]
            node.kill()
            async with asyncio.timeout(PATIENCE_S):
                while isinstance(
                    outcome := await client.cas("k", b"%d" % number, revision), CasUnknown
                ):
                    pass
            if isinstance(outcome, CasLost):  # an unknown one was done
                assert (await client.get("k")).value == b"%d" % number
            entry = await asyncio.wait_for(anext(told), PATIENCE_S)
            assert entry.value == b"%d" % number
            revision = entry.revision
            node.start()
            node.wait_ready()
        await client.close()

    run(story, 90)


def test_without_a_majority_nothing_is_promised_and_nothing_hangs(cluster: NatsCluster) -> None:
    async def story() -> None:
        client = await NatsCoordination.connect(cluster.urls, "hold")
        revision = await written(client, "k", b"1", 0)
        for node in cluster.nodes[1:]:
            node.pause()
        async with asyncio.timeout(PATIENCE_S):
            assert isinstance(await client.cas("k", b"2", revision), CasUnknown)
        for node in cluster.nodes[1:]:
            node.resume()
        async with asyncio.timeout(PATIENCE_S):
            while (entry := await _read(client)) is None:
                pass
        assert entry.value in (b"1", b"2")
        await client.close()

    run(story, 60)


async def _read(client: NatsCoordination) -> StoredValue | None:
    try:
        return await client.get("k")
    except CoordinationDown:
        return None


def test_nobody_there_is_said_in_time(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def story() -> None:
        with pytest.raises(CoordinationDown):
            await NatsCoordination.connect([f"nats://127.0.0.1:{port}"], "hold", within_s=1.0)

    run(story, 10)


def test_a_bucket_that_promises_less_is_refused(tmp_path: Path) -> None:
    async def story(cluster: NatsCluster) -> None:
        client = await NatsCoordination.connect(cluster.urls, "hold", replicas=1)
        await client._js.add_stream(name="KV_other", subjects=["$KV.other.>"], allow_direct=True)
        await client.close()
        with pytest.raises(Unsupported, match="direct reads"):
            await NatsCoordination.connect(cluster.urls, "other", replicas=1)

    with NatsCluster(tmp_path, 1) as cluster:
        run(lambda: story(cluster))


@pytest.mark.parametrize("servers", [1, 3])
async def test_a_host_that_names_one_server_makes_the_bucket_as_the_relays_of_a_cluster_want_it(
    clusters: Clusters, servers: int
) -> None:
    cluster = clusters.of(servers)

    point = CoordinationPoint(cluster.urls[0], "")
    async with asyncio.timeout(PATIENCE_S):
        while isinstance(await point.cas("k", b"v", 0), CasUnknown):
            pass  # each call waits by itself for a cluster that is just starting
    await point.close()
    relay = await NatsCoordination.connect(cluster.urls, BUCKET, replicas=servers)
    assert (await relay.get("k")).value == b"v"
    await relay.close()


def test_a_node_whose_port_is_taken_says_why_it_did_not_start(tmp_path: Path) -> None:
    with NatsCluster(tmp_path / "first", 1) as first:
        second = NatsCluster(tmp_path / "second", 1, [first.nodes[0].port])
        with pytest.raises(LaunchFailed, match="in use"):
            second.start()
