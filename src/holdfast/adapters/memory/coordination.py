"""A coordination point in memory: the twin of the real ones for simulations, held to the same
contract (`tests/contract/test_coordination.py`). Several clients may share one `MemoryStore`; it
belongs to one event loop, and forgets everything with its process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from holdfast.ports.coordination import (
    CasLost,
    CasUnknown,
    StoredValue,
    Written,
    check_key,
    check_write,
)


class MemoryStore:
    """What the clients share. `now` only serves tidying up."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self.revision = 0
        self.entries: dict[str, StoredValue] = {}
        self.gone_at: dict[str, float] = {}
        self.changed = asyncio.Event()  # replaced at each change: whoever waits holds the old one
        self._now = now

    def now(self) -> float:
        return self._now() if self._now is not None else asyncio.get_running_loop().time()

    def put(self, key: str, value: bytes | None, gone_after_s: int | None) -> StoredValue:
        self.revision += 1
        entry = self.entries[key] = StoredValue(key, self.revision, value)
        self.gone_at.pop(key, None)
        if gone_after_s is not None:
            self.gone_at[key] = self.now() + gone_after_s
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        return entry

    def tidy(self) -> None:
        now = self.now()
        for key in [key for key, at in self.gone_at.items() if at <= now]:
            self.put(key, None, None)

    def tidy_in_s(self) -> float | None:
        return min(self.gone_at.values()) - self.now() if self.gone_at else None


class MemoryCoordination:
    """One client of a store in memory."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()

    async def get(self, key: str) -> StoredValue:
        check_key(key)
        self.store.tidy()
        return self.store.entries.get(key) or StoredValue(key, 0, None)

    async def cas(
        self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
    ) -> Written | CasLost | CasUnknown:
        check_write(key, value, revision, gone_after_s)
        if (await self.get(key)).revision != revision:
            return CasLost()
        return Written(self.store.put(key, value, gone_after_s).revision)

    async def watch(self, key: str, *, below: bool = False) -> AsyncIterator[StoredValue]:
        check_key(key)
        seen = 0
        while True:
            self.store.tidy()
            changed = self.store.changed
            found = [
                entry
                for entry in self.store.entries.values()
                if entry.revision > seen
                and (entry.key == key or (below and entry.key.startswith(key + ".")))
            ]
            for entry in sorted(found, key=lambda entry: entry.revision):
                seen = max(seen, entry.revision)
                yield entry
            if changed is self.store.changed:
                # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.store.tidy_in_s()):
                        await changed.wait()

    async def close(self) -> None:
        return None
