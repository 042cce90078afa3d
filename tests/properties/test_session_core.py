"""The session machine: whatever the order of events, its promises hold."""

from __future__ import annotations

import copy
import hashlib

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.attachments import Seat
from holdfast.core.session import SessionMachine, TurnStep
from holdfast.core.session_state import TRANSITIONS, Phase
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

    def grant(self, actor: ActorId, role: str) -> None:
        rights = tuple(sorted(ROLES[role])) if role else ()
        envelope = Envelope(actor, ALL, rights, granted_by=ADMIN.id)
        self.authority.set(envelope, now=self.now, live=self.live)

    def state(self) -> object:
        session = self.session
        kept = session.turn.kept()
        seats = session.attachments.seats()
        return (session.phase, session.size, session.frozen, session.halted, kept, seats)

    def send(self, event: ev.SessionEvent) -> list[ev.Effect]:
        before = self.state()
        try:
            effects = self.session.handle(event)
        except HoldfastError:
            assert self.state() == before, "a refused event changed something"
            return []
        self.carry_out(effects)
        return effects

    def carry_out(self, effects: list[ev.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ev.Take):
                self.taken.setdefault(effect.operator, []).append(effect.seq)
                self.session.intake.taken(len(effect.data))
            elif isinstance(effect, ev.SetAnswerer):
                self.answerer = effect.seat
            elif isinstance(effect, ev.SetSize):
                self.size = effect.size
            elif isinstance(effect, ev.CloseEnded):
                self.buried += 1
            elif isinstance(effect, ev.DismissOperator):
                self.detach((effect.operator, effect.channel))

    def rights(self, actor: ActorId) -> frozenset[Right]:
        return self.authority.rights(actor, SESSION, (), self.now)

    @rule(seconds=st.sampled_from([0.1, 4.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.carry_out(self.session.tick(self.now))

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
        self.type(who, self.session.intake.last(who) + 1, data)

    @rule(who=operators, seq=st.integers(0, 12), data=st.binary(max_size=4))
    def type(self, who: OperatorId, seq: int, data: bytes) -> None:
        session, actor = self.session, WHOSE[who]
        running = session.phase is not Phase.ENDED and not session.halted
        effects = self.send(ev.InputOffered(actor, self.now, who, seq, data))
        if any(isinstance(effect, ev.Take) for effect in effects):
            assert running, "input reached a session that does not run"
            own = [seat for seat in self.seats.values() if seat.operator == who]
            assert not own or not all(seat.observe for seat in own), "an observer wrote"
            assert session.turn.holder == actor, "one without the turn wrote"
            assert Right.INPUT in self.rights(actor), "one without the right wrote"

    @rule(who=operators, narrowed=st.booleans())
    def type_the_short_way(self, who: OperatorId, narrowed: bool) -> None:
        """Whenever the short way takes a key, the long way would have: also in the moment between
        an envelope's narrowing and the session's being told of it."""
        self.type_on(who, b"k")
        seq = self.session.intake.last(who) + 1
        if narrowed and WHOSE[who] != ADMIN.id:
            self.grant(WHOSE[who], "read")
            assert not self.session.next_at_once(who, self.now)
            self.send(ev.AuthorityChanged(ADMIN.id, self.now))
        twin = copy.deepcopy(self.session)
        if self.session.next_at_once(who, self.now) == seq:
            self.session.took_at_once(who, seq, self.now)
            effects = twin.handle(ev.InputOffered(WHOSE[who], self.now, who, seq, b"k"))
            assert effects == [ev.Take(WHOSE[who], who, seq, b"k", "keys")]
            assert twin.turn.kept() == self.session.turn.kept()
            self.taken.setdefault(who, []).append(seq)

    @rule(who=operators, size=sizes, channel=st.none() | st.integers(0, 3))
    def resize(self, who: OperatorId, size: Size, channel: int | None) -> None:
        before, holder = self.session.size, self.session.turn.holder
        self.send(ev.SizeAsked(WHOSE[who], self.now, who, size, channel))
        if holder not in (None, WHOSE[who], self.session.turn.holder):
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
        if self.session.phase is not Phase.ENDED and Right.SEIZE in self.rights(who):
            assert self.session.turn.holder == who, "a seizure was delayed"
            assert not halt or (self.session.halted and effects[-1] == ev.Freeze("", ""))

    @rule(who=actors, role=st.sampled_from(["", "read", "execute", "admin"]))
    def change_an_envelope(self, who: ActorId, role: str) -> None:
        if who != ADMIN.id:
            self.grant(who, role)
            self.send(ev.AuthorityChanged(ADMIN.id, self.now))

    @rule(frozen=st.booleans())
    def the_kernel_tells_of_a_halt(self, frozen: bool) -> None:
        if self.session.halted:
            self.send(ev.FreezeReported(HOST_ACTOR, self.now, frozen))

    @rule(who=actors)
    def resume(self, who: ActorId) -> None:
        if self.send(ev.ResumeAsked(who, self.now)):
            self.send(ev.Thawed(HOST_ACTOR, self.now))

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
    def a_session_is_buried_once_and_for_ever(self) -> None:
        assert self.buried == (1 if self.session.phase is Phase.ENDED else 0)

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
        if holder is not None and self.session.phase is not Phase.ENDED:
            assert Right.INPUT in self.rights(holder)

    @invariant()
    def whoever_watches_may_watch(self) -> None:
        if self.session.phase is not Phase.ENDED:
            for seat in self.seats.values():
                assert Right.OBSERVE in self.rights(ActorId(seat.actor))

    @invariant()
    def the_size_is_always_a_possible_one(self) -> None:
        assert self.session.size == self.size.checked()


SessionRules.TestCase.settings = settings(
    max_examples=100, stateful_step_count=60, derandomize=True, deadline=None
)
TestSessionMachine = SessionRules.TestCase


def test_nothing_leads_out_of_the_ended_phase() -> None:
    assert not [step for phase, step in TRANSITIONS if phase is Phase.ENDED]
