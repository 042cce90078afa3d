"""The session machine: whatever the order of events, its promises hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from holdfast.core import session as core
from holdfast.core.attachment import Seat
from holdfast.core.lifecycle import TRANSITIONS, Phase
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import OperatorId
from holdfast.model.size import Size
from holdfast.model.state import Ending

OPERATORS = [OperatorId(f"{n:032x}") for n in range(1, 5)]
operators = st.sampled_from(OPERATORS)
sizes = st.builds(Size, st.integers(-1, 1100), st.integers(0, 1100))


class SessionMachine(RuleBasedStateMachine):
    """Random operators, inputs, sizes and ends, checked against a plain model of each promise."""

    channels = Bundle("channels")

    def __init__(self) -> None:
        super().__init__()
        self.session = core.Session(Size(80, 24))
        self.taken: dict[OperatorId, list[int]] = {}
        self.seats: dict[tuple[OperatorId, int], Seat] = {}
        self.answerer: Seat | None = None
        self.size = Size(80, 24)
        self.buried = 0

    def send(self, event: core.Event) -> list[core.Effect]:
        before = (self.session.phase, self.session.size, self.session.frozen)
        try:
            effects = self.session.handle(event)
        except HoldfastError:
            now = (self.session.phase, self.session.size, self.session.frozen)
            assert now == before, "a refused event changed something"
            return []
        for effect in effects:
            if isinstance(effect, core.Take):
                self.taken.setdefault(effect.operator, []).append(effect.seq)
                self.session.intake.taken(len(effect.data))
            elif isinstance(effect, core.Answerer):
                self.answerer = effect.seat
            elif isinstance(effect, core.SetSize):
                self.size = effect.size
            elif isinstance(effect, core.Bury):
                self.buried += 1
        return effects

    @rule(target=channels, who=operators, number=st.integers(0, 3), observe=st.booleans(),
          raw=st.booleans(), size=st.none() | sizes)  # fmt: skip
    def attach(
        self, who: OperatorId, number: int, observe: bool, raw: bool, size: Size | None
    ) -> tuple[OperatorId, int]:
        seat = Seat(who, number, observe, raw)
        before = self.session.size
        if self.send(core.Opened(seat, size)):
            self.seats.pop((who, number), None)
            self.seats[who, number] = seat
            if observe:
                assert self.session.size == before, "an observer resized the session"
        return who, number

    @rule(channel=channels)
    def detach(self, channel: tuple[OperatorId, int]) -> None:
        self.send(core.Left(*channel))
        self.seats.pop(channel, None)

    @rule(who=operators, seq=st.integers(0, 12), data=st.binary(max_size=4))
    def type(self, who: OperatorId, seq: int, data: bytes) -> None:
        running = self.session.phase is not Phase.ENDED and not self.session.frozen
        effects = self.send(core.Offered(who, seq, data))
        if any(isinstance(effect, core.Take) for effect in effects):
            assert running, "input reached a session that does not run"
            own = [seat for seat in self.seats.values() if seat.operator == who]
            assert not own or not all(seat.observe for seat in own), "an observer wrote"

    @rule(who=operators, size=sizes)
    def resize(self, who: OperatorId, size: Size) -> None:
        self.send(core.SizeAsked(who, size))

    @rule(frozen=st.booleans())
    def freeze(self, frozen: bool) -> None:
        self.send(core.Froze(frozen))

    @rule()
    def ask_for_the_end(self) -> None:
        self.send(core.EndAsked())

    @rule(code=st.integers(0, 255))
    def main_process_ends(self, code: int) -> None:
        first = self.session.ending
        self.send(core.MainEnded(Ending(code=code)))
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
    def exactly_one_terminal_answers_and_no_observer_does(self) -> None:
        eligible = [seat for seat in self.seats.values() if not (seat.observe or seat.raw)]
        assert (self.answerer is None) == (not eligible)
        assert self.answerer is None or self.answerer in eligible

    @invariant()
    def the_size_is_always_a_possible_one(self) -> None:
        assert self.session.size == self.size.checked()


SessionMachine.TestCase.settings = settings(max_examples=150, derandomize=True, deadline=None)
TestSessionMachine = SessionMachine.TestCase


def test_nothing_leads_out_of_the_ended_phase() -> None:
    assert not [step for phase, step in TRANSITIONS if phase is Phase.ENDED]
