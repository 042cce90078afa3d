"""The world in which `core/lease/machine.py` is checked: a store, hosts with clocks of their own,
and everything that may go wrong between them, explored breadth first until nothing new comes.

The machines are the ones that run in a host: a state of the world holds their fields, and a step
calls their `handle`; the client's floor is a real client's. Nothing about the protocol is written
down here a second time.

What may happen, in any order and any number of times: a write reaches the store late, long after
its sender gave up on it, or never; an answer is late or lost, or with `liars` false: a server that
leads no more refuses what another then does; a read gives what stood there when it
was served; a watch tells of a change; a host crashes and starts again with nothing; it stops taking
steps while its clock runs on (which is also what sleep is, by CLOCK_BOOTTIME); it releases; each
clock runs slow or fast by the whole drift, differently from moment to moment. With `suspend` a
sleeping host is told from a slow one. With `forgets` the store loses its record; that there is
none is a revision like any other (one that counts from 0 again is in tests/unit/test_lease.py).

Finite, though none of this has a bound: times are kept relative to now and cut off where no rule
can tell them apart; of revisions and epochs only the order matters, so they are renumbered; a write
that names an old revision can never be done, so it is forgotten. Both hosts are alike, so a world
and its mirror image are one.

Grace is 0 here. It is time for stopping work, and a checker with slack would let a wrong margin
pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from time import process_time
from typing import Any, NamedTuple

from holdfast.core.lease.events import (
    Acquire,
    Force,
    LeaseEvent,
    LeaseTick,
    LeaseWritten,
    LookFailed,
    RecordSeen,
    Release,
    Write,
    WriteLost,
    WriteUnknown,
)
from holdfast.core.lease.machine import Doing, Lease
from holdfast.core.lease.table import LeaseState
from holdfast.model.errors import Fenced
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.wire.epochs import EpochFloor
from simulation.sameness import Host, Rec, World, canonical, mirrored, put

SESSION = SessionId("0" * 26)
OLD = 9  # an incarnation that is no more, or never was one of ours
LENGTH, DRIFT = 6.0, 0.5  # usable for 3, waited for 9, in units of which a moment has 2
SLOW, FAST = 1, 3  # units a clock may show for one moment: 2 less or more the whole drift
TIMED = LeaseTerms(LENGTH, 0.0, DRIFT, 0.0, 0.0)
PINNED = LeaseTerms(None, 0.0, DRIFT, 0.0, 0.0)
FORGET = -LENGTH * (1 + DRIFT)  # a wait that began so long ago is over, whatever the rule

# Enumerations as small numbers: hashing one of Python's costs a call, and there are millions.
_STATES, _DOINGS = tuple(LeaseState), tuple(Doing)
IDLE, WAITING, ASKING, HELD, RELEASED, FENCED = range(len(_STATES))
NOTHING, LOOK, WRITE = range(len(_DOINGS))

Event = tuple[str, int, Any]  # kind, revision or epoch, record

_fields = attrgetter(
    "state", "epoch", "revision", "record", "since", "sent", "deadline", "renew_at", "doing",
    "look", "doubt", "settled", "forced", "max_seen",
)  # fmt: skip
_read = attrgetter("incarnation", "epoch", "released")


class Rules(NamedTuple):
    """What is checked, and within which bounds."""

    lease: type[Lease] = Lease
    floor: type[EpochFloor] = EpochFloor
    terms: LeaseTerms = TIMED
    hosts: int = 2
    rates: tuple[int, ...] = (SLOW, FAST)
    suspend: bool = False  # a host may sleep: its clock runs on, it takes no step
    monotonic: bool = False  # the clock stops while the host sleeps
    frames: bool = False  # holders send frames to a client, which has a floor
    crash: bool = True  # hosts may lose all they know
    liars: bool = False  # a refusal may be false: the write is done later
    force: bool = False  # somebody may attest that a holder is gone; truthfully
    forgets: bool = False  # the store may lose its record
    blind: bool = False  # the store does what it is told, whatever revision is named
    attach: bool = True  # whether two attachable incarnations are a violation
    usable: float = LENGTH * (1 - DRIFT)  # the longest a write can be worth anything
    states_max: int = 4_000_000


class Verdict(NamedTuple):
    violation: str  # "": none
    story: tuple[str, ...]
    states: int
    seconds: float  # of one core
    exhausted: bool

    def told(self) -> str:
        if not self.violation:
            return f"no violation, {self.states:,} states, {self.seconds:.1f} s"
        lines = [f"{self.violation} ({self.states:,} states, {self.seconds:.1f} s):"]
        lines += [f"  {number:2}. {line}" for number, line in enumerate(self.story, 1)]
        return "\n".join(lines)


class Checker:
    """Breadth first, so that a counterexample is among the shortest."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._records: dict[Rec, LeaseRecord] = {}
        self._handled: dict[Any, tuple[Host, tuple[Any, ...]]] = {}
        self._usable: dict[Host, bool] = {}
        self._fresh: dict[int, Host] = {}
        self._older: dict[tuple[Host, int], Host] = {}
        self._paces = _paces(rules.rates, rules.hosts)
        # Over a store that minds no revisions a claim may follow from a record that is long gone,
        # and then the size of its epoch matters; such a search need not end, only find.
        self._same = mirrored if rules.blind else canonical

    # -- between tuples and the machine -----------------------------------------------------------

    def record(self, rec: Rec | None) -> LeaseRecord | None:
        if rec is None:
            return None
        made = self._records.get(rec)
        if made is None:
            incarnation, epoch, released = rec
            made = self._records[rec] = LeaseRecord(
                SESSION, "", str(incarnation), epoch, self.rules.terms.length_s, released
            )
        return made

    @staticmethod
    def rec(record: LeaseRecord | None) -> Rec | None:
        if record is None:
            return None
        incarnation, epoch, released = _read(record)
        return (int(incarnation), epoch, released)

    def fresh(self, number: int) -> Host:
        """A host that has just started, and wants the session."""
        if number not in self._fresh:
            lease = self.rules.lease(SESSION, "", str(number), self.rules.terms)
            lease.handle(Acquire(0.0))
            self._fresh[number] = self.freeze(lease)
        return self._fresh[number]

    def thaw(self, host: Host, number: int) -> Lease:
        lease = self.rules.lease(SESSION, "", str(number), self.rules.terms)
        (
            state, lease.epoch, lease.revision, rec, lease.since, lease.sent, lease.deadline,
            lease.renew_at, doing, lease.look, lease.doubt, lease.settled, forced, lease.max_seen,
        ) = host  # fmt: skip
        lease.state, lease.doing = _STATES[state], _DOINGS[doing]
        lease.record = self.record(rec)
        lease.forced = Force(0.0, "somebody", "gone", forced) if forced else None
        return lease

    def freeze(self, lease: Lease) -> Host:
        """Fields that the state makes meaningless are levelled, so that worlds which differ in
        nothing that matters are one."""
        (was, epoch, revision, record, since, sent, deadline, renew_at, doing, look, doubt,
         settled, forced, seen) = _fields(lease)  # fmt: skip
        state, doing = _STATES.index(was), _DOINGS.index(doing)
        rec = self.rec(record)
        if state == FENCED or (state == RELEASED and settled):
            return (state, 0, -1, None, 0.0, 0.0, 0.0, 0.0, NOTHING, False, False, True, 0, 0)
        if state != HELD:
            deadline, renew_at, epoch = 0.0, 0.0, 0
        if state in (HELD, RELEASED):
            since = 0.0
        elif state == ASKING:
            since = FORGET  # it was over, or did not matter; for this revision that stays so
        elif look:
            rec = None  # read again before it is used
        if doing != WRITE or state == RELEASED:
            sent = 0.0
        return (
            state, epoch, revision, rec, since, sent, deadline, renew_at, doing, look, doubt,
            settled, forced.epoch if forced else 0, seen if self.rules.forgets else 0,
        )  # fmt: skip

    def handled(self, host: Host, number: int, event: Event) -> tuple[Host, tuple[Any, ...]]:
        """What the machine makes of an event: remembered, as one host meets the same in many
        worlds."""
        key = (host, number, event)
        known = self._handled.get(key)
        if known is None:
            lease = self.thaw(host, number)
            outcomes = lease.handle(self.event(event))
            after = self.freeze(lease)
            told = tuple(
                (outcome.revision, self.rec(outcome.record))
                if isinstance(outcome, Write)
                else type(outcome).__name__.lower()
                for outcome in outcomes
            )
            known = self._handled[key] = (after, told)
        return known

    def event(self, event: Event) -> LeaseEvent:
        kind, number, rec = event
        match kind:
            case "seen":
                return RecordSeen(0.0, number, self.record(rec))
            case "wrote":
                return LeaseWritten(0.0, number)
            case "force":
                return Force(0.0, "somebody", "gone", number)
            case _:
                return _EVENTS[kind](0.0)

    def usable(self, host: Host, number: int) -> bool:
        known = self._usable.get(host)
        if known is None:
            known = self._usable[host] = self.thaw(host, number).usable(0.0)
        return known

    # -- a world: (record, revision, hosts, requests, answers, strays, sleeping, client) ----------
    # requests[i]: what host i waits for and the store has not served, (revision, rec) of a write
    # answers[i]: what the store said to it and has not arrived: (kind, revision, rec)
    # strays: writes whose senders gave up on them, {(revision, rec)}

    def first(self) -> World:
        hosts = tuple(self.fresh(number) for number in range(self.rules.hosts))
        nobody = (None,) * self.rules.hosts
        client: Any = (0, frozenset()) if self.rules.frames else None
        return ((OLD, 1, True), 1, hosts, nobody, nobody, frozenset(), 0, client)

    def steps(self, world: World) -> Iterator[tuple[str, World, str]]:
        yield from self._time(world)
        yield from self._store(world)
        for number in range(self.rules.hosts):
            if world[6] >> number & 1:
                yield f"host {number} wakes up", put(world, 6, world[6] & ~(1 << number)), ""
            else:
                yield from self._of_host(world, number)
        if world[7] is not None:
            yield from self._client(world)

    def _time(self, world: World) -> Iterator[tuple[str, World, str]]:
        hosts, sleeping = world[2], world[6]
        asleep = sleeping if self.rules.monotonic else 0
        for pace, told in self._paces:
            moved = tuple(
                [
                    host if asleep >> number & 1 else self._aged(host, pace[number])
                    for number, host in enumerate(hosts)
                ]
            )
            if moved != hosts:
                yield told, put(world, 2, moved), ""

    def _aged(self, host: Host, units: int) -> Host:
        known = self._older.get((host, units))
        if known is None:
            known = self._older[host, units] = _aged(host, units, -self.rules.usable)
        return known

    def _store(self, world: World) -> Iterator[tuple[str, World, str]]:
        rec, revision, hosts, requests, answers, strays, sleeping, client = world
        for number, request in enumerate(requests):
            if request is not None:
                told = f"write of host {number}"
                served = put(requests, number, None)
                if request[0] == revision or self.rules.blind:
                    said = put(answers, number, ("wrote", revision + 1, None))
                    rest = (hosts, served, said, strays, sleeping, client)
                    yield self._taken(world, request[1], rest, f"the store takes the {told}")
                else:
                    said = put(answers, number, ("lost", 0, None))
                    after = (rec, revision, hosts, served, said, strays, sleeping, client)
                    yield f"the store refuses the {told}", after, ""
                if self.rules.liars and request[0] == revision:
                    said = put(answers, number, ("lost", 0, None))
                    after = (
                        rec,
                        revision,
                        hosts,
                        served,
                        said,
                        strays | {request},
                        sleeping,
                        client,
                    )
                    yield f"a server that leads no more refuses the {told}", after, ""
            if hosts[number][8] == LOOK and answers[number] is None:
                said = put(answers, number, ("seen", revision, rec))
                after = (rec, revision, hosts, requests, said, strays, sleeping, client)
                yield f"the store answers host {number}'s look: {_shown(rec)}", after, ""
        if self.rules.forgets and rec is not None:
            after = (None, revision + 1, hosts, requests, answers, strays, sleeping, client)
            yield "the store forgets the record", after, ""
        for stray in strays:  # each names the revision of now, or it would be forgotten
            rest = (hosts, requests, answers, frozenset(), sleeping, client)
            yield self._taken(world, stray[1], rest, "a write given up on arrives")

    @staticmethod
    def _taken(world: World, rec: Rec, rest: tuple[Any, ...], told: str) -> tuple[str, World, str]:
        before, revision = world[0], world[1]
        bad = ""
        if before and (rec[1] < before[1] or (rec[1] == before[1] and rec[0] != before[0])):
            bad = "an epoch was given out twice"
        return f"{told}: {_shown(rec)}", (rec, revision + 1, *rest), bad

    def _of_host(self, world: World, number: int) -> Iterator[tuple[str, World, str]]:
        host, answer = world[2][number], world[4][number]
        state, doing = host[0], host[8]
        who = f"host {number}"
        if answer is not None:
            clear = put(world, 4, put(world[4], number, None))
            yield from self._meets(clear, number, answer, f"{who} hears: {answer[0]}")
        if doing == WRITE:
            without = self._gives_up(world, number)
            yield from self._meets(without, number, ("unknown", 0, None), f"{who} hears nothing")
        elif doing == LOOK:
            clear = put(world, 4, put(world[4], number, None))
            yield from self._meets(clear, number, ("unseen", 0, None), f"{who} cannot look")
        if state in (WAITING, HELD):
            if doing != LOOK:
                told = f"{who}'s watch tells: {_shown(world[0])}"
                yield from self._meets(world, number, ("seen", world[1], world[0]), told)
            yield from self._meets(world, number, ("tick", 0, None), f"{who} looks at its clock")
        if state == HELD:
            if self.rules.suspend:
                yield f"{who} falls asleep", put(world, 6, world[6] | 1 << number), ""
            yield from self._meets(world, number, ("release", 0, None), f"{who} stops, releases")
        if self.rules.force and state == WAITING and not host[12]:
            yield from self._forces(world, number)
        if state == FENCED or (self.rules.crash and (state > WAITING or host[10])):
            what = "starts a new incarnation" if state == FENCED else "crashes and starts again"
            yield f"{who} {what}", self._crashed(world, number), ""
        if world[7] is not None and self.usable(host, number):
            highest, frames = world[7]
            if len(frames) < 2 and host[1] not in frames:
                sent = (highest, frames | {host[1]})
                yield f"{who} sends a frame of epoch {host[1]}", put(world, 7, sent), ""

    def _forces(self, world: World, number: int) -> Iterator[tuple[str, World, str]]:
        """Truthfully: the incarnation that the record names is no more."""
        rec = world[2][number][3]
        if rec is not None and rec[0] == OLD:
            told = f"somebody attests to host {number} that epoch {rec[1]} is gone"
            yield from self._meets(world, number, ("force", rec[1], None), told)

    def _client(self, world: World) -> Iterator[tuple[str, World, str]]:
        highest, frames = world[7]
        for epoch in frames:
            floor = self.rules.floor(highest)
            left = frames - {epoch}
            try:
                floor.rise(epoch)
            except Fenced:
                told = f"the client drops a frame of epoch {epoch}"
                yield told, put(world, 7, (highest, left)), ""
                continue
            bad = "the client took a frame of an earlier incarnation" if epoch < highest else ""
            after = put(world, 7, (max(highest, epoch), left))
            yield f"the client takes a frame of epoch {epoch}", after, bad

    def _gives_up(self, world: World, number: int) -> World:
        """The answer will not be heard; the write, if it has not been served, may be yet."""
        rec, revision, hosts, requests, answers, strays, sleeping, client = world
        if requests[number] is not None:
            strays = strays | {requests[number]}
        nothing = (put(requests, number, None), put(answers, number, None))
        return (rec, revision, hosts, *nothing, strays, sleeping, client)

    def _crashed(self, world: World, number: int) -> World:
        """All of it is gone but what it has sent, in the name of an incarnation that is no more."""
        rec, revision, hosts, requests, answers, strays, sleeping, client = self._gives_up(
            world, number
        )
        rec, strays = _buried(rec, number), frozenset((at, _buried(r, number)) for at, r in strays)
        hosts = tuple(
            self.fresh(number) if one == number else put(host, 3, _buried(host[3], number))
            for one, host in enumerate(hosts)
        )
        answers = tuple(a and (a[0], a[1], _buried(a[2], number)) for a in answers)
        return (rec, revision, hosts, requests, answers, strays, sleeping, client)

    def _meets(
        self, world: World, number: int, event: Event, told: str
    ) -> Iterator[tuple[str, World, str]]:
        before = world[2][number]
        host, outcomes = self.handled(before, number, event)
        requests = world[3]
        for outcome in outcomes:
            if isinstance(outcome, tuple):
                requests = put(requests, number, outcome)
                told += f"; writes {_shown(outcome[1])}"
            else:
                told += f"; {outcome}"
        if host == before and requests is world[3] and event[0] in _IDLE_EVENTS:
            return
        if host[0] == FENCED:
            world = self._gives_up(world, number)
            requests = world[3]
        yield told, (*world[:2], put(world[2], number, host), requests, *world[4:]), ""

    # -- the search -------------------------------------------------------------------------------

    def _two(self, world: World) -> bool:
        """Whether more than one incarnation can be attached to."""
        able = [
            number
            for number, host in enumerate(world[2])
            if not world[6] >> number & 1 and self.usable(host, number)
        ]
        return self.rules.attach and len(able) > 1

    def check(self) -> Verdict:
        began, rules = process_time(), self.rules
        first = self._same(self.first())
        came: dict[World, World | None] = {first: None}
        queue = deque([first])
        while queue:
            world = queue.popleft()
            for _, reached, bad in self.steps(world):
                if not bad and reached in came:  # as it is: no need to look for its likes
                    continue
                after = self._same(reached)
                if not bad and after is not reached and after in came:
                    continue
                if bad or self._two(after):
                    came.setdefault(after, world)
                    story = self._story(came, world, after)
                    seconds = process_time() - began
                    return Verdict(bad or _TWO, story, len(came), seconds, False)
                came[after] = world
                queue.append(after)
            if len(came) > rules.states_max:
                return Verdict("", (), len(came), process_time() - began, False)
        return Verdict("", (), len(came), process_time() - began, True)

    def _story(self, came: dict[World, World | None], last: World, bad: World) -> tuple[str, ...]:
        """How it came to this, told again from the beginning without renumbering: in the search,
        hosts change places and epochs their numbers."""
        path = [bad, last]
        while (step := came[path[-1]]) is not None:
            path.append(step)
        path.reverse()
        lines, at = [], self.first()
        for wanted in path[1:]:
            told, at = next(
                (told, after) for told, after, _ in self.steps(at) if self._same(after) == wanted
            )
            lines.append(told)
        return tuple(lines)


_EVENTS: dict[str, type[LeaseEvent]] = {
    "lost": WriteLost,
    "unknown": WriteUnknown,
    "unseen": LookFailed,
    "release": Release,
    "tick": LeaseTick,
}
_IDLE_EVENTS = {"seen", "tick"}  # those that may come to nothing
_TWO = "two incarnations could be attached to at once"


def _paces(rates: tuple[int, ...], hosts: int) -> list[tuple[tuple[int, ...], str]]:
    """How much each clock may show for one moment, and how that is told."""
    paces: list[tuple[int, ...]] = [()]
    for _ in range(hosts):
        paces = [(*pace, rate) for pace in paces for rate in rates]
    shown = [", ".join(f"{units} on host {n}" for n, units in enumerate(pace)) for pace in paces]
    return [(pace, f"a moment passes: {told}") for pace, told in zip(paces, shown, strict=True)]


def _aged(host: Host, units: int, forget: float) -> Host:
    """This host's clock shows so much more; its times are relative to now."""
    state, _, revision, _, since, sent, deadline = host[:7]
    if state == WAITING and revision >= 0:
        since = max(since - units, FORGET)
    elif state == HELD:
        deadline = max(deadline - units, 0.0)
    if host[8] == WRITE and state != RELEASED:
        sent = max(sent - units, forget)
    return (*host[:4], since, sent, deadline, *host[7:])


def _buried(rec: Rec | None, number: int) -> Rec | None:
    return (OLD, *rec[1:]) if rec is not None and rec[0] == number else rec


def _shown(rec: Rec | None) -> str:
    if rec is None:
        return "nothing"
    who = "nobody any more" if rec[0] == OLD else f"host {rec[0]}"
    return f"epoch {rec[1]} of {who}" + (", released" if rec[2] else "")
