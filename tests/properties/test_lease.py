"""Three hosts, real times, clocks that drift, a network that loses, delays and reorders: never two
incarnations attachable, epochs only rise, and once things calm down somebody holds the session.

The exhaustive proof is `tests/simulation/test_fencing_model.py`, with two hosts and coarse clocks.
This walks at random through what that leaves out: more hosts, fractions, sights told late and in
the wrong order, daemons that restart with what they kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.lease.events import (
    Acquire,
    Acquired,
    LeaseEvent,
    LeaseTick,
    LeaseWritten,
    LookFailed,
    ReadRecord,
    RecordSeen,
    Release,
    Write,
    WriteLost,
    WriteUnknown,
)
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import FENCED, HELD, RELEASED
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms

SESSION = SessionId("0" * 26)
TERMS = LeaseTerms(4.0, 0.8, drift=0.05, grace_s=0.0, retry_s=0.3)
HOSTS, STEPS = 3, 250


class Host:
    """A machine with a clock of its own."""

    def __init__(self, number: int, kind: type[Lease], chance: random.Random) -> None:
        self.number, self.kind = number, kind
        self.clock = chance.uniform(0, 1000)
        self.lives = 0
        self.call = 0  # the one whose answer is awaited
        self.lease = self.fresh()

    def fresh(self) -> Lease:
        self.lives += 1
        self.call += 1
        return self.kind(SESSION, f"h{self.number}", f"h{self.number}.{self.lives}", TERMS)


class World:
    def __init__(self, seed: int, kind: type[Lease] = Lease) -> None:
        self.chance = random.Random(seed)
        self.revision = 1
        self.record: LeaseRecord | None = LeaseRecord(SESSION, "", "", 1, 4.0, released=True)
        self.told: list[tuple[int, LeaseRecord | None]] = [(1, self.record)]  # for late watches
        self.under_way: list[tuple[Host, int, ReadRecord | Write]] = []
        self.answers: list[tuple[Host, int, Callable[[float], LeaseEvent]]] = []
        self.hosts = [Host(number, kind, self.chance) for number in range(HOSTS)]
        self.highest = 1
        for host in self.hosts:
            self.give(host, Acquire(host.clock))

    def give(self, host: Host, event: LeaseEvent) -> None:
        for outcome in host.lease.handle(event):
            if isinstance(outcome, ReadRecord | Write):
                host.call += 1
                self.under_way.append((host, host.call, outcome))
            elif isinstance(outcome, Acquired):
                assert outcome.epoch > self.highest, "an epoch came twice"
                self.highest = outcome.epoch
        able = [host.number for host in self.hosts if host.lease.usable(host.clock)]
        assert len(able) <= 1, f"two attachable: {able}"

    # -- what may happen --------------------------------------------------------------------------

    def time(self, most_s: float = 1.5) -> None:
        real = self.chance.uniform(0, most_s)
        for host in self.hosts:
            host.clock += real * self.chance.uniform(1 - TERMS.drift, 1 + TERMS.drift)

    def tick(self) -> None:
        host = self.chance.choice(self.hosts)
        self.give(host, LeaseTick(host.clock))

    def serve(self) -> None:
        if not self.under_way:
            return
        host, call, request = self.under_way.pop(self.chance.randrange(len(self.under_way)))
        if isinstance(request, ReadRecord):
            revision, record = self.revision, self.record
            self.answers.append((host, call, lambda now: RecordSeen(now, revision, record)))
        elif request.revision == self.revision:
            self.revision, self.record = self.revision + 1, request.record
            self.told.append((self.revision, self.record))
            revision = self.revision
            self.answers.append((host, call, lambda now: LeaseWritten(now, revision)))
        else:
            self.answers.append((host, call, WriteLost))

    def answer(self) -> None:
        if self.answers:
            place = self.chance.randrange(len(self.answers))
            host, call, event = self.answers.pop(place)
            if host.call == call:
                self.give(host, event(host.clock))

    def silence(self) -> None:
        """A call's time is up. What was asked may be served yet."""
        host = self.chance.choice(self.hosts)
        if host.lease.doing:
            event = LookFailed if host.lease.doing == "look" else WriteUnknown
            host.call += 1
            self.give(host, event(host.clock))

    def watch(self) -> None:
        host, (revision, record) = self.chance.choice(self.hosts), self.chance.choice(self.told)
        self.give(host, RecordSeen(host.clock, revision, record))

    def lose(self) -> None:
        for lost in (self.under_way, self.answers):
            if lost and self.chance.random() < 0.5:
                lost.pop(self.chance.randrange(len(lost)))

    def renew_life(self) -> None:
        """A crash, or a new incarnation after a fence; or only the daemon restarts."""
        host = self.chance.choice(self.hosts)
        if host.lease.state not in (FENCED, RELEASED) and self.chance.random() < 0.5:
            host.call += 1
            host.lease = _again(host)
        else:
            host.lease = host.fresh()
            self.give(host, Acquire(host.clock))

    def release(self) -> None:
        host = self.chance.choice(self.hosts)
        if host.lease.state is HELD:
            self.give(host, Release(host.clock))

    def step(self) -> None:
        happens = self.chance.choices(
            [self.time, self.tick, self.serve, self.answer, self.silence, self.watch, self.lose,
             self.renew_life, self.release],
            [6, 6, 8, 8, 2, 2, 1, 1, 0.5],
        )  # fmt: skip
        happens[0]()

    def calm(self) -> bool:
        """Everything is answered at once from here on; whether somebody comes to hold it."""
        for host in self.hosts:
            if host.lease.state in (FENCED, RELEASED):
                host.lease = host.fresh()
                self.give(host, Acquire(host.clock))
            elif host.lease.doing:
                host.call += 1
                self.give(
                    host, (LookFailed if host.lease.doing == "look" else WriteUnknown)(host.clock)
                )
        for _ in range(400):
            while self.under_way or self.answers:
                self.serve()
                self.answer()
            if any(host.lease.usable(host.clock) for host in self.hosts):
                return True
            self.time(0.3)
            for host in self.hosts:
                self.give(host, LeaseTick(host.clock))
        return False


def _again(host: Host) -> Lease:
    """The same machine after its daemon's restart, as the kind under test."""
    lease = Lease.of(host.lease.kept("boot"), "boot")
    lease.__class__ = host.kind
    return lease


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_never_two_attachable_and_somebody_holds_it_in_the_end(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    assert world.calm(), "nobody comes to hold it"


class NoWait(Lease):
    __slots__ = ()

    def _free_at(self) -> float:
        return self.since


class NeverAgain(Lease):
    """Never takes what another held: safe, and useless."""

    __slots__ = ()

    def _free_at(self) -> float:
        return float("inf") if self.record is not None else super()._free_at()


@pytest.mark.parametrize(("mutant", "found"), [(NoWait, "two attachable"), (NeverAgain, "nobody")])
def test_the_walk_finds_what_is_wrong(mutant: type[Lease], found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        for seed in range(200):
            world = World(seed, mutant)
            for _ in range(STEPS):
                world.step()
            assert world.calm(), "nobody comes to hold it"
