"""The session machine: whatever the order of events, its promises hold."""

from __future__ import annotations

import copy
import hashlib

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.attachments import Seat
from holdfast.core.session import SessionMachine, TurnStep
from holdfast.core.session_state import Phase, State, StateStep
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.model.actor import Actor, ActorKind, Colour
from holdfast.model.envelope import ALL, ROLES, Envelope, Right
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending

SESSION = SessionId.of_key(bytes(32))


def _actor(number: int) -> Actor:
    key = hashlib.sha256(b"%d" % number).digest()
    return Actor(
        id=ActorId.of_key(key),
        name=f"actor-{number}",
        kind=ActorKind.HUMAN,
        key=key,
        display=f"actor {number}",
        colour=Colour.RED,
        uid=1000,
        local=False,
        created_at=0.0,
    )


ADMIN, *OTHERS = (_actor(number) for number in range(4))
ACTORS = [ADMIN, *OTHERS]
# Each actor has two connections.
OPERATORS = [OperatorId(f"{n:032x}") for n in range(1, 2 * len(ACTORS) + 1)]
WHOSE = {operator: ACTORS[index // 2].id for index, operator in enumerate(OPERATORS)}
operators = st.sampled_from(OPERATORS)
actors = st.sampled_from([actor.id for actor in ACTORS])
sizes = st.sampled_from([Size(80, 24), Size(100, 30), Size(132, 43), Size(0, 24), Size(80, 2000)])


ROOM = 6  # bytes that go into custody before the program reads


class SessionRules(RuleBasedStateMachine):
    """Random operators, inputs, turns, sizes and ends, checked against a plain model of each
    promise."""

    channels = Bundle("channels")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        admin = Envelope(ADMIN.id, ALL, tuple(sorted(ROLES["admin"])))
        self.authority = Authority(ACTORS, [admin])
        self.live = ((SESSION, (), 1000),)
        for actor in OTHERS:
            self.grant(actor.id, "execute")
        self.session = SessionMachine(SESSION, (), Size(80, 24), self.authority, TurnMachine())
        self.taken: dict[OperatorId, list[int]] = {}
        self.seats: dict[tuple[OperatorId, int], Seat] = {}
        self.answerer: Seat | None = None
        self.size = Size(80, 24)
        self.buried = 0
        self.room = ROOM
        self.halted = False  # asked for, and no resume since

    def grant(self, actor: ActorId, role: str) -> None:
        rights = tuple(sorted(ROLES[role])) if role else ()
        envelope = Envelope(actor, ALL, rights, granted_by=ADMIN.id)
        self.authority.set(envelope, now=self.now, live=self.live)

    def state(self) -> object:
        session = self.session
        kept = session.turn.kept()
        seats = session.attachments.seats()
        return (session.state, session.size, session.halted_actors, kept, seats)

    def send(self, event: ev.SessionEvent) -> list[do.Effect]:
        before = self.state()
        try:
            effects = self.session.handle(event)
        except HoldfastError:
            assert self.state() == before, "a refused event changed something"
            return []
        self.carry_out(effects)
        return effects

    def carry_out(self, effects: list[do.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, do.TakeInputs):
                self.take_inputs()
            elif isinstance(effect, do.RefuseInputs):
                assert effect.inputs
            elif isinstance(effect, do.SetAnswerer):
                self.answerer = effect.seat
            elif isinstance(effect, do.SetSize):
                self.size = effect.size
            elif isinstance(effect, do.CloseEnded):
                self.buried += 1
            elif isinstance(effect, do.DismissOperator):
                self.detach((effect.operator, effect.channel))

    def take_inputs(self) -> None:
        inputs = self.session.inputs
        while (first := inputs.next(self.room)) is not None:
            running = not (self.session.state.is_over or self.session.state.is_stopped)
            assert running, "input reached a session that does not run"
            assert self.session.turn.holder == first.actor, "one without the turn wrote"
            inputs.taken(first)
            self.room -= len(first.data)
            self.taken.setdefault(first.operator, []).append(first.seq)

    @rule()
    def the_program_reads(self) -> None:
        self.room = ROOM
        self.send(ev.RoomMade(HOST_ACTOR, self.now))

    def rights(self, actor: ActorId) -> frozenset[Right]:
        return self.authority.rights(actor, SESSION, (), self.now)

    @rule(seconds=st.sampled_from([0.1, 4.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.send(ev.TimePassed(HOST_ACTOR, self.now))

    @rule(target=channels, who=operators, number=st.integers(0, 3), observe=st.booleans(),
          raw=st.booleans(), size=st.none() | sizes)  # fmt: skip
    def attach(
        self, who: OperatorId, number: int, observe: bool, raw: bool, size: Size | None
    ) -> tuple[OperatorId, int]:
        seat = Seat(who, number, observe, raw, WHOSE[who])
        before, holder = self.session.size, self.session.turn.holder
        if self.send(ev.ChannelOpened(WHOSE[who], self.now, seat, size)):
            self.seats.pop((who, number), None)
            self.seats[who, number] = seat
            if observe or holder not in (None, WHOSE[who]):
                assert self.session.size == before, "one without the turn resized the session"
        return who, number

    @rule(channel=channels)
    def detach(self, channel: tuple[OperatorId, int]) -> None:
        self.send(ev.ChannelClosed(WHOSE[channel[0]], self.now, *channel))
        self.seats.pop(channel, None)

    @rule(who=actors)
    def last_connection_goes(self, who: ActorId) -> None:
        self.send(ev.ActorDisconnected(who, self.now))

    @rule(who=operators, data=st.binary(max_size=4))
    def type_on(self, who: OperatorId, data: bytes) -> None:
        self.type(who, self.session.inputs.last(who) + 1, data)

    @rule(who=operators, seq=st.integers(0, 12), data=st.binary(max_size=4))
    def type(self, who: OperatorId, seq: int, data: bytes) -> None:
        session, actor = self.session, WHOSE[who]
        effects = self.send(ev.InputOffered(actor, self.now, who, seq, data))
        if any(isinstance(effect, do.TakeInputs) for effect in effects):
            assert not self.halted, "input was taken after a halt was asked for"
            own = [seat for seat in self.seats.values() if seat.operator == who]
            assert not own or not all(seat.observe for seat in own), "an observer wrote"
            assert session.turn.holder == actor, "one without the turn wrote"
            assert Right.INPUT in self.rights(actor), "one without the right wrote"

    @rule(who=operators, narrowed=st.booleans())
    def type_after_a_decision_is_remembered(self, who: OperatorId, narrowed: bool) -> None:
        """A remembered decision takes a key only where a new one would: also in the moment between
        an envelope's narrowing and the session's being told of it."""
        self.type_on(who, b"k")
        if narrowed and WHOSE[who] != ADMIN.id:
            self.grant(WHOSE[who], "read")
        twin = copy.deepcopy(self.session)
        twin._decision = None
        key = ev.InputOffered(WHOSE[who], self.now, who, self.session.inputs.last(who) + 1, b"k")
        judged = []
        for session in (self.session, twin):
            try:
                judged.append(str(session.handle(key)))
            except HoldfastError as refused:
                judged.append(refused.code)
        assert judged[0] == judged[1]
        assert twin.turn.kept() == self.session.turn.kept()
        self.take_inputs()
        self.send(ev.AuthorityChanged(ADMIN.id, self.now))

    @rule(who=operators, size=sizes, channel=st.none() | st.integers(0, 3))
    def resize(self, who: OperatorId, size: Size, channel: int | None) -> None:
        before = self.session.size
        self.send(ev.SizeAsked(WHOSE[who], self.now, who, size, channel))
        if self.session.turn.holder not in (None, WHOSE[who]):  # an idle turn may be taken by it
            assert self.session.size == before, "one without the turn resized the session"

    @rule(who=operators)
    def signal(self, who: OperatorId) -> None:
        if self.send(ev.SignalAsked(WHOSE[who], self.now, who, 2)):
            assert self.session.turn.holder == WHOSE[who]

    @rule(who=actors, other=actors, step=st.integers(0, 6))
    def do_something_about_the_turn(self, who: ActorId, other: ActorId, step: int) -> None:
        steps: list[turn.TurnEvent] = [
            turn.RequestStep(who, self.now),
            turn.GrantStep(who, other, self.now),
            turn.YieldStep(who, self.now),
            turn.HandOff(who, other, self.now),
            turn.RevokeStep(who, self.now),
            turn.WithdrawStep(who),
            turn.BlindStep(who, True),
        ]
        self.send(TurnStep(who, self.now, steps[step]))

    @rule(who=actors, halt=st.booleans())
    def seize(self, who: ActorId, halt: bool) -> None:
        effects = self.send(ev.SeizeAsked(who, self.now, "", halt))
        state = self.session.state
        if not (state.is_over or state.is_fenced) and Right.SEIZE in self.rights(who):
            assert self.session.turn.holder == who, "a seizure was delayed"
            assert not halt or (state.is_halted and effects[-1] == do.Freeze(""))
            self.halted = self.halted or halt

    @rule(who=actors, role=st.sampled_from(["", "read", "execute", "admin"]))
    def change_an_envelope(self, who: ActorId, role: str) -> None:
        if who != ADMIN.id:
            self.grant(who, role)
            self.send(ev.AuthorityChanged(ADMIN.id, self.now))

    @rule(frozen=st.booleans())
    def the_kernel_tells_of_a_halt(self, frozen: bool) -> None:
        self.send(ev.FreezeReported(HOST_ACTOR, self.now, frozen))

    @rule(who=actors)
    def resume(self, who: ActorId) -> None:
        if self.send(ev.ResumeAsked(who, self.now)):
            self.halted = False

    @rule(runs=st.booleans())
    def the_kernel_tells_of_a_resume(self, runs: bool) -> None:
        """At any time: the report of an earlier resume may come after a later halt."""
        self.send(ev.Thawed(HOST_ACTOR, self.now, runs))

    @rule(held=st.booleans())
    def the_lease(self, held: bool) -> None:
        lease = ev.LeaseHeld(HOST_ACTOR, self.now, 2) if held else None
        self.send(lease or ev.LeaseLost(HOST_ACTOR, self.now, "lapse"))

    @rule(who=actors)
    def ask_for_the_end(self, who: ActorId) -> None:
        if self.send(ev.EndAsked(who, self.now)):
            assert Right.END in self.rights(who)

    @precondition(lambda self: len(self.taken) > 2)
    @rule(code=st.integers(0, 255))
    def main_process_ends(self, code: int) -> None:
        first = self.session.ending
        self.send(ev.MainEnded(HOST_ACTOR, self.now, Ending(code=code)))
        if first is not None:
            assert self.session.ending == first, "an ending was rewritten"

    @invariant()
    def every_input_is_taken_once_and_in_order(self) -> None:
        for seqs in self.taken.values():
            assert seqs == sorted(set(seqs))

    @invariant()
    def what_waits_may_still_be_taken(self) -> None:
        session = self.session
        waiting = {each.actor for each in session.inputs._queue}
        assert waiting <= {session.turn.holder}
        assert not waiting or not (session.state.is_stopped or session.state.is_over)

    @invariant()
    def a_halt_asked_for_is_in_force_until_a_resume(self) -> None:
        assert not self.halted or self.session.state.is_halted or self.session.state.is_over

    @invariant()
    def a_session_is_buried_once_and_for_ever(self) -> None:
        assert self.buried == (1 if self.session.state.is_over else 0)

    @invariant()
    def only_the_holders_terminal_answers_and_no_observer_does(self) -> None:
        holder = self.session.turn.holder
        eligible = [
            seat
            for seat in self.seats.values()
            if seat.actor == holder and not (seat.observe or seat.raw)
        ]
        assert (self.answerer is None) == (not eligible)
        assert self.answerer is None or self.answerer in eligible

    @invariant()
    def whoever_holds_the_turn_may_write(self) -> None:
        holder = self.session.turn.holder
        if holder is not None and not self.session.state.is_over:
            assert Right.INPUT in self.rights(holder)

    @invariant()
    def whoever_watches_may_watch(self) -> None:
        if not self.session.state.is_over:
            for seat in self.seats.values():
                assert Right.OBSERVE in self.rights(ActorId(seat.actor))

    @invariant()
    def the_size_is_always_a_possible_one(self) -> None:
        assert self.session.size == self.size.checked()


SessionRules.TestCase.settings = settings(
    max_examples=100, stateful_step_count=60, derandomize=True, deadline=None
)
TestSessionMachine = SessionRules.TestCase


@pytest.mark.requirement("A9")
def test_nothing_leads_out_of_an_end() -> None:
    for end in (Phase.ENDED, Phase.LOST):
        assert all(State(end).after(step) == State(end) for step in StateStep)
