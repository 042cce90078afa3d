"""The gate of the input machine, through every order of offers, verdicts, refusals and restarts:
what is typed is what was offered, in order, each byte at most once; of a refused input nothing
behind its refused commit; and no commit that was not judged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.events import InputOffered
from holdfast.core.gate.commit_bytes import Stop, commit_length, first_stop
from holdfast.core.gate.gated_input import Stage
from holdfast.core.input_machine import InputMachine
from holdfast.model.ids import GATE_OPERATOR, ActorId, OperatorId

ANN, BOB = ActorId.of_key(bytes(32)), ActorId.of_key(bytes(31) + b"b")
OPERATORS = {ANN: OperatorId("a" * 32), BOB: OperatorId("b" * 32)}
ROOM = 64 << 10

PIECES = st.sampled_from(
    [
        *(
            b"ls",
            b" -l",
            b"\r",
            b"\n",
            b"\x0f",
            b"\x1b[200~",
            b"\x1b[201~",
            b"\x1b[A",
            b"\t",
            b"a\nb",
        ),
        *(b"\x1b", b"\x1b\x05", b"\x18", b"\x05", b"\x04", "é".encode(), b"\xc3", b"\x1b[15~"),
    ]
)
INPUTS = st.lists(PIECES, max_size=6).map(b"".join)
STEPS = st.one_of(
    st.tuples(st.just("offer"), st.sampled_from([ANN, BOB]), INPUTS),
    st.tuples(st.just("judge"), st.sampled_from(["allow", "refuse", "hold"]), st.booleans()),
    st.tuples(st.just("restart"), st.booleans(), st.just(b"")),
    st.tuples(st.just("refuse"), st.sampled_from([ANN, BOB]), st.just(b"")),
)


class Typist:
    """A machine, its ledger, and what came of it."""

    def __init__(self) -> None:
        self.ledger: dict[OperatorId, int] = {}
        self.saved: object = None
        self.machine = InputMachine({}, lambda: True)
        self.typed = b""
        self.judged: list[int] = []  # numbers of commits that were allowed
        self.inputs: dict[tuple[OperatorId, int], bytes] = {}
        self.of: dict[tuple[OperatorId, int], bytes] = {}  # what was typed of each

    def offer(self, actor: ActorId, data: bytes) -> None:
        operator = OPERATORS[actor]
        offered = InputOffered(actor, 0.0, operator, self.machine.last(operator) + 1, data)
        try:
            if not self.machine.is_new(offered):
                raise AssertionError("it has a new number")
        except Exception:
            return
        self.inputs[operator, offered.seq] = data
        self.of[operator, offered.seq] = b""
        self.machine.offer(offered)
        self.take()

    def take(self) -> None:
        """As the host does: kept, then taken."""
        machine = self.machine
        while (piece := machine.next(ROOM)) is not None:
            gated = machine.gated
            self.saved = gated.saved() if gated is not None else self.saved
            whole = gated.whole if gated is not None else piece
            if gated is None or piece.operator != GATE_OPERATOR:
                stop = first_stop(piece.data)
                assert stop.stop is Stop.NOTHING, "it would commit something unjudged"
            elif gated.stage is not Stage.TEXT:
                assert piece.seq in self.judged
                assert len(piece.data) == commit_length(piece.data), "one key at a time"
            self.ledger[piece.operator] = piece.seq
            self.typed += piece.data
            self.of[whole.operator, whole.seq] += piece.data
            machine.taken(piece)

    def judge(self, how: str, is_text: bool) -> None:
        gated = self.machine.unjudged
        if gated is None:
            gated = self.machine.awaits_approval
            if gated is None:
                return
            gated.stage = Stage.COMMIT  # somebody approved it
        if gated.stage is Stage.PASTE:
            gated.paste_is_text(is_text)
            if is_text:
                # Its newlines are text to the shell: they are typed as they are.
                self._take_paste()
        elif how == "allow":
            self.judged.append(gated.number)
            gated.stage = Stage.PASS
        elif how == "hold":
            gated.stage = Stage.APPROVAL
        else:
            self.machine.refuse(lambda each: each is gated.whole)
        self.take()

    def _take_paste(self) -> None:
        piece = self.machine.next(ROOM)
        gated = self.machine.gated
        assert piece is not None and gated is not None
        assert piece.data.startswith(b"\x1b[200~") and piece.data.endswith(b"\x1b[201~")
        self.saved = gated.saved()
        self.ledger[piece.operator] = piece.seq
        self.typed += piece.data
        self.of[gated.whole.operator, gated.whole.seq] += piece.data
        self.machine.taken(piece)

    def restart(self, between: bool) -> None:
        """A daemon dies, perhaps between keeping what waits and taking the next piece. Inputs that
        only waited are lost with it, and not acknowledged."""
        gated = self.machine.gated
        before = self.machine
        saved = gated.saved() if gated is not None else None
        self.machine = InputMachine(dict(self.ledger), lambda: True, saved)
        after = self.machine.gated
        assert (after is None) == (gated is None)
        if gated is not None and after is not None:
            assert after.data == gated.data
            key = gated.whole.operator, gated.whole.seq
            # The rest of it is what the new daemon has of it.
            assert self.inputs[key].endswith(after.data)
        for key in [key for key in self.inputs if before.waits(*key)]:
            if not self.machine.waits(*key):
                del self.inputs[key], self.of[key]
        self.take()


@pytest.mark.requirement("A8")
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=400, deadline=None)
def test_what_is_typed_was_offered_and_every_commit_judged(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    typist = Typist()
    for what, first, second in steps:
        if what == "offer":
            typist.offer(first, second)
        elif what == "judge":
            typist.judge(first, bool(second))
        elif what == "restart":
            typist.restart(first)
        else:
            typist.machine.refuse(lambda each, who=first: each.actor == who)  # type: ignore[misc]
            typist.take()
        for key, typed in typist.of.items():
            assert typist.inputs[key].startswith(typed), "typed in order, each byte once"
    # Order: what was typed of the inputs is typed in the order of their numbers.
    for operator in OPERATORS.values():
        whole = b"".join(typed for (who, _), typed in sorted(typist.of.items()) if who == operator)
        assert len(whole) <= len(typist.typed)


@pytest.mark.requirement("A8")
@given(st.lists(INPUTS, min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_allowed_inputs_are_typed_whole_and_in_order(inputs: list[bytes]) -> None:
    typist = Typist()
    for data in inputs:
        typist.offer(ANN, data)
    for _ in range(200):
        typist.judge("allow", True)
    assert typist.typed == b"".join(typist.inputs.values())
    assert typist.machine.is_empty


@pytest.mark.requirement("A8")
@given(st.lists(INPUTS, min_size=1, max_size=4), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_a_daemon_killed_between_any_two_steps_types_nothing_twice(
    inputs: list[bytes], taken: int
) -> None:
    """At any piece: kept, and then perhaps taken, before the daemon dies."""
    machine, ledger, typed = InputMachine({}, lambda: True), {}, b""
    for seq, data in enumerate(inputs, 1):
        offered = InputOffered(ANN, 0.0, OPERATORS[ANN], seq, data)
        try:
            machine.is_new(offered)
        except Exception:
            return
        machine.offer(offered)
    whole = b"".join(inputs)
    for _ in range(100):
        gated = machine.gated
        if gated is not None and gated.stage in (Stage.COMMIT, Stage.PASTE):
            gated.stage = Stage.PASS
        piece = machine.next(ROOM)
        if piece is None:
            break
        saved = machine.gated.saved() if machine.gated is not None else None
        taken -= 1
        if taken in (0, -1):
            if taken == 0:  # it dies before the ledger knows of it
                pass
            else:
                typed += piece.data
                ledger[piece.operator] = piece.seq
            machine = InputMachine(dict(ledger), lambda: True, saved)
            # The client offers again what was not acknowledged.
            for seq, data in enumerate(inputs, 1):
                offered = InputOffered(ANN, 0.0, OPERATORS[ANN], seq, data)
                if machine.is_new(offered):
                    machine.offer(offered)
            continue
        typed += piece.data
        ledger[piece.operator] = piece.seq
        machine.taken(piece)
    assert typed == whole
