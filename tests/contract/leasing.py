"""A lease machine run over a store with this machine's clock: the smallest thing that does what the
machine says. It can be cut off from its store, as a host behind a broken network is."""

from __future__ import annotations

import asyncio
import time

from holdfast.core.lease.events import (
    Acquire,
    Acquired,
    LeaseEvent,
    LeaseFenced,
    LeaseOutcome,
    LeaseTick,
    LeaseWritten,
    LookFailed,
    ReadRecord,
    RecordSeen,
    Release,
    Released,
    Write,
    WriteLost,
    WriteUnknown,
)
from holdfast.core.lease.machine import Lease
from holdfast.model.errors import CoordinationDown
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseTerms
from holdfast.ports.coordination import CasLost, Coordination, Written
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease

SESSION = SessionId("0" * 26)
TERMS = LeaseTerms(2.0, 0.3, grace_s=0.1, retry_s=0.1)


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Runner:
    """One incarnation."""

    def __init__(self, name: str, store: Coordination, *, born: bool = False) -> None:
        self.lease = Lease(SESSION, name, name, TERMS, born=born)
        self._store, self._key = store, lease_key(SESSION)
        self.connected = asyncio.Event()
        self.connected.set()
        self.held, self.fenced, self.released = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.acquired_at = self.fenced_at = 0.0
        self._tasks = [asyncio.create_task(self._clock()), asyncio.create_task(self._watch())]
        self._moved = asyncio.Event()

    def want(self) -> None:
        self._give(Acquire(now()))

    def release(self) -> None:
        self._give(Release(now()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _give(self, event: LeaseEvent) -> None:
        for outcome in self.lease.handle(event):
            self._carry_out(outcome)
        self._moved.set()

    def _carry_out(self, outcome: LeaseOutcome) -> None:
        match outcome:
            case ReadRecord():
                self._tasks.append(asyncio.create_task(self._look()))
            case Write():
                self._tasks.append(asyncio.create_task(self._write(outcome)))
            case Acquired():
                self.acquired_at = now()
                self.held.set()
            case LeaseFenced():
                self.fenced_at = now()
                self.fenced.set()
            case Released():
                self.released.set()

    async def _look(self) -> None:
        await self.connected.wait()
        try:
            entry = await self._store.get(self._key)
        except CoordinationDown:
            self._give(LookFailed(now()))
        else:
            self._give(RecordSeen(now(), entry.revision, unpack_lease(entry.value)))

    async def _write(self, write: Write) -> None:
        await self.connected.wait()
        outcome = await self._store.cas(self._key, pack_lease(write.record), write.revision)
        if isinstance(outcome, Written):
            self._give(LeaseWritten(now(), outcome.revision))
        else:
            self._give((WriteLost if isinstance(outcome, CasLost) else WriteUnknown)(now()))

    async def _watch(self) -> None:
        async for entry in self._store.watch(self._key):
            await self.connected.wait()
            self._give(RecordSeen(now(), entry.revision, unpack_lease(entry.value)))

    async def _clock(self) -> None:
        while True:
            self._moved.clear()
            at = self.lease.wakes_at()
            try:
                async with asyncio.timeout(None if at is None else at - now()):
                    await self._moved.wait()
            except TimeoutError:
                self._give(LeaseTick(now()))
