"""Whole runs from one seed: three hosts, a virtual clock, a lossy network, a store that falters,
and moves one after another, with crashes and cuts in every phase. Then everything heals, and
exactly one incarnation must live that has every input. What may happen is in `move_world.py`."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import NamedTuple

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.move_table import SourceState, TargetState
from holdfast.core.lease import events as lev
from holdfast.model.lease import LeaseTerms
from simulation.move_world import Host, Message, Request, Rules, World

TIMED = LeaseTerms(10.0, 2.0, 0.01, 1.0, 0.5)
PINNED = LeaseTerms(None, 0.0, 0.01, 1.0, 0.5)
_STEPS = 600  # of trouble
_HEAL_STEPS = 4000  # and of none; a minute of virtual time is enough for every deadline
_INPUTS = 12


class Outcome(NamedTuple):
    violation: str
    story: tuple[str, ...]
    met: Counter[str]  # states, faults and endings that came up

    def told(self) -> str:
        return "\n".join((self.violation, *self.story[-60:]))


class Run:
    """One seed."""

    def __init__(self, seed: int, rules: Rules = Rules()) -> None:  # noqa: B008
        self.random = Random(seed)
        terms = TIMED if seed % 3 == 0 else PINNED
        self.world = World(rules._replace(terms=terms), hosts=3)
        self.trouble = self.random.choice((0.0, 0.02, 0.05, 0.1))
        self.restarts = 1 if self.random.random() < 0.2 else 0
        self.cut_until = 0.0
        self.store_down_until = 0.0
        self.story: list[str] = []
        self.met: Counter[str] = Counter()

    def go(self) -> Outcome:
        for _ in range(_STEPS):
            self._step()
            self._look()
            if self.world.bad:
                return self._outcome(self.world.bad)
        self._heal()
        return self._outcome(self.world.bad or self._final())

    def _outcome(self, violation: str) -> Outcome:
        return Outcome(violation, tuple(self.story), self.met)

    def _look(self) -> None:
        world = self.world
        world.bad = world.bad or world.violation()
        for host in world.hosts:
            for kept in (host.kept_source, host.kept_target):
                if kept is not None:  # of a daemon that died too
                    self.met[kept.state] += 1

    # -- one step ---------------------------------------------------------------------------------

    def _step(self) -> None:
        world, chance = self.world, self.random.random
        world.now += self.random.expovariate(8.0)
        if chance() < self.trouble:
            self._fault()
            return
        self._start_a_move()
        if world.typed < _INPUTS and chance() < 0.05:
            world.typed += 1
        if chance() < 0.3:
            host = self.random.choice(world.hosts)
            world.client_sends(host, hears=chance() > 0.2)
        self._serve_one()
        self._deliver_one(lossy=True)
        self._work_one()
        self._ring()
        for host in world.hosts:
            if not host.up and not host.gone and chance() < 0.2:
                self._told(f"host {host.number} is up again")
                host.recover()

    def _told(self, what: str) -> None:
        self.story.append(f"{self.world.now:8.2f}  {what}")

    def _start_a_move(self) -> None:
        world = self.world
        live = [host for host in world.hosts if host.is_live]
        if not live or self.random.random() > 0.05:
            return
        target = self.random.choice([host for host in world.hosts if host is not live[0]])
        if not target.up or (target.target is not None and not target.target.is_over):
            return
        if target.source is not None and not target.source.is_over:
            return
        self._told(f"a move from {live[0].number} to {target.number} begins")
        self.met["moves"] += 1
        world.start_move(live[0], target)

    def _serve_one(self) -> None:
        world, chance = self.world, self.random.random
        if not world.requests:
            return
        request = self.random.choice(world.requests)
        if request.host < 0:
            if chance() < 0.2:
                world.serve(request)
        elif world.now < self.store_down_until:
            self._unanswered(request)
        else:
            self._told(f"the store serves {_shown(request)}; epoch {world.record.epoch}")
            world.serve(request)

    def _unanswered(self, request: Request) -> None:
        world, chance = self.world, self.random.random
        self._told(f"no answer to {_shown(request)}")
        if request.kind == "write" and chance() < 0.4:
            world.give_up(request, stray=True)
        elif request.kind == "write" and chance() < 0.5:
            world.serve(request, answer=False)
            world.requests = (*world.requests, request)
            world.give_up(request)
        else:
            world.give_up(request)

    def _deliver_one(self, *, lossy: bool) -> None:
        world, chance = self.world, self.random.random
        if not world.net:
            return
        message = self.random.choice(world.net) if lossy else world.net[0]
        lost = lossy and (world.now < self.cut_until or chance() < self.trouble / 2)
        if not (lossy and chance() < 0.05):  # else it comes once more
            at = world.net.index(message)
            world.net = (*world.net[:at], *world.net[at + 1 :])
        if not lost:
            self._told(f"host {message.to} hears of {message.move}: {message.what}")
            world.hosts[message.to].hear(message)
        else:
            self.met["messages lost"] += 1

    def _work_one(self, *, well: bool = True) -> None:
        busy = [host for host in self.world.hosts if host.work and host.up]
        if not busy or self.random.random() < 0.5:
            return
        host = self.random.choice(busy)
        work = self.random.choice(sorted(host.work))
        if well and self.random.random() < self.trouble:
            well = False
            self.met["work failed"] += 1
        self._told(f"host {host.number}: {work} {'done' if well else 'failed'}")
        host.done(work, well=well)

    def _ring(self) -> None:
        world = self.world
        for host in world.hosts:
            if not host.up:
                continue
            for source, move in ((True, host.source), (False, host.target)):
                at = move.wakes_at() if move is not None else None
                if at is not None and world.now >= at:
                    host.give(ev.MoveTick(world.now), source=source)
            self._ring_lease(host)

    def _ring_lease(self, host: Host) -> None:
        world, lease = self.world, host.lease
        at = lease.wakes_at() if lease is not None and host.up else None
        if at is not None and world.now >= at:
            for after, source in host.lease_event(lev.LeaseTick(world.now)):
                host.give(after, source=source)

    def _fault(self) -> None:
        world = self.world
        kind = self.random.choice(("crash", "crash", "mid-event", "cut", "store", "restart"))
        host = self.random.choice(world.hosts)
        if kind == "cut":
            self.cut_until = world.now + self.random.uniform(1, 60)
        elif kind == "store":
            self.store_down_until = world.now + self.random.uniform(1, 30)
        elif not host.up:
            return
        elif kind == "mid-event":
            host.crash_after = self.random.randrange(4)
            return
        elif kind == "restart":
            if not self.restarts:
                return
            self.restarts -= 1
            world.machine_stopped(host, for_good=self.random.random() < 0.3)
        else:
            world.crash(host)
        self.met[kind] += 1
        self._told(f"{kind}: host {host.number}")

    # -- afterwards -------------------------------------------------------------------------------

    def _heal(self) -> None:
        world = self.world
        self._told("everything heals")
        for host in world.hosts:
            host.crash_after = -1
        self.cut_until = self.store_down_until = 0.0
        for step in range(_HEAL_STEPS):
            world.now += 0.05
            for host in world.hosts:
                if not host.up and not host.gone:
                    host.recover()
            if world.requests:
                world.serve(world.requests[0])
            self._deliver_one(lossy=False)
            for host in world.hosts:
                for work in sorted(host.work):
                    host.done(work, well=True)
            self._ring()
            if step % 20 == 0:
                for host in world.hosts:
                    world.client_sends(host)
            self._look()
            if world.bad:
                return
            if step > 50 and self._settled():
                return

    def _settled(self) -> bool:
        world = self.world
        moving = any(
            move is not None and not move.is_over
            for host in world.hosts
            for move in (host.source, host.target)
            if not host.gone
        )
        return not moving and world.acked == world.typed and not world.net and not world.requests

    def _final(self) -> str:
        world = self.world
        live = [host for host in world.hosts if host.is_live]
        self.met["live at the end"] += len(live)
        if not live:
            if world.lost:
                self.met["lost with its machine"] += 1
                return ""
            return "nobody lives, though everything healed"
        if world.acked != world.typed:
            return f"an input was lost: {world.acked} of {world.typed}"
        trees = [host.number for host in world.hosts if host.tree is not None]
        if trees != [live[0].number]:
            return f"trees are left on {trees}, where only {live[0].number} lives"
        return _verify(live[0])


def _verify(host: Host) -> str:
    """The journal of the one that lives tells all that happened, once each and in order."""
    inputs = [entry[2] for entry in host.journal if entry[1] == "input"]
    assert host.tree is not None
    if list(dict.fromkeys(inputs)) != list(host.tree.log):
        return f"the journal says {inputs}, the tree took {host.tree.log}"
    return ""


def _shown(request: Request) -> str:
    return f"{request.kind} of host {request.host} as {request.incarnation or '-'}"


STATES = (*SourceState, *TargetState)
__all__ = ["PINNED", "STATES", "TIMED", "Message", "Outcome", "Run"]
