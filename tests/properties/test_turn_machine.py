"""The turn machine: whatever happens in whatever order, its promises hold (A3, A4, A5).

One machine checks them under every policy: Hypothesis drives it and makes a failure short; seeded
walks drive it into crowds and long waits, where Hypothesis seldom gets. The same walks must fail
on broken turns. Last, an exhaustive search compares every reachable transition with the table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

import msgpack
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.core.turn import events as ev
from holdfast.core.turn.machine import SavedTurn, TurnMachine
from holdfast.core.turn.policy import POLICIES, Waiting, policy
from holdfast.core.turn.table import TRANSITIONS, TurnPhase, TurnStepKind
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import ActorId
from holdfast.model.limits import TURN_HOLD_MAX_S, TURN_IDLE_S, TURN_NEVER_LONGER_S, TURN_PAUSE_S

ACTORS = [ActorId.of_key(bytes([n]) * 32) for n in range(4)]
actors = st.sampled_from(ACTORS)
holds = st.sampled_from([0.0, 1.0, 40.0, TURN_HOLD_MAX_S])
# Around every limit, and far back: a clock may be set.
times = st.sampled_from(
    [0.0, 0.5, TURN_PAUSE_S, 31.0, TURN_IDLE_S, TURN_NEVER_LONGER_S, -1.0, -500.0, -1e5]
)

# What an event does to the turn, if it does anything.
STEPS: dict[type[ev.TurnEvent], TurnStepKind] = {
    ev.RequestStep: TurnStepKind.REQUEST,
    ev.GrantStep: TurnStepKind.GRANT,
    ev.YieldStep: TurnStepKind.YIELD,
    ev.HandOff: TurnStepKind.HAND_OFF,
    ev.RevokeStep: TurnStepKind.REVOKE,
    ev.SeizeTurn: TurnStepKind.SEIZE,
    ev.WithdrawStep: TurnStepKind.WITHDRAW,
    ev.LeaveStep: TurnStepKind.LEAVE,
    ev.TurnTick: TurnStepKind.EXPIRE,
    ev.WroteStep: TurnStepKind.REQUEST,
}
# These bring a turn to the next in the queue; the others to whom somebody chose.
# What moves the turn only sometimes, and then by another name.
NO_STEP = {
    *(ev.TurnTick, ev.WroteStep, ev.Return, ev.BlindStep, ev.RenewStep, ev.CommandStep),
}
PASSING_ON = {TurnStepKind.YIELD, TurnStepKind.REVOKE, TurnStepKind.EXPIRE, TurnStepKind.LEAVE}


class TurnRules(RuleBasedStateMachine):
    """Random events, checked against a plain model: a list of who waits, and a stop watch."""

    turn_class: ClassVar[type[TurnMachine]] = TurnMachine

    def __init__(self) -> None:
        super().__init__()
        self.now = 1e6
        self.waiting: list[ActorId] = []
        self.idle_s = 0.0  # time that really passed since the holder got the turn or wrote
        self.turn = self.turn_class()
        self.steps: Counter[tuple[TurnPhase, TurnStepKind]] = Counter()

    @initialize(name=st.sampled_from(sorted(POLICIES)), crowd=st.permutations(ACTORS))
    def under_a_policy(self, name: str, crowd: list[ActorId]) -> None:
        self.turn = self.turn_class(name)
        for who in crowd[1:]:
            self.send(ev.RequestStep(who, self.now, explicit=who < crowd[0]))

    def send(self, event: ev.TurnEvent) -> list[ev.TurnOutcome] | None:
        """Handle one event and check what must be true of any. None: it was refused."""
        before, state = self.turn.kept(), self.turn.state
        try:
            outcomes = self.turn.handle(event)
        except HoldfastError:
            assert _bytes(self.turn.kept()) == _bytes(before), "a refused event changed something"
            return None
        moves = [each for each in outcomes if isinstance(each, ev.Moved)]
        self._check_moves(before, moves)
        self._follow_queue(outcomes)
        if moves or type(event) not in NO_STEP:
            step = STEPS[type(event)]
            assert self.turn.state in TRANSITIONS[state, step]
            self.steps[state, step] += 1
        if before.seized and isinstance(
            event, ev.TurnTick | ev.RequestStep | ev.LeaveStep | ev.WroteStep
        ):
            assert not moves, "a seized turn was moved"
            assert self.turn.seized
            assert self.turn.holder == before.holder
        return outcomes

    def _check_moves(self, before: SavedTurn, moves: list[ev.Moved]) -> None:
        assert len(moves) <= 1
        if not moves:
            assert self.turn.holder == before.holder, "the holder changed and nobody was told"
            return
        (moved,) = moves
        assert (moved.before, moved.holder) == (before.holder, self.turn.holder)
        if moved.step in PASSING_ON:
            first = self.waiting[0] if self.waiting else None
            assert moved.holder == first, "somebody was served out of order"
        if moved.step is TurnStepKind.EXPIRE:
            limit = policy(before.policy).idle_limit_s(bool(before.queue), before.away)
            assert self.idle_s >= limit, "a clock set back took time from the holder"
            assert moved.at >= before.held_until, "a declared hold was cut short"
        if moved.holder != before.holder:
            assert not self.turn.blind, "a blind turn outlived its holder"
        self.idle_s = 0.0

    def _follow_queue(self, outcomes: list[ev.TurnOutcome]) -> None:
        for each in outcomes:
            if isinstance(each, ev.Asked) and each.actor not in self.waiting:
                self.waiting.append(each.actor)
            elif isinstance(each, ev.Withdrawn):
                self.waiting.remove(each.actor)
            elif isinstance(each, ev.Moved) and each.holder in self.waiting:
                self.waiting.remove(each.holder)

    @rule(seconds=times)
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.idle_s += max(0.0, seconds)

    @rule()
    def tick(self) -> None:
        due = self.turn.wakes_at()
        outcomes = self.send(ev.TurnTick(self.now))
        assert outcomes is not None
        assert bool(outcomes) == (due is not None and due <= self.now)

    @rule()
    def everybody_pauses_until_it_wakes(self) -> None:
        due = self.turn.wakes_at()
        if due is not None:
            self.time_passes(max(0.0, due - self.now))
            self.now = max(self.now, due)  # adding a difference may fall short by a rounding
            self.idle_s += 1e-6
            self.tick()

    @rule(
        who=actors,
        explicit=st.booleans(),
        message=st.sampled_from(["", "please", "x" * 500]),
        hold_s=holds,
    )
    def ask(self, who: ActorId, explicit: bool, message: str, hold_s: float) -> None:
        assert self.send(ev.RequestStep(who, self.now, message, explicit, hold_s)) is not None
        assert self.turn.holder == who or who in self.waiting, "a request was lost"
        if self.turn.holder == who:
            self.idle_s = 0.0

    @rule(by=actors, hold_s=holds)
    def renew(self, by: ActorId, hold_s: float) -> None:
        mine = self.turn.holder == by
        assert (self.send(ev.RenewStep(by, self.now, hold_s)) is not None) == mine
        if mine:
            self.idle_s = 0.0
            assert self.turn.held_until >= self.now + hold_s or not hold_s

    @rule(who=st.none() | actors)
    def a_command_line_runs(self, who: ActorId | None) -> None:
        assert self.send(ev.CommandStep(who, self.now)) == []

    @rule(who=actors)
    def write(self, who: ActorId) -> None:
        taken = self.send(ev.WroteStep(who, self.now)) is not None
        assert taken == self.turn.may_write(who)
        if taken:
            self.idle_s = 0.0

    @rule(by=actors, to=st.none() | actors)
    def grant(self, by: ActorId, to: ActorId | None) -> None:
        mine, waits = self.turn.holder == by, bool(self.waiting) and to in (None, *self.waiting)
        assert (self.send(ev.GrantStep(by, to, self.now)) is not None) == (mine and waits)

    @rule(by=actors)
    def yield_(self, by: ActorId) -> None:
        mine = self.turn.holder == by
        assert (self.send(ev.YieldStep(by, self.now)) is not None) == mine

    @rule(by=actors, to=actors)
    def hand_off(self, by: ActorId, to: ActorId) -> None:
        mine = self.turn.holder == by and by != to
        assert (self.send(ev.HandOff(by, to, self.now)) is not None) == mine

    @rule(by=actors)
    def revoke(self, by: ActorId) -> None:
        held = self.turn.holder is not None
        assert (self.send(ev.RevokeStep(by, self.now, "enough")) is not None) == held

    @rule(by=actors)
    def seize(self, by: ActorId) -> None:
        assert self.send(ev.SeizeTurn(by, self.now, "stop" * 200)) is not None
        assert [who for who in ACTORS if self.turn.may_write(who)] == [by]
        assert self.turn.seized

    @rule(who=actors)
    def withdraw(self, who: ActorId) -> None:
        waits = who in self.waiting
        assert (self.send(ev.WithdrawStep(who)) is not None) == waits

    @rule(who=actors)
    def leave(self, who: ActorId) -> None:
        gives_up = self.turn.holder == who and not (self.turn.explicit or self.turn.seized)
        holder = self.turn.holder
        self.send(ev.LeaveStep(who, self.now))
        assert (self.turn.holder != holder) == gives_up, "a leave kept or took the wrong hold"

    @rule()
    def the_holder_leaves(self) -> None:
        if self.turn.holder is not None:
            self.leave(self.turn.holder)

    @rule(who=actors)
    def come_back(self, who: ActorId) -> None:
        assert self.send(ev.Return(who)) == []

    @rule(by=actors, blind=st.booleans())
    def go_blind(self, by: ActorId, blind: bool) -> None:
        mine = self.turn.holder == by
        assert (self.send(ev.BlindStep(by, blind)) is not None) == mine

    @rule()
    def the_daemon_restarts(self) -> None:
        """What was kept is the same turn, through the bytes it is kept in."""
        kept = self.turn.kept()
        read = SavedTurn.unpack(msgpack.unpackb(_bytes(kept)))
        assert read == kept
        self.turn = self.turn_class.of(read)
        assert self.turn.kept() == kept

    @invariant()
    def at_most_one_actor_may_write(self) -> None:
        assert [who for who in ACTORS if self.turn.may_write(who)] == [
            who for who in ACTORS if who == self.turn.holder
        ]

    @invariant()
    def who_waits_waits_in_order_once_and_for_somebody(self) -> None:
        queue = [each.actor for each in self.turn.queue]
        assert queue == self.waiting, "the queue changed and nobody was told"
        assert len(set(self.waiting)) == len(self.waiting)
        assert self.turn.holder not in self.waiting
        assert not (self.waiting and self.turn.holder is None), "free, and somebody waits"
        assert self.turn.explicit or not self.turn.seized

    @invariant()
    def a_seizure_would_succeed_now_under_every_policy(self) -> None:
        for name in POLICIES:
            for who in ACTORS[:2]:
                turn = self.turn_class.of(self.turn.kept().replace(policy=name))
                turn.handle(ev.SeizeTurn(who, self.now))
                assert turn.holder == who
                assert turn.seized

    @invariant()
    def nobody_waits_for_ever_once_holders_are_idle(self) -> None:
        if self.turn.seized:
            assert self.turn.wakes_at() is None, "a seized turn was moved"
            return
        turn = self.turn_class.of(self.turn.kept())
        turn.handle(ev.TurnTick(min(self.now, turn.last_active)))  # wherever the clock is now
        served: list[ActorId | None] = []
        for _ in range(len(turn.queue) + (turn.holder is not None)):
            due = turn.wakes_at()
            assert due is not None
            assert due - turn.last_active <= TURN_NEVER_LONGER_S
            turn.handle(ev.TurnTick(due))
            served.append(turn.holder)
        fair = [*self.waiting, None] if self.turn.holder is not None else []
        assert served == fair, "somebody was served out of order"

    @invariant()
    def a_wait_is_over_in_time_even_if_the_clock_went_back(self) -> None:
        """The next Tick, at whatever time, brings what remains to wait below the longest limit."""
        turn = self.turn_class.of(self.turn.kept())
        turn.handle(ev.TurnTick(self.now))
        due = turn.wakes_at()
        on_time = due is None or due <= self.now + TURN_NEVER_LONGER_S
        assert on_time, "a clock set back froze the turn"


def _bytes(kept: SavedTurn) -> bytes:
    packed: bytes = msgpack.packb(kept.pack())
    return packed


TurnRules.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, derandomize=True, deadline=None
)
TestTurnMachine = TurnRules.TestCase


# -- seeded walks ---------------------------------------------------------------------------------

WALKS, WALK_STEPS = 200, 120


def walk(machine: type[TurnRules], seed: int) -> TurnRules:
    """One long run of the machine. Mostly the holder and those who wait do something; seizing and
    leaping clocks are rare, or there would be nothing else."""
    rng = random.Random(seed)
    self = machine()
    self.under_a_policy(rng.choice(sorted(POLICIES)), rng.sample(ACTORS, len(ACTORS)))
    for _ in range(WALK_STEPS):
        _one_step(self, rng)
        self.at_most_one_actor_may_write()
        self.who_waits_waits_in_order_once_and_for_somebody()
        self.nobody_waits_for_ever_once_holders_are_idle()
        self.a_wait_is_over_in_time_even_if_the_clock_went_back()
    self.a_seizure_would_succeed_now_under_every_policy()
    return self


def _one_step(self: TurnRules, rng: random.Random) -> None:
    def who() -> ActorId:
        likely = [each for each in (self.turn.holder, *self.waiting) if each is not None]
        return rng.choice(likely) if likely and rng.random() < 0.7 else rng.choice(ACTORS)

    def passing() -> float:
        return rng.choice([-1e5, -500.0]) if rng.random() < 0.1 else rng.choice([0.1, 3.0, 31.0])

    def holding() -> float:
        return rng.choice([0.0, 0.0, 0.0, 5.0, 40.0])

    steps: list[tuple[int, Callable[[], None]]] = [
        (10, lambda: self.ask(who(), rng.random() < 0.5, rng.choice(["", "please"]), holding())),
        (2, lambda: self.renew(who(), holding())),
        (3, lambda: self.a_command_line_runs(rng.choice([None, who()]))),
        (6, lambda: self.write(who())),
        (6, lambda: self.time_passes(passing())),
        (4, lambda: self.tick()),
        (3, lambda: self.everybody_pauses_until_it_wakes()),
        (3, lambda: self.grant(who(), rng.choice([None, who()]))),
        (3, lambda: self.yield_(who())),
        (3, lambda: self.hand_off(who(), who())),
        (2, lambda: self.leave(who())),
        (2, lambda: self.the_holder_leaves()),
        (2, lambda: self.withdraw(who())),
        (2, lambda: self.come_back(who())),
        (1, lambda: self.revoke(who())),
        (1, lambda: self.seize(who())),
        (1, lambda: self.go_blind(who(), rng.random() < 0.5)),
        (1, lambda: self.the_daemon_restarts()),
    ]
    (chosen,) = rng.choices([step for _, step in steps], [weight for weight, _ in steps])
    chosen()


@pytest.mark.requirement("A3", "A4", "A5")
def test_the_promises_hold_on_long_walks_that_take_every_step_of_the_table() -> None:
    taken: Counter[tuple[TurnPhase, TurnStepKind]] = Counter()
    for seed in range(WALKS):
        taken += walk(TurnRules, seed).steps
    seldom = {row: taken[row] for row in TRANSITIONS if taken[row] < 10}
    assert not seldom, "the walks do not show what they claim to"


# -- broken turns, which the machine above must catch -------------------------------------------


class LastComeFirstServed(TurnMachine):
    def _next_of(self, queue: tuple[Waiting, ...]) -> tuple[Waiting, tuple[Waiting, ...]]:
        return queue[-1], queue[:-1]


class SeizedButNotSticky(TurnMachine):
    def wakes_at(self) -> float | None:
        return None if self.holder is None else self._idle_until(bool(self.queue))


class ImplicitHoldStaysOnLeave(TurnMachine):
    def handle(self, event: ev.TurnEvent) -> list[ev.TurnOutcome]:
        if isinstance(event, ev.LeaveStep) and event.actor == self.holder:
            self.away = True
            return []
        return super().handle(event)


class RefusesHalfDone(TurnMachine):
    def handle(self, event: ev.TurnEvent) -> list[ev.TurnOutcome]:
        if isinstance(event, ev.HandOff):
            self.queue = self.queue[1:]
        return super().handle(event)


class FrozenByTheClock(TurnMachine):
    def _no_later_than(self, now: float) -> None:
        pass


MUTANTS: dict[type[TurnMachine], str] = {
    LastComeFirstServed: "somebody was served out of order",
    SeizedButNotSticky: "a seized turn was moved",
    ImplicitHoldStaysOnLeave: "a leave kept or took the wrong hold",
    RefusesHalfDone: "a refused event changed something|the queue changed and nobody was told",
    FrozenByTheClock: "a clock set back froze the turn",
}


@pytest.mark.requirement("A3", "A4", "A5")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_properties_catch_a_broken_turn(mutant: type[TurnMachine]) -> None:
    broken = type("Broken", (TurnRules,), {"turn_class": mutant})
    with pytest.raises(AssertionError, match=MUTANTS[mutant]):
        for seed in range(WALKS):
            walk(broken, seed)


# -- the table, against every state that can be reached -----------------------------------------


def _events(now: float) -> Iterator[ev.TurnEvent]:
    three = ACTORS[:3]
    yield ev.TurnTick(now)
    for who in three:
        yield ev.RequestStep(who, now)
        yield ev.RequestStep(who, now, explicit=False)
        yield ev.GrantStep(who, None, now)
        yield ev.YieldStep(who, now)
        yield ev.SeizeTurn(who, now)
        yield ev.WithdrawStep(who)
        yield ev.LeaveStep(who, now)
        yield ev.Return(who)
        yield ev.WroteStep(who, now)
        for to in three:
            yield ev.GrantStep(who, to, now)
            yield ev.HandOff(who, to, now)
    yield ev.RevokeStep(ACTORS[0], now)


def _reachable() -> set[tuple[TurnPhase, TurnStepKind, TurnPhase]]:
    """Every transition of three actors under every policy, from every state there is. Times are
    forgotten between two events; each event comes to a holder just active and one long idle."""
    found: set[tuple[TurnPhase, TurnStepKind, TurnPhase]] = set()
    seen = {TurnMachine(name).kept() for name in POLICIES}
    edge = list(seen)
    while edge:
        kept = edge.pop()
        for now in (0.0, 1e9):
            for event in _events(now):
                turn = TurnMachine.of(kept)
                state = turn.state
                try:
                    moved = turn.handle(event)
                except HoldfastError:
                    continue
                if moved or type(event) not in (ev.TurnTick, ev.WroteStep, ev.Return):
                    found.add((state, STEPS[type(event)], turn.state))
                after = turn.kept()
                queue = tuple(one.replace(since=0.0) for one in after.queue)
                after = after.replace(since=0.0, last_active=0.0, queue=queue)
                if after not in seen:
                    seen.add(after)
                    edge.append(after)
    return found


@pytest.mark.requirement("A4")
def test_the_table_has_exactly_the_transitions_that_can_happen() -> None:
    table = {(a, step, b) for (a, step), targets in TRANSITIONS.items() for b in targets}
    assert _reachable() == table


@pytest.mark.requirement("A5")
def test_every_state_has_a_way_to_be_seized() -> None:
    assert all((state, TurnStepKind.SEIZE) in TRANSITIONS for state in TurnPhase)
