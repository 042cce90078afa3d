"""Every order of events of one move between two hosts, breadth first, within bounds that are small
and named. What may happen is in `move_world.py`.

A message, once sent, may arrive at any time, any number of times, or never; so what was sent is a
set that only grows, and nothing is assumed about a channel. A timeout may come at any time at
which the machine waits. Time is kept relative, so it has no bound.

Two questions are asked of each state: does it break what must always hold; and is there, without
another fault, a way from here to exactly one live incarnation that has every input?
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from typing import Any, NamedTuple

from holdfast.core.continuity import move_events as ev
from simulation.move_world import Host, Message, Request, Rules, World

_NEVER = float("inf")


class Bounds(NamedTuple):
    """How often each may happen, in all of one order."""

    crashes: int = 1  # of a daemon
    restarts: int = 0  # of a machine
    gone: int = 0  # machines that never come back
    failures: int = 1  # of work: an image, a restoring; a call that cannot be answered
    strays: int = 1  # writes without an answer that are done, at once or later
    inputs: int = 1  # typed while it moves; one was typed before
    states_max: int = 400_000


class Verdict(NamedTuple):
    violation: str
    story: tuple[str, ...]
    states: int
    seconds: float
    exhausted: bool

    def told(self) -> str:
        if not self.violation:
            return f"no violation, {self.states:,} states, {self.seconds:.1f} s"
        lines = [f"{self.violation} ({self.states:,} states, {self.seconds:.1f} s):"]
        return "\n".join(lines + [f"  {n:2}. {line}" for n, line in enumerate(self.story, 1)])


class Node(World):
    """A world with what it may still meet."""

    crashes = restarts = gone = failures = strays = inputs = 0

    def send(self, message: Message) -> None:
        if message not in self.net:
            self.net = (*self.net, message)


Step = tuple[str, Node, bool]  # what happened, the world after it, whether it was a fault


class Orders:
    """The search."""

    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        self.rules, self.bounds = rules, bounds

    def check(self) -> Verdict:
        began = process_time()
        first = self._first()
        keys = {_key(first): 0}
        stories: list[tuple[int, str]] = [(-1, "")]
        onward: list[list[int]] = []  # without a fault, to which states
        good: list[bool] = []
        todo = deque([first])
        while todo:
            world = todo.popleft()
            number = len(onward)
            onward.append([])
            good.append(_is_good(world))
            for told, after, fault in self._steps(world):
                if after.net:
                    after.net = _lasting(after)
                violation = after.violation()
                key = _key(after)
                known = keys.get(key)
                if known is None:
                    known = keys[key] = len(stories)
                    stories.append((number, told))
                    if violation:
                        story = _story(stories, known)
                        return Verdict(
                            violation, story, len(stories), process_time() - began, False
                        )
                    todo.append(after)
                if not fault:
                    onward[number].append(known)
            if len(stories) > self.bounds.states_max:
                return Verdict("", (), len(stories), process_time() - began, False)
        stuck = _cannot_reach(onward, good)
        seconds = process_time() - began
        if stuck is not None:
            what = "nobody lives, and nothing leads out of it"
            return Verdict(what, _story(stories, stuck), len(stories), seconds, True)
        return Verdict("", (), len(stories), seconds, True)

    def _first(self) -> Node:
        world = Node(self.rules)
        bounds = self.bounds
        world.crashes, world.restarts = bounds.crashes, bounds.restarts
        world.gone = bounds.gone
        world.failures, world.strays, world.inputs = bounds.failures, bounds.strays, bounds.inputs
        world.typed = 1
        world.client_sends(world.hosts[0])
        world.violation()
        world.start_move(world.hosts[0], world.hosts[1])
        return world

    # -- what may happen --------------------------------------------------------------------------

    def _steps(self, world: Node) -> Iterator[Step]:
        for told, number, act in _plain(world):
            after = _copy(world)
            act(after)
            yield told, after, False
            if world.crashes:
                yield from self._crashing(world, told, number, act)
        yield from self._faults(world)

    def _crashing(
        self, world: Node, told: str, number: int, act: Callable[[Node], None]
    ) -> Iterator[Step]:
        """The daemon dies in it, after so many effects."""
        for effects in range(9):
            after = _copy(world)
            after.hosts[number].crash_after = effects
            act(after)
            host = after.hosts[number]
            if host.up or host.gone:
                return
            after.crashes -= 1
            host.recover()
            yield f"{told}; host {number}'s daemon dies after {effects} effects", after, True

    def _faults(self, world: Node) -> Iterator[Step]:
        for host in world.hosts:
            for what, left in (("daemon", world.crashes), ("machine", world.restarts)):
                if left and host.up:
                    after = _copy(world)
                    after.crashes -= what == "daemon"
                    after.restarts -= what == "machine"
                    if what == "machine":
                        after.machine_stopped(after.hosts[host.number])
                    else:
                        after.crash(after.hosts[host.number])
                    after.hosts[host.number].recover()
                    yield f"host {host.number}'s {what} restarts", after, True
            if world.gone and host.up:
                after = _copy(world)
                after.gone -= 1
                after.machine_stopped(after.hosts[host.number], for_good=True)
                yield f"host {host.number} is gone for good", after, True
            if world.failures:
                for work in sorted(host.work):
                    after = _copy(world)
                    after.failures -= 1
                    after.hosts[host.number].done(work, well=False)
                    yield f"host {host.number}: {work} fails", after, True
        for request in world.requests:
            who = f"{request.kind} of host {request.host}"
            if request.host >= 0 and world.failures:
                after = _copy(world)
                after.failures -= 1
                after.give_up(request)
                yield f"the store does not get the {who}", after, True
            if request.kind == "write" and request.host >= 0 and world.strays:
                after = _copy(world)
                after.strays -= 1
                after.give_up(request, stray=True)
                yield f"no answer to the {who}, which may be done yet", after, True
                after = _copy(world)
                after.strays -= 1
                after.serve(request, answer=False)
                _unanswered(after, request)
                yield f"the {who} is done, and its answer lost", after, True


def _unanswered(world: Node, request: Request) -> None:
    world.requests = (*world.requests, request)
    world.give_up(request)


def _plain(world: Node) -> Iterator[tuple[str, int, Callable[[Node], None]]]:
    """What happens without anything going wrong: what, on which host, and how."""
    for index, message in enumerate(world.net):
        told = f"host {message.to} hears: {message.what}"
        yield told, message.to, partial(_hear, at=index)
    for index, request in enumerate(world.requests):
        told = f"the store serves the {request.kind} of host {request.host}"
        yield (
            told,
            max(request.host, 0),
            partial(_serve, at=index),
        )
    for host in world.hosts:
        number = host.number
        for work in sorted(host.work):
            yield (
                f"host {number}: {work} done",
                number,
                partial(_work, number=number, work=work),
            )
        for source, move in ((True, host.source), (False, host.target)):
            for timer in ("deadline", "look_at"):
                if move is not None and getattr(move, timer) < _NEVER:
                    yield (
                        f"host {number}: {timer} in {str(move.state)!r}",
                        number,
                        partial(_tick, number=number, source=source, timer=timer),
                    )
        if world.acked < world.typed:
            yield (
                f"the client sends what is not acknowledged to host {number}",
                number,
                partial(_client, number=number),
            )
    if world.inputs:
        yield "the client types", 0, _type


def _hear(world: Node, *, at: int) -> None:
    message = world.net[at]
    world.hosts[message.to].hear(message)


def _serve(world: Node, *, at: int) -> None:
    world.serve(world.requests[at])


def _work(world: Node, *, number: int, work: str) -> None:
    world.hosts[number].done(work, well=True)


def _client(world: Node, *, number: int) -> None:
    world.client_sends(world.hosts[number])


def _type(world: Node) -> None:
    world.inputs -= 1
    world.typed += 1


def _tick(world: Node, *, number: int, source: bool, timer: str) -> None:
    """It is always 0 o'clock; a timer that goes off was set to then."""
    host = world.hosts[number]
    move = host.source if source else host.target
    assert move is not None
    setattr(move, timer, 0.0)
    host.give(ev.MoveTick(0.0), source=source)


def _copy(world: Node) -> Node:
    new = world.clone()
    assert isinstance(new, Node)
    return new


def _lasting(world: Node) -> tuple[Message, ...]:
    """Messages that can still change anything."""
    return tuple(
        message
        for message in world.net
        if not (
            (move := world.hosts[message.to].target) is not None
            and message.move == move.incarnation
            and move.is_over
        )
    )


def _is_good(world: World) -> bool:
    live = [host for host in world.hosts if host.is_live]
    return (len(live) == 1 and world.acked == world.typed) or world.lost


def _story(stories: list[tuple[int, str]], at: int) -> tuple[str, ...]:
    lines = []
    while at > 0:
        at, told = stories[at]
        lines.append(told)
    return tuple(reversed(lines))


def _cannot_reach(onward: list[list[int]], good: list[bool]) -> int | None:
    """A state from which no good one can be reached; the first one found."""
    back: list[list[int]] = [[] for _ in onward]
    for number, after in enumerate(onward):
        for each in after:
            back[each].append(number)
    reached = list(good)
    todo = [number for number, is_good in enumerate(good) if is_good]
    while todo:
        for before in back[todo.pop()]:
            if not reached[before]:
                reached[before] = True
                todo.append(before)
    return next((number for number, reaches in enumerate(reached) if not reaches), None)


# -- two worlds that differ in nothing that matters are one ---------------------------------------


def _key(world: Node) -> Any:
    net = frozenset(world.net)
    return (
        world.record.owner, world.record.incarnation, world.record.epoch, world.record.released,
        world.record.successor, world.revision, _requests(world), net, world.typed, world.acked,
        world.ran, world.lost, world.primed, frozenset(world.promised.items()),
        world.crashes, world.restarts, world.gone, world.failures, world.strays, world.inputs,
        tuple(_host_key(host) for host in world.hosts),
    )  # fmt: skip


def _requests(world: Node) -> frozenset[Any]:
    return frozenset(
        (each.host, each.kind, each.incarnation, _write_key(each.write))
        for each in world.requests
        if each.kind != "write" or each.host >= 0 or each.write[1] == world.revision
    )


def _write_key(write: Any) -> Any:
    return (write[0].incarnation, write[0].epoch, write[0].released, write[1]) if write else None


def _host_key(host: Host) -> Any:
    source, target, lease = host.source, host.target, host.lease
    return (
        host.up, host.tree, host.image, host.journal, host.sealed, host.boot, host.lives, host.work,
        source and (
            source.state, source.epoch, source.released, source.overdue, source.tree,
            len(source.held), source.deadline < _NEVER, source.look_at < _NEVER,
        ),
        target and (
            target.state, target.tree, target.restoring, target.epoch, len(target.held),
            target.deadline < _NEVER, target.look_at < _NEVER,
        ),
        lease and (
            lease.state, lease.incarnation, lease.epoch, lease.revision, lease.doing, lease.look,
            lease.doubt, lease.settled, lease.max_seen, lease.record and lease.record.epoch,
            lease.record and lease.record.released,
        ),
        host.kept_source and host.kept_source.state, host.kept_target and host.kept_target.state,
    )  # fmt: skip
