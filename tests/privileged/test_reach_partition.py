"""A host that is alive and cut off, in a network of its own: its pinned sessions run on and can be
attached to there; its re-homeable ones are frozen within their lease, and nobody is led to them; it
carries on if it is back in time, else in a new epoch only. Seen from the clients' side, there is
never more than one incarnation to attach to."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.reached import Guests, ReachedHost, plain_relay
from holdfast.adapters.halt import cgroup
from holdfast.adapters.signing import SigningKey
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import LeaseStep
from holdfast.host.coordination_point import CoordinationPoint, terms_of
from holdfast.host.session.lease import BootClock
from holdfast.host.session.lease_runner import LeaseRunner
from holdfast.model.errors import Fenced, HoldfastError
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord
from holdfast.sdk.client import Host
from holdfast.sdk.reach.machines import Machine
from holdfast.wire import relay_messages as r
from holdfast.wire.messages import session as m
from privileged.islands import Island, Wire, nats_at, needs_networks
from privileged.leasing import (
    counts,
    locked,
    moved_s,
    needs_contained,
    size,
    soon,
    stands_still,
)
from process.commanding import PATIENCE_S
from process.relaying import RelayProcess, at

pytestmark = pytest.mark.skipif(
    bool(needs_contained() or needs_networks()), reason=needs_contained() or needs_networks()
)

SHORT_S, LONG_S = 5.0, 15.0  # leases


class Seen(NamedTuple):
    """That somebody elsewhere could attach: when it began to try, when it had, and to what."""

    began: float
    ended: float
    epoch: int


class Visitor(threading.Thread):
    """Attaches from elsewhere, again and again."""

    def __init__(self, machine: Machine, session: str) -> None:
        super().__init__(daemon=True)
        self._machine, self._session = machine, session
        self.seen: list[Seen] = []
        self.failed: set[str] = set()
        self.stop = threading.Event()

    def run(self) -> None:
        client: Host | None = None
        number = 0
        while not self.stop.wait(0.02):
            began = time.monotonic()
            try:
                client = client or Host(self._machine)
                connection, number = client.connection, number + 1
                request = m.Attach(connection.next_id(), self._session, number, observe=True)
                answer = connection.ask(request, 12)
                assert isinstance(answer, m.Attached)
                self.seen.append(Seen(began, time.monotonic(), answer.info.epoch))
                connection.ask(m.Detach(connection.next_id(), number), 12)
            except HoldfastError as error:
                self.failed.add(error.code)
                if client is not None:
                    client.close()
                client = None
        if client is not None:
            client.close()

    def sees(self, epoch: int) -> bool:
        return any(seen.epoch == epoch for seen in list(self.seen))


class Scene:
    """The island, what is on this side of it, and sessions of both kinds."""

    def __init__(self, directory: Path, guests: Guests, lease_s: float) -> None:
        self.wire = Wire()
        self.nats = nats_at(directory, self.wire.here)
        self.nats.start()
        self.relay = RelayProcess("--plain", listen=f"{self.wire.here}:0")
        self.terms = terms_of("nats://x", lease_s)
        self.lease_s = lease_s
        self.host = Island(self.wire, self.relay, self.nats.nodes[0], lease_s)
        self.host.up()
        self.moves, self.stays = self.host.counting("r", "--rehomeable"), self.host.counting("p")
        link = self.host.ok("invite", "--role", "execute", "--all", "--no-qr", "--uses", "9")
        (found,) = (word for word in link.split() if "/i#" in word)
        self.machine = guests.join(found, "visitor")
        self.visitors = [Visitor(self.machine, "r") for _ in range(2)]
        for visitor in self.visitors:
            visitor.start()
        soon(lambda: all(each.sees(1) for each in self.visitors), "nobody can attach")

    def close(self) -> None:
        for visitor in self.visitors:
            visitor.stop.set()
        self.wire.heal()
        for visitor in self.visitors:
            visitor.join(60)
        self.host.close()
        self.relay.__exit__(None, None, None)
        self.nats.stop()
        self.wire.close()

    def seen(self) -> list[Seen]:
        return sorted(seen for visitor in self.visitors for seen in visitor.seen)


@contextmanager
def scene(directory: Path, guests: Guests, lease_s: float) -> Iterator[Scene]:
    with closing(Scene(directory, guests, lease_s)) as made:
        yield made


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guests]:
    made = Guests(monkeypatch)
    yield made
    made.close()


@pytest.mark.requirement("F1", "F2", "F5", "S4")
def test_a_partition_that_heals_before_the_lapse_costs_a_wait(
    tmp_path: Path, guests: Guests
) -> None:
    with scene(tmp_path, guests, LONG_S) as made:
        host = made.host
        made.wire.cut()
        soon(lambda: host.lease("r")["left_s"] < LONG_S / 2, "it is renewed all the same")
        counts(made.moves)
        host.ok("send", "r", "x")  # from here it can be used all the time
        made.wire.heal()
        healed = time.monotonic()
        soon(lambda: host.lease("r")["left_s"] > LONG_S / 2, "it is not renewed again")
        soon(lambda: made.seen()[-1].began > healed, "nobody is led there again")
        assert host.epoch("r") == 1 and "lost the session's lease" not in host.ok("log", "r")
        assert {seen.epoch for seen in made.seen()} == {1}


@pytest.mark.requirement("F1", "F2", "F5", "S4")
def test_a_partition_that_outlasts_the_lease_freezes_it_and_only_a_new_epoch_runs_on(
    tmp_path: Path, guests: Guests
) -> None:
    with scene(tmp_path, guests, SHORT_S) as made:
        host, group = made.host, made.host.group("r")
        made.wire.cut()
        cut, cut_at = time.monotonic(), time.time()
        soon(lambda: cgroup.frozen(group), "it is not frozen")
        late = moved_s(made.moves, cut_at) >= made.terms.wait_s(SHORT_S)
        assert not late, "another could have had it by then"
        assert stands_still(made.moves)
        for asked in ("send r x", "tail r", "keys r Enter"):
            host.fails("fenced", *asked.split())
        # What is pinned asks nobody.
        counts(made.stays)
        host.ok("send", "p", "x")
        with Host(f"{host.home}/run/hold.sock") as here:
            answer = here.ask(m.Attach(0, "p", 1), m.Attached)
            assert answer.info.epoch == 1
        during = [seen for seen in made.seen() if seen.began > cut]
        assert during == [], "somebody was led there through a wire that is cut"
        made.wire.heal()
        soon(lambda: host.epoch("r") == 2, "no new epoch")
        counts(made.moves)
        soon(lambda: all(each.sees(2) for each in made.visitors), "nobody is led to epoch 2")
        seen = made.seen()
        assert [each.epoch for each in seen] == sorted(each.epoch for each in seen)
        # An answer may have been under way all the time; nobody got one who asked since.
        assert max(each.began for each in seen if each.epoch == 1) < cut
        assert host.epoch("p") == 1


@pytest.mark.requirement("F1", "F2", "F5")
def test_what_another_host_took_over_meanwhile_is_never_led_to_again(
    tmp_path: Path, guests: Guests
) -> None:
    with scene(tmp_path, guests, SHORT_S) as made:
        host, group = made.host, made.host.group("r")
        session = SessionId(host.json("show", "r")["id"])
        made.wire.cut()
        soon(lambda: cgroup.frozen(group), "it is not frozen")
        before = size(made.moves)
        asyncio.run(_take_over(made, session))
        # Whoever asks the relay now is led to the other one, while the first is still away.
        key = SigningKey(Path(host.home, "sessions", session, "session.key").read_bytes())

        async def elsewhere() -> None:
            async with at(made.relay) as dialler:
                other = await dialler.host()
                assert (await other.announce((key, 2))).refused == ()
                operator = await dialler.operator()
                assert (await operator.open(session)).host == other.key.public
                made.wire.heal()
                noticed = asyncio.create_task(asyncio.to_thread(_is_noticed, host))
                while not noticed.done():
                    opened = await operator.open(session)
                    assert (opened.host, opened.epoch) == (other.key.public, 2)
                    await operator.say(r.Close(opened.stream))
                    await asyncio.sleep(0.05)  # as often as an address may
                await noticed

        asyncio.run(elsewhere())
        host.fails("fenced", "send", "r", "x")
        assert size(made.moves) == before and cgroup.frozen(group)
        assert {seen.epoch for seen in made.seen()} == {1}, "nobody was led back"
        counts(made.stays)


@pytest.mark.requirement("F2")
def test_whoever_asks_from_elsewhere_for_a_fenced_one_is_told_that_it_is(guests: Guests) -> None:
    relay = plain_relay()
    host = ReachedHost([relay], f"lease_s = {SHORT_S}\n")
    try:
        machine = guests.join(host.up().link(), "visitor")
        with host.client() as here, Host(machine) as there:
            session = here.run(["cat"], rehomeable=True).id
            there.send(session, "before")
            with locked(host.home / "registry.sqlite"):
                soon(lambda: here.show(session).state == "halted", "it is not fenced")
                for _ in range(2):
                    with pytest.raises(Fenced), Host(machine) as visitor:
                        visitor.send(session, "meanwhile")
            soon(lambda: here.show(session).epoch == 2, "no new epoch")
            with Host(machine) as visitor:
                visitor.send(session, "after")
                text = visitor.screen(session).text
            assert "before" in text and "meanwhile" not in text
    finally:
        host.down()
        relay.close()


def _is_noticed(host: Island) -> None:
    """The first host is back, and knows."""
    soon(host.is_reached, "it does not get back to its relay")
    soon(lambda: host.lease("r")["state"] == "taken", "it is not noticed")


class _Taker:
    """Another host's, told what becomes of the lease it wants."""

    def acquired(self, epoch: int, until: float) -> None:
        assert epoch == 2

    def renewed(self, until: float) -> None: ...

    def lost(self, step: LeaseStep) -> None: ...

    def taken(self, by: LeaseRecord) -> None: ...

    def save(self) -> None: ...


async def _take_over(made: Scene, session: SessionId) -> None:
    """Another host waits for the lease by the rules, and has it from then on."""
    point = CoordinationPoint(made.host.coordination, "")
    lease = Lease(session, "other", "another life", made.terms)
    runner = LeaseRunner(lease, point, BootClock(), _Taker())
    assert await runner.acquire(PATIENCE_S)
    runner.close()  # as it stands at the coordination point; it lapses if nobody goes on with it
    await point.close()
