"""A lease that changes hands while a host cannot keep what it needs of it: nothing is lost by
trying once more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from holdfast.adapters.memory.coordination import MemoryCoordination
from holdfast.host.continuity.moving.handover_lease import HandoverLease
from holdfast.keeper import boottime
from holdfast.model.ids import SessionId
from unit.virtual_time import VirtualLoop

pytestmark = pytest.mark.loop(factory=VirtualLoop)

SESSION, MOVE = SessionId("0" * 26), "0f" * 16
T = TypeVar("T")


@pytest.fixture(autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boottime, "now", lambda: asyncio.get_running_loop().time())


class Disk:
    """Full once: at the call of this number."""

    def __init__(self, full_at: int = 0) -> None:
        self.full_at, self.calls = full_at, 0

    def keep(self) -> None:
        self.calls += 1
        if self.calls == self.full_at:
            raise OSError(28, "no space left on device")


async def persistently(disk: Disk, work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except OSError:
        assert disk.calls == disk.full_at
    return await work()


@pytest.mark.parametrize("full_at", range(1, 4))
async def test_it_is_handed_over_and_claimed_though_the_disk_was_full_at(full_at: int) -> None:
    point, theirs, ours = MemoryCoordination(), Disk(full_at), Disk(full_at)
    source = HandoverLease(SESSION, "source", point, theirs.keep)
    target = HandoverLease(SESSION, "target", point, ours.keep)
    await source.hold(1)
    await persistently(theirs, lambda: source.release(MOVE))
    released = await source.look()
    assert released is not None and released.released and released.successor == MOVE
    assert await persistently(ours, lambda: target.inherit(1, MOVE)) in (2, 3)  # 2 may be skipped
    assert await source.inherit(1) == 0  # the source is too late


@pytest.mark.parametrize("full_at", range(1, 4))
async def test_it_is_taken_back_though_the_disk_was_full_at(full_at: int) -> None:
    point, disk = MemoryCoordination(), Disk()
    source = HandoverLease(SESSION, "source", point, disk.keep)
    await source.hold(1)
    await source.release(MOVE)
    disk.full_at, disk.calls = full_at, 0
    assert await persistently(disk, lambda: source.inherit(1)) in (2, 3)
