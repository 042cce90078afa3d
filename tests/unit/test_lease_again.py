"""A re-homeable session that comes back gets its lease again (F1, F3): at once if only this host
can have had it, on somebody's word if another host may have it, and else not at all."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from holdfast.adapters.memory.coordination import MemoryCoordination
from holdfast.host.coordination_point import CoordinationPoint
from holdfast.host.session.lease import HostLeases, SessionLease
from holdfast.model.errors import Fenced
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.lease import EMBEDDED, LeaseRecord
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease

SESSION = SessionId("0" * 26)
OWN = bytes(32)
OTHER = (b"\1" * 32).hex()


async def again(
    store: MemoryCoordination, *, before: int = 3, host_is_dead: bool = False
) -> SessionLease:
    point = cast(CoordinationPoint, store)
    leases = HostLeases(EMBEDDED, point, cast(Home, None), OWN)
    return await leases.acquire_again(SESSION, "tag", before, "ann", host_is_dead=host_is_dead)


async def stored(record: LeaseRecord | None) -> MemoryCoordination:
    store = MemoryCoordination()
    if record is not None:
        await store.cas(lease_key(SESSION), pack_lease(record), 0)
    return store


async def written(store: MemoryCoordination) -> LeaseRecord | None:
    return unpack_lease((await store.get(lease_key(SESSION))).value)


def record(owner: str, epoch: int, **more: Any) -> LeaseRecord:
    return LeaseRecord(SESSION, owner, "an incarnation", epoch, 10.0, **more)


@pytest.mark.requirement("F1", "F3")
async def test_what_this_host_held_itself_is_held_again_without_waiting_for_itself() -> None:
    store = await stored(record(OWN.hex(), 5))
    async with asyncio.timeout(3):
        leasing = await again(store)
    assert leasing.runner.epoch == 6
    found = await written(store)
    assert found is not None and found.forced_by == HOST_ACTOR and found.reason
    leasing.close()


@pytest.mark.requirement("F3")
async def test_the_epoch_is_above_what_record_and_journal_know() -> None:
    leasing = await again(await stored(record(OWN.hex(), 2, released=True)), before=7)
    assert leasing.runner.epoch == 8
    leasing.close()


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    "found",
    [
        record(OTHER, 4),
        record(OTHER, 4, released=True),  # it lived there; what is here is older
        record(OWN.hex(), 4, released=True, successor="the next"),
        None,  # absence proves nothing
    ],
)
async def test_what_another_host_may_have_is_taken_only_on_somebodys_word(
    found: LeaseRecord | None,
) -> None:
    store = await stored(found)
    with pytest.raises(Fenced, match="lease") as refused:
        await again(store)
    assert "--i-know-the-host-is-dead" in refused.value.hint
    assert await written(store) == found, "nothing was touched"
    leasing = await again(store, host_is_dead=True)
    assert leasing.runner.epoch == (5 if found else 4)
    by, entry = leasing.held_again(3)
    assert by == "ann" and entry.before == 3 and "dead" in entry.reason
    forced = await written(store)
    assert forced is not None and (forced.owner, forced.forced_by) == (OWN.hex(), "ann")
    leasing.close()
