"""The coordination port: one contract, shown on every adapter (F1, F5)."""

from __future__ import annotations

import asyncio
import random

import pytest

from contract.stores import PATIENCE_S, Appender, Store, check_history, run, written
from holdfast.adapters.memory.coordination import MemoryCoordination
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import COORDINATION_KEY_MAX_CHARS, COORDINATION_VALUE_MAX_BYTES
from holdfast.ports.coordination import CasLost, CasUnknown, Coordination, StoredValue, Written

WRITERS = 20


async def test_a_write_needs_the_revision_it_replaces(store: Store) -> None:
    async with store.clients(2) as (one, other):
        assert await one.get("lease.a") == StoredValue("lease.a", 0, None)
        first = await written(one, "lease.a", b"first", 0)
        assert first > 0
        assert await other.get("lease.a") == StoredValue("lease.a", first, b"first")
        assert await other.cas("lease.a", b"again", 0) == CasLost()
        second = await written(other, "lease.a", b"second", first)
        assert second > first
        assert await one.cas("lease.a", b"late", first) == CasLost()
        assert await one.get("lease.a") == StoredValue("lease.a", second, b"second")


async def test_keys_do_not_disturb_each_other(store: Store) -> None:
    async with store.clients(1) as (one,):
        at = {key: await written(one, key, b"1", 0) for key in ("a", "a.b", "a.b.c")}
        for key, revision in at.items():
            assert await one.get(key) == StoredValue(key, revision, b"1")
            await written(one, key, b"2", revision)


async def _race(clients: list[Coordination], rounds: int = 5) -> None:
    """All write at once over one revision, several times."""
    revision = 0
    for number in range(rounds):
        values = [f"round {number} writer {i}".encode() for i in range(len(clients))]
        outcomes = await asyncio.gather(
            *(
                client.cas("race", value, revision)
                for client, value in zip(clients, values, strict=True)
            )
        )
        winners = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Written)]
        unknown = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, CasUnknown)]
        assert len(winners) <= 1, f"{len(winners)} writers won revision {revision}"
        assert winners or unknown, "nobody won, and nobody could have"
        entry = await clients[0].get("race")
        assert entry.value in [values[i] for i in winners or unknown]
        assert entry.revision > revision
        revision = entry.revision


async def test_of_twenty_writers_over_one_revision_never_two_win(store: Store) -> None:
    async with store.clients(WRITERS) as clients:
        await _race(clients)


def test_nothing_acknowledged_is_lost_among_twenty_writers(store: Store) -> None:
    async def story() -> None:
        async with store.clients(WRITERS) as clients:
            appenders = [
                Appender(chr(ord("a") + number), client, "history")
                for number, client in enumerate(clients)
            ]

            async def three_times(appender: Appender) -> None:
                wins = 0
                while wins < 3:
                    wins += isinstance(await appender.append(), Written)

            await asyncio.gather(*map(three_times, appenders))
            assert await check_history(appenders) >= 3 * WRITERS

    run(story, PATIENCE_S * 2)


async def test_a_watch_tells_what_stands_and_ends_with_the_last_change(store: Store) -> None:
    async with store.clients(2) as (writer, watcher):
        revision = await written(writer, "w.k", b"0", 0)
        told = watcher.watch("w.k")
        assert await anext(told) == StoredValue("w.k", revision, b"0")

        async def to_the_last() -> list[StoredValue]:
            heard = []
            async for entry in told:
                heard.append(entry)
                if entry.value == b"50":
                    break
            return heard

        listening = asyncio.create_task(to_the_last())
        for number in range(1, 51):
            revision = await written(writer, "w.k", str(number).encode(), revision)
        heard = await asyncio.wait_for(listening, PATIENCE_S)
        revisions = [entry.revision for entry in heard]
        assert revisions == sorted(set(revisions))
        assert heard[-1] == StoredValue("w.k", revision, b"50")


async def test_a_watch_that_begins_before_there_is_anything_hears_of_it(store: Store) -> None:
    async with store.clients(2) as (writer, watcher):
        told = watcher.watch("w.k")
        first = asyncio.ensure_future(anext(told))
        done, _ = await asyncio.wait([first], timeout=0.3)
        assert not done, "there was nothing to tell"
        revision = await written(writer, "w.k", b"born", 0)
        entry = await asyncio.wait_for(first, PATIENCE_S)
        assert entry == StoredValue("w.k", revision, b"born")


async def test_a_watch_below_a_word_hears_of_keys_that_begin_with_it(store: Store) -> None:
    async with store.clients(1) as (one,):
        for key in ("lease.a", "leases", "lease", "host.a", "lease.b.c"):
            await written(one, key, b"x", 0)
        told = one.watch("lease", below=True)
        heard = [(await asyncio.wait_for(anext(told), PATIENCE_S)).key for _ in range(3)]
        assert heard == ["lease.a", "lease", "lease.b.c"]
        exact = one.watch("lease")
        assert (await asyncio.wait_for(anext(exact), PATIENCE_S)).key == "lease"


async def test_what_is_tidied_up_is_told_and_its_revision_does_not_come_back(store: Store) -> None:
    async with store.clients(2) as (one, watcher):
        first = await written(one, "here", b"x", 0, gone_after_s=1)
        kept = await written(one, "stays", b"x", 0)
        told = watcher.watch("here")
        assert (await asyncio.wait_for(anext(told), PATIENCE_S)).value == b"x"
        gone = await asyncio.wait_for(anext(told), PATIENCE_S)
        assert gone.value is None
        entry = await one.get("here")
        assert entry.value is None
        assert await one.cas("here", b"late", first) == CasLost()
        again = await written(one, "here", b"y", entry.revision)
        assert again > first
        assert (await one.get("stays")).revision == kept


async def test_a_write_without_an_end_takes_the_end_away(store: Store) -> None:
    """The pitfall of an update that keeps, or silently drops, the time to live."""

    async with store.clients(1) as (one,):
        first = await written(one, "k", b"1", 0, gone_after_s=1)
        other = await written(one, "timer", b"1", 0, gone_after_s=2)
        second = await written(one, "k", b"2", first)
        told = one.watch("timer")
        while (await asyncio.wait_for(anext(told), PATIENCE_S)).revision <= other:
            pass  # until what was to go a second later is gone
        assert await one.get("k") == StoredValue("k", second, b"2")


@pytest.mark.parametrize("key", ["", ".", "a..b", "a b", "a.*", "a.>", "ä", "a" * 201])
async def test_a_key_no_store_could_keep_is_refused(store: Store, key: str) -> None:
    assert COORDINATION_KEY_MAX_CHARS == 200

    async with store.clients(1) as (one,):
        with pytest.raises(InvalidArgument):
            await one.get(key)
        with pytest.raises(InvalidArgument):
            await one.cas(key, b"x", 0)
        with pytest.raises(InvalidArgument):
            await anext(one.watch(key))


async def test_the_largest_value_fits_and_a_larger_or_empty_one_is_refused(store: Store) -> None:
    async with store.clients(1) as (one,):
        revision = await written(one, "k", b"x" * COORDINATION_VALUE_MAX_BYTES, 0)
        for value in (b"x" * (COORDINATION_VALUE_MAX_BYTES + 1), b""):
            with pytest.raises(InvalidArgument):
                await one.cas("k", value, revision)
        assert (await one.get("k")).revision == revision


async def test_a_caller_that_is_cancelled_stops(store: Store) -> None:
    """At whatever moment of a call it is cancelled: a client library may lose that."""

    chance = random.Random(3)
    async with store.clients(1) as (one,):

        async def for_ever() -> None:
            while True:
                entry = await one.get("k")
                await one.cas("k", b"x", entry.revision)
                await anext(one.watch("k"))
                await asyncio.sleep(0)  # the twin in memory never waits

        for _ in range(60):
            task = asyncio.create_task(for_ever())
            for _ in range(chance.randrange(1, 40)):
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=PATIENCE_S)
            assert done, "the call went on"
            assert task.cancelled()


async def test_a_store_that_looks_before_it_writes_is_found_out() -> None:
    """The race can be lost: by a store whose comparison and write are two steps."""

    class Careless(MemoryCoordination):
        async def cas(
            self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
        ) -> Written | CasLost | CasUnknown:
            if (await self.get(key)).revision != revision:
                return CasLost()
            await asyncio.sleep(0)
            return Written(self.store.put(key, value, gone_after_s).revision)

    careless = Careless()
    with pytest.raises(AssertionError, match="writers won revision"):
        await _race([careless] * WRITERS)
