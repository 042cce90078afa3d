"""The relay's rules without a network: floors, rates, limits, and its document."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from holdfast import relay
from holdfast.adapters.memory.coordination import MemoryCoordination, MemoryStore
from holdfast.model import limits
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.ports.coordination import CasLost, CasUnknown, Written
from holdfast.relay.address_rate import AddressRate, network_of
from holdfast.relay.epoch_floors import Floor, Floors, MemoryFloors, SharedFloors
from holdfast.relay.limits import Bounds, bounds_of
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Answer, Request
from unit import documented

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "relay.md").read_text(encoding="utf-8")
SECTIONS = documented.sections(TEXT)
A, B = b"a" * 32, b"b" * 32
SESSION = SessionId.of_key(A)


# -- floors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: MemoryFloors(10), lambda: SharedFloors(MemoryCoordination())]
)
async def test_a_floor_rises_and_never_falls_and_an_epoch_keeps_its_host(make: object) -> None:
    floors: Floors = make()  # type: ignore[operator]
    assert await floors.rise(SESSION, 2, A) == Floor(2, A)
    assert await floors.rise(SESSION, 1, B) == Floor(2, A)
    assert await floors.rise(SESSION, 2, B) == Floor(2, A)
    assert await floors.rise(SESSION, 3, B) == Floor(3, B)
    assert not (await floors.rise(SESSION, 2, A)).admits(2, A)


async def test_a_relay_hears_of_a_floor_that_rose_at_another() -> None:
    store = MemoryStore()
    here, there = (SharedFloors(MemoryCoordination(store)) for _ in range(2))
    await here.rise(SESSION, 1, A)
    heard = here.risen()
    assert await anext(heard) == (SESSION, Floor(1, A))
    waiting = asyncio.ensure_future(anext(heard))
    await there.rise(SESSION, 2, B)
    assert await asyncio.wait_for(waiting, 5) == (SESSION, Floor(2, B))


async def test_a_floor_heard_to_rise_while_another_is_being_written_counts() -> None:
    """The write of epoch 5 is done, but its answer comes after the news of 6: 5 is not routed."""

    class Slow(MemoryCoordination):
        answer = asyncio.Event()

        async def cas(
            self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
        ) -> Written | CasLost | CasUnknown:
            done = await super().cas(key, value, revision, gone_after_s=gone_after_s)
            await self.answer.wait()
            return done

    store = MemoryStore()
    here, there = SharedFloors(Slow(store)), SharedFloors(MemoryCoordination(store))
    heard = here.risen()
    first = asyncio.ensure_future(anext(heard))
    rising = asyncio.ensure_future(here.rise(SESSION, 5, A))
    assert await asyncio.wait_for(first, 5) == (SESSION, Floor(5, A))
    await there.rise(SESSION, 6, B)
    assert await asyncio.wait_for(anext(heard), 5) == (SESSION, Floor(6, B))
    Slow.answer.set()
    floor = await rising
    assert floor == here.known(SESSION) == Floor(6, B)
    assert not floor.admits(5, A)


async def test_what_is_no_floor_at_the_coordination_point_is_passed_over() -> None:
    store = MemoryCoordination()
    await store.cas("relay_floors.by-hand", b"what is this", 0)
    await store.cas(f"relay_floors.{SESSION}", b"short", 0)
    floors = SharedFloors(store)
    heard = asyncio.ensure_future(anext(floors.risen()))
    assert await floors.rise(SESSION, 3, A) == Floor(3, A)
    assert await asyncio.wait_for(heard, 5) == (SESSION, Floor(3, A))


async def test_two_relays_never_give_one_epoch_to_two_hosts() -> None:
    store = MemoryStore()
    relays = [SharedFloors(MemoryCoordination(store)) for _ in range(8)]
    hosts = [bytes([n]) * 32 for n in range(8)]
    found = await asyncio.gather(
        *(one.rise(SESSION, 5, host) for one, host in zip(relays, hosts, strict=True))
    )
    assert sum(f.admits(5, host) for f, host in zip(found, hosts, strict=True)) == 1


async def test_the_oldest_floor_goes_when_there_are_too_many() -> None:
    floors = MemoryFloors(2)
    ids = [SessionId.of_key(bytes([n])) for n in range(3)]
    for session in ids:
        await floors.rise(session, 9, A)
    assert await floors.rise(ids[2], 1, B) == Floor(9, A)
    assert await floors.rise(ids[0], 1, B) == Floor(1, B)


# -- rates ------------------------------------------------------------------------------------


def test_a_bucket_empties_and_fills_again() -> None:
    guard = AddressRate(burst=2, per_s=0.5, addresses_max=10)
    assert [guard.take("x", 0.0) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert guard.wait_s("x", 1.0) == 1.0
    assert guard.wait_s("y", 0.0) == 0.0
    assert guard.take("x", 2.0) == 0.0
    assert guard.take("x", 1.0) > 0  # a clock that went back gives nothing


def test_addresses_counted_are_bounded() -> None:
    guard = AddressRate(burst=1, per_s=1.0, addresses_max=2)
    for address in "abc":
        guard.take(address, 0.0)
    assert guard.wait_s("a", 0.0) == 0.0 and guard.wait_s("c", 0.0) > 0


def test_an_ipv6_network_is_one_address() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("10.0.0.2")


# -- settings and documents -------------------------------------------------------------------


def test_a_limit_can_be_changed_and_a_typo_is_seen() -> None:
    assert bounds_of(["hosts_max=5", "drain_s=0.5"]) == Bounds(hosts_max=5, drain_s=0.5)
    with pytest.raises(InvalidArgument):
        bounds_of(["host_max=5"])


def test_every_limit_is_documented_with_its_value() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| ([\d.]+) \|", SECTIONS["Limits"], re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == Bounds._defaults
    named = {name for name in vars(limits) if name.startswith("RELAY_")}
    assert {f"RELAY_{name.upper()}" for name in Bounds._fields} == named


@pytest.mark.parametrize("tag", r.BY_TAG)
def test_a_message_is_documented_field_by_field(tag: str) -> None:
    kind = r.BY_TAG[tag]
    asked = issubclass(kind, Request | Answer)
    expected = documented.expected_rows(kind, without=("id",) if asked else ())
    assert documented.rows(SECTIONS[tag]) == expected


def test_every_reason_is_documented() -> None:
    assert all(f"`{why}`" in SECTIONS["Reasons"] for why in r.Why)


def test_what_is_signed_is_what_the_document_says() -> None:
    assert r.host_text(bytes(32), "relay:1") == b"holdfast relay host v1\0" + bytes(32) + b"relay:1"
    text = b"holdfast relay session v1\0" + SESSION.encode() + A + (7).to_bytes(8)
    assert r.session_text(SESSION, A, 7) == text
    assert '`"holdfast relay host v1" 0`' in TEXT and '`"holdfast relay session v1" 0`' in TEXT


def test_the_package_says_what_each_of_its_files_is_for() -> None:
    said = str(relay.__doc__)
    directory = Path(str(relay.__file__)).parent
    files = {path.name for path in directory.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"\w+\.py", said)) == files
