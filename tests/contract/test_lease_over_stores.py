"""The lease machine over each real store, in real time (F1-F3)."""

from __future__ import annotations

import asyncio

from contract.leasing import TERMS, Runner, now
from contract.stores import PATIENCE_S, Store
from holdfast.core.lease.table import HELD


async def within(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE_S)


async def test_a_host_that_is_cut_off_fences_itself_before_another_takes_over(store: Store) -> None:
    async with store.clients(2) as (one, other):
        old, new = Runner("old", one, born=True), Runner("new", other)
        old.want()
        await within(old.held)
        new.want()
        await asyncio.wait([asyncio.create_task(new.held.wait())], timeout=3 * TERMS.renew_s)
        assert not new.held.is_set(), "it is renewed, so nobody else gets it"
        assert old.lease.usable(now())
        old.connected.clear()
        cut = now()
        await within(old.fenced)
        assert not new.held.is_set()
        await within(new.held)
        assert new.lease.epoch > old.lease.epoch
        assert old.fenced_at < new.acquired_at
        assert new.acquired_at - cut < TERMS.wait_s(2.0) + TERMS.renew_s + 2.0
        old.connected.set()  # the network heals: what is over stays over
        await new.stop()
        await old.stop()
        assert not old.lease.usable(now())


async def test_a_cut_that_heals_in_time_is_not_noticed(store: Store) -> None:
    async with store.clients(1) as (one,):
        runner = Runner("one", one, born=True)
        runner.want()
        await within(runner.held)
        runner.connected.clear()
        await asyncio.wait([asyncio.create_task(runner.fenced.wait())], timeout=0.5)
        runner.connected.set()
        before = runner.lease.deadline
        while runner.lease.deadline == before and not runner.fenced.is_set():
            await asyncio.sleep(0.01)
        assert runner.lease.state is HELD
        assert runner.lease.epoch == 1
        await runner.stop()


async def test_a_release_hands_over_without_a_wait(store: Store) -> None:
    async with store.clients(2) as (one, other):
        old, new = Runner("old", one, born=True), Runner("new", other)
        old.want()
        await within(old.held)
        new.want()
        began = now()
        old.release()
        assert not old.lease.usable(now())
        await within(new.held)
        assert new.acquired_at - began < TERMS.usable_s()
        await within(old.released)
        await old.stop()
        await new.stop()
