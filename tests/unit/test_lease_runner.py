"""How a host holds a re-homeable session, with a virtual clock and a store that can be cut off: as
long as it may, not a moment longer, and never again once another has it (F1-F3)."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.adapters.memory.coordination import MemoryCoordination
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import LeaseStep
from holdfast.host.coordination_point import nats_urls, terms_of
from holdfast.host.session.lease_runner import LeaseRunner, SavedLeaseRun, first_lease
from holdfast.model.errors import CoordinationDown, InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.lease import CLUSTER, EMBEDDED, LeaseRecord
from holdfast.ports.coordination import CasLost, CasUnknown, StoredValue, Written
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease
from unit.virtual_time import VirtualClock, VirtualLoop, run

pytestmark = pytest.mark.loop(factory=VirtualLoop)

SESSION = SessionId("0" * 26)
TERMS = terms_of("", 10.0)
USABLE_S, WAIT_S = TERMS.usable_s(), TERMS.wait_s(10.0)
CALL_S = 2.0


class Wire:
    """One host's way to the shared store. Cut: nothing comes through. Deaf: what is written
    arrives, and its answer does not."""

    def __init__(self, store: MemoryCoordination) -> None:
        self.store = store
        self.cut = self.deaf = False

    async def get(self, key: str) -> StoredValue:
        if self.cut:
            await asyncio.sleep(CALL_S)
            raise CoordinationDown("cut off")
        return await self.store.get(key)

    async def cas(self, key: str, value: bytes, revision: int) -> Written | CasLost | CasUnknown:
        if not self.cut:
            done = await self.store.cas(key, value, revision)
            if not self.deaf:
                return done
        await asyncio.sleep(CALL_S)
        return CasUnknown("cut off")


class Slow(Wire):
    """Only the first write is answered at once; the second is done but answered when told so, the
    third is not even done."""

    def __init__(self, store: MemoryCoordination) -> None:
        super().__init__(store)
        self.began = [asyncio.Event() for _ in range(3)]
        self.answer = [asyncio.Event() for _ in range(3)]
        self.answer[0].set()
        self._count = 0

    async def cas(self, key: str, value: bytes, revision: int) -> Written | CasLost | CasUnknown:
        number, self._count = self._count, self._count + 1
        self.began[number].set()
        done = await self.store.cas(key, value, revision) if number < 2 else CasLost()
        await self.answer[number].wait()
        return done


class Host:
    """What it was told, and when."""

    def __init__(self, name: str, store: MemoryCoordination) -> None:
        self.name, self.clock, self.wire = name, VirtualClock(), Wire(store)
        self.story: list[tuple[str, float]] = []
        self.changed = asyncio.Event()
        self.saved: SavedLeaseRun | None = None
        self.runner: LeaseRunner

    def newborn(self) -> Host:
        self.runner = LeaseRunner(
            first_lease(SESSION, self.name, TERMS), self.wire, self.clock, self
        )
        return self

    def challenger(self) -> Host:
        lease = Lease(SESSION, self.name, f"life of {self.name}", TERMS)
        self.runner = LeaseRunner(lease, self.wire, self.clock, self)
        return self

    def restarted(self) -> None:
        """A new daemon, which knows what was kept and nothing else."""
        assert self.saved is not None
        kept = SavedLeaseRun.unpack(self.saved.pack())
        self.runner.close()
        self.runner = LeaseRunner.of(kept, self.wire, self.clock, self)
        self.runner.carry_on()

    async def until(self, what: str) -> float:
        """When it was told so; at most two leases from now."""
        before = len(self.story)
        async with asyncio.timeout(2 * WAIT_S + 10):
            while not any(word == what for word, _ in self.story[before:]):
                self.changed.clear()
                await self.changed.wait()
        return next(at for word, at in self.story[before:] if word == what)

    def words(self) -> list[str]:
        return [word for word, _ in self.story]

    # -- as Told ----------------------------------------------------------------------------------

    def acquired(self, epoch: int, until: float) -> None:
        self._tell(f"epoch {epoch}")

    def renewed(self, until: float) -> None:
        self.save()

    def lost(self, step: LeaseStep) -> None:
        self._tell(step)

    def taken(self, by: LeaseRecord) -> None:
        self._tell(f"taken by {by.owner}")

    def save(self) -> None:
        self.saved = self.runner.kept()

    def _tell(self, word: str) -> None:
        self.save()
        self.story.append((str(word), self.clock.now()))
        self.changed.set()


async def held() -> tuple[Host, MemoryCoordination]:
    store = MemoryCoordination()
    host = Host("a", store).newborn()
    assert await host.runner.acquire(5.0)
    return host, store


async def record(store: MemoryCoordination) -> LeaseRecord:
    found = unpack_lease((await store.get(lease_key(SESSION))).value)
    assert found is not None
    return found


@pytest.mark.requirement("F2")
async def test_it_is_renewed_for_as_long_as_the_store_answers() -> None:
    host, _ = await held()
    for _ in range(100):
        await asyncio.sleep(3.0)
        assert host.runner.judge()
    assert host.words() == ["epoch 1"]


@pytest.mark.requirement("F2")
async def test_one_that_cannot_renew_stops_before_the_lease_can_be_taken() -> None:
    host, _ = await held()
    await asyncio.sleep(5.0)
    host.wire.cut = True
    cut_at = host.clock.now()
    fenced_at = await host.until(LeaseStep.LAPSE)
    assert cut_at + USABLE_S - TERMS.renew_s - 0.01 <= fenced_at <= cut_at + USABLE_S
    assert not host.runner.judge()
    await asyncio.sleep(100.0)
    assert host.words() == ["epoch 1", "lapse"]


@pytest.mark.requirement("F2")
async def test_an_interruption_shorter_than_the_lease_is_not_noticed() -> None:
    host, _ = await held()
    for _ in range(20):
        host.wire.cut = True
        await asyncio.sleep(USABLE_S - TERMS.renew_s - 2 * CALL_S)
        host.wire.cut = False
        await asyncio.sleep(2 * CALL_S)
        assert host.runner.judge()
    assert host.words() == ["epoch 1"]


@pytest.mark.requirement("F2", "F3")
async def test_after_the_lapse_it_goes_on_in_a_new_epoch_and_without_the_wait() -> None:
    host, store = await held()
    host.wire.cut = True
    await host.until(LeaseStep.LAPSE)
    await asyncio.sleep(50.0)
    host.wire.cut = False
    healed_at = host.clock.now()
    again_at = await host.until("epoch 2")
    assert again_at - healed_at <= CALL_S + TERMS.retry_s
    assert host.runner.judge() and host.runner.epoch == 2
    assert (await record(store)).epoch == 2


@pytest.mark.requirement("F2")
async def test_a_lease_that_ran_out_while_the_machine_slept_is_not_acted_on_at_all() -> None:
    host, _ = await held()
    assert host.runner.judge()
    host.clock.slept = 60.0  # and no alarm has rung yet
    assert not host.runner.judge()
    assert host.words() == ["epoch 1", "lapse"]


@pytest.mark.requirement("F1", "F3")
async def test_once_another_host_has_it_what_stands_still_here_never_runs_again() -> None:
    host, store = await held()
    other = Host("b", store).challenger()
    host.wire.cut = True
    fenced = asyncio.create_task(host.until(LeaseStep.LAPSE))
    assert await other.runner.acquire(2 * WAIT_S)
    assert other.story[-1][1] > await fenced
    assert other.words() == ["epoch 2"]
    host.wire.cut = False
    await host.until("taken by b")
    other.runner.release()  # that changes nothing: it went on there, not here
    async with asyncio.timeout(5.0):
        await other.runner.settled.wait()
    assert (await record(store)).released
    host.restarted()
    await asyncio.sleep(10 * WAIT_S)
    assert host.words() == ["epoch 1", "lapse", "taken by b"]
    assert not host.runner.judge()


@pytest.mark.requirement("F2")
async def test_where_the_store_forgot_all_only_somebodys_word_brings_it_back() -> None:
    host, store = await held()
    with pytest.raises(InvalidArgument, match="is held"):
        await host.runner.force("ada", "because", 5.0)
    store.store.entries.clear()
    await host.until(LeaseStep.REFUSED)
    await asyncio.sleep(10 * WAIT_S)
    assert host.words() == ["epoch 1", "refused"], "absence proves nothing, however long"
    with pytest.raises(InvalidArgument, match="needs a reason"):
        await host.runner.force("ada", "", 5.0)
    assert await host.runner.force("ada", "no other host has it", 5.0)
    assert host.words() == ["epoch 1", "refused", "epoch 2"]
    written = await record(store)
    assert (written.epoch, written.forced_by, written.reason) == (
        2, "ada", "no other host has it",
    )  # fmt: skip


@pytest.mark.requirement("F1", "F2")
async def test_a_word_is_not_enough_where_another_host_is_found_or_nobody_answers() -> None:
    host, store = await held()
    store.store.entries.clear()
    await host.until(LeaseStep.REFUSED)
    host.wire.cut = True
    host.restarted()
    with pytest.raises(CoordinationDown):
        await host.runner.force("ada", "no other host has it", 5.0)
    host.wire.cut = False
    await asyncio.sleep(WAIT_S)
    host.wire.cut = True
    assert not await host.runner.force("ada", "no other host has it", 5.0)
    # Another was believed first: what was attested here is not so any more.
    taken = LeaseRecord(SESSION, "b", "life of b", 2, 10.0)
    store.store.put(lease_key(SESSION), pack_lease(taken), None)
    host.wire.cut = False
    await host.until("taken by b")
    with pytest.raises(InvalidArgument, match="lives elsewhere"):
        await host.runner.force("ada", "it must", 5.0)
    assert not host.runner.judge()


@pytest.mark.requirement("F1")
def test_two_hosts_that_are_cut_off_in_turn_never_hold_it_together() -> None:
    async def story() -> None:
        host, store = await held()
        other = Host("b", store).challenger()
        taking = asyncio.create_task(other.runner.acquire(1000.0))
        both = 0

        async def watch() -> None:
            nonlocal both
            while True:
                both += host.runner.usable() and other.runner.usable()
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        for pause_s in (1.0, 3.0, 6.0, 8.0, 8.8, 9.5, 30.0):
            host.wire.cut = True
            await asyncio.sleep(pause_s)
            host.wire.cut = False
            await asyncio.sleep(5.0)
        assert await taking
        watching.cancel()
        assert both == 0
        assert "taken by b" in host.words()

    run(story)


async def test_an_answer_that_comes_after_the_lapse_is_not_taken_for_another_ones() -> None:
    host = Host("a", MemoryCoordination())
    host.wire = slow = Slow(host.wire.store)
    host.newborn()
    assert await host.runner.acquire(5.0)
    await host.until(LeaseStep.LAPSE)  # the renewal is done, and not answered
    await slow.began[2].wait()  # the claim of the next life is under way
    slow.answer[1].set()
    await asyncio.sleep(0.1)
    assert not host.runner.usable()
    assert (await record(slow.store)).epoch == 1


@pytest.mark.requirement("F1")
async def test_a_store_that_lost_its_memory_gives_nothing_back() -> None:
    host, _ = await held()
    host.wire.cut = True
    await host.until(LeaseStep.LAPSE)
    host.wire.store = MemoryCoordination()
    host.wire.cut = False
    await asyncio.sleep(10 * WAIT_S)
    assert host.words() == ["epoch 1", "lapse"]


async def test_a_write_that_arrived_without_its_answer_is_no_ones_but_ours() -> None:
    host, store = await held()
    host.wire.deaf = True
    await host.until(LeaseStep.LAPSE)
    await asyncio.sleep(30.0)  # it writes that it has it again, and does not know it
    assert (await record(store)).epoch > 1
    host.wire.deaf = False
    async with asyncio.timeout(10.0):
        while not host.runner.judge():
            await asyncio.sleep(0.1)
    assert host.runner.epoch == (await record(store)).epoch
    assert not [word for word in host.words() if word.startswith("taken")]


async def test_a_new_daemon_carries_the_same_lease_on() -> None:
    host, store = await held()
    for _ in range(20):
        await asyncio.sleep(2.7)
        host.restarted()
        assert host.runner.judge()
    await asyncio.sleep(30.0)
    assert host.runner.judge()
    assert host.words() == ["epoch 1"]
    assert (await record(store)).epoch == 1


async def test_a_new_daemon_that_comes_too_late_finds_it_lost_and_takes_it_again() -> None:
    host, _ = await held()
    host.runner.close()
    await asyncio.sleep(USABLE_S + 0.1)
    host.restarted()
    assert not host.runner.usable()
    assert host.words() == ["epoch 1", "lapse"]
    await host.until("epoch 2")


async def test_a_fenced_one_stays_fenced_over_a_new_daemon() -> None:
    host, _ = await held()
    host.wire.cut = True
    await host.until(LeaseStep.LAPSE)
    host.restarted()
    assert not host.runner.judge()
    await asyncio.sleep(5.0)
    host.wire.cut = False
    await host.until("epoch 2")


async def test_the_end_is_said_so_that_nobody_waits() -> None:
    host, store = await held()
    host.runner.release()
    async with asyncio.timeout(1.0):
        await host.runner.settled.wait()
    assert (await record(store)).released
    other = Host("b", store).challenger()
    assert await other.runner.acquire(1.0)
    assert other.words() == ["epoch 2"]


async def test_without_a_store_nothing_is_acquired_and_nothing_waits_for_ever() -> None:
    host = Host("a", MemoryCoordination()).newborn()
    host.wire.cut = True
    began = host.clock.now()
    assert not await host.runner.acquire(5.0)
    assert host.clock.now() - began == pytest.approx(5.0)
    host.runner.close()


async def test_a_damaged_record_is_never_taken_for_none() -> None:
    host, store = await held()
    entry = await store.get(lease_key(SESSION))
    assert isinstance(await store.cas(entry.key, b"\xc1", entry.revision), Written)
    await host.until(LeaseStep.REFUSED)
    await asyncio.sleep(100.0)
    assert host.words() == ["epoch 1", "refused"]


async def test_a_record_forced_by_somebody_ousts_who_held_it() -> None:
    host, store = await held()
    entry = await store.get(lease_key(SESSION))
    forced = LeaseRecord(SESSION, "c", "life of c", 2, None, forced_by="ann", reason="gone")
    assert isinstance(await store.cas(entry.key, pack_lease(forced), entry.revision), Written)
    await host.until("taken by c")
    assert host.words()[:2] in (["epoch 1", "refused"], ["epoch 1", "ousted"])


# -- settings ---------------------------------------------------------------------------------


def test_the_times_fit_the_store_unless_they_are_set() -> None:
    assert terms_of("", None) == EMBEDDED
    assert terms_of("nats://a:4222", None) == CLUSTER
    assert terms_of("", 3.0).length_s == 3.0
    with pytest.raises(InvalidArgument):
        terms_of("", 0.0)


@pytest.mark.parametrize(
    "setting",
    ["nats://", "nats://a/b", "redis://a", "sqlite:relative", "nats://a,redis://b", "tls://"],
)
def test_a_setting_that_names_no_store_is_an_error(setting: str) -> None:
    with pytest.raises(InvalidArgument, match="names no coordination point"):
        nats_urls(setting)


def test_servers_are_named_one_by_one() -> None:
    assert nats_urls("nats://a:4222,b:4222") == ["nats://a:4222", "nats://b:4222"]
    assert nats_urls("tls://u:p@a:4222,b:4222") == ["tls://u:p@a:4222", "tls://u:p@b:4222"]
    assert nats_urls("sqlite:/x/y") == [] and nats_urls("") == []
