"""The stores the contract is shown on. Each can be opened by any number of clients."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from holdfast.adapters.memory.coordination import MemoryCoordination, MemoryStore
from holdfast.adapters.nats.coordination import NatsCoordination
from holdfast.adapters.nats.server import NatsCluster
from holdfast.adapters.sqlite.coordination import SqliteCoordination
from holdfast.ports.coordination import CasLost, CasUnknown, Coordination, Written

KINDS = ("memory", "sqlite", "nats-1", "nats-3")
PATIENCE_S = 20.0
_LOOK_S = 0.05
_T = TypeVar("_T")
_buckets = itertools.count(1)

Open = Callable[[], Awaitable[Coordination]]


def run(story: Callable[[], Coroutine[Any, Any, _T]], within_s: float = 60.0) -> _T:
    async def bounded() -> _T:
        async with asyncio.timeout(within_s):
            return await story()

    return asyncio.run(bounded())


class Clusters:
    """NATS, started when first asked for and kept for all tests that only use it gently."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[int, NatsCluster] = {}

    def of(self, count: int) -> NatsCluster:
        if count not in self._running:
            cluster = NatsCluster(self._directory / f"of-{count}", count)
            cluster.start()
            self._running[count] = cluster
        return self._running[count]

    def stop(self) -> None:
        for cluster in self._running.values():
            cluster.stop()


class Store:
    """One store, empty at first."""

    def __init__(self, kind: str, directory: Path, clusters: Clusters) -> None:
        self.kind, self._path = kind, directory / "coordination.sqlite"
        self._bucket = f"test-{next(_buckets)}"
        self._memory = MemoryStore() if kind == "memory" else None
        self._cluster = clusters.of(int(kind[-1])) if kind.startswith("nats") else None

    async def _open(self) -> Coordination:
        if self._memory is not None:
            return MemoryCoordination(self._memory)
        if self._cluster is None:
            return SqliteCoordination(self._path)
        urls, replicas = self._cluster.urls, len(self._cluster.nodes)
        return await NatsCoordination.connect(urls, self._bucket, replicas=replicas)

    @asynccontextmanager
    async def clients(self, count: int) -> AsyncIterator[list[Coordination]]:
        async with AsyncExitStack() as stack:
            opened = []
            for _ in range(count):
                client = await self._open()
                stack.push_async_callback(client.close)
                opened.append(client)
            yield opened


@contextmanager
def running(directory: Path) -> Iterator[Clusters]:
    clusters = Clusters(directory)
    try:
        yield clusters
    finally:
        clusters.stop()


async def written(store: Coordination, key: str, value: bytes, revision: int, **more: Any) -> int:
    """The revision of a write that must succeed. Unknown is read again, as callers must, and what
    was not written (a cluster between two leaders, for seconds) is tried again."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        outcome = await store.cas(key, value, revision, **more)
        if isinstance(outcome, Written):
            return outcome.revision
        assert isinstance(outcome, CasUnknown), outcome
        entry = await store.get(key)
        if entry.value == value:
            return entry.revision
        assert entry.revision == revision, f"{outcome}, and another's write stands there"
        await asyncio.sleep(_LOOK_S)
    raise AssertionError(f"{outcome}, for {PATIENCE_S:.0f} s")


class Appender:
    """Writes its marks at the end of one value by compare-and-set, and remembers what it was told
    about each. The value then holds the whole history, so that every answer can be checked."""

    def __init__(self, name: str, store: Coordination, key: str) -> None:
        self.name, self.store, self.key = name, store, key
        self.told: dict[str, Written | CasLost | CasUnknown] = {}
        self.expected: dict[str, int] = {}

    async def append(self) -> Written | CasLost | CasUnknown:
        entry = await self.store.get(self.key)
        mark = f"{self.name}{len(self.told)}"
        value = b" ".join(filter(None, [entry.value, mark.encode()]))
        self.expected[mark] = entry.revision
        # Before the answer: a caller cut off in between knows as little as one without an answer.
        self.told[mark] = CasUnknown("not answered yet")
        self.told[mark] = await self.store.cas(self.key, value, entry.revision)
        return self.told[mark]


async def check_history(appenders: list[Appender], *, faults: bool = False) -> int:
    """Every acknowledged mark is in the value once and in the order of revisions, no refused one
    is, and no revision was won twice. Gives the number of marks. With faults a refused one may
    have stood until another replaced it, so it may be in the history but not at its end."""
    final = await appenders[0].store.get(appenders[0].key)
    history = (final.value or b"").decode().split()
    told = {mark: answer for each in appenders for mark, answer in each.told.items()}
    expected = {mark: at for each in appenders for mark, at in each.expected.items()}
    done = {mark: answer for mark, answer in told.items() if isinstance(answer, Written)}
    lost = {mark for mark, answer in told.items() if isinstance(answer, CasLost)}
    assert len(history) == len(set(history)), "a mark stands there twice"
    assert not set(done) - set(history), "an acknowledged write is lost"
    assert not lost & set(history[-1:] if faults else history), "a refused write was done"
    won = [expected[mark] for mark in history]
    assert len(won) == len(set(won)), "a revision was won twice"
    in_order = [done[mark].revision for mark in history if mark in done]
    assert in_order == sorted(set(in_order)), "revisions do not rise"
    return len(history)
