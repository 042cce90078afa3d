"""When keys are drawn ahead of their echo: by how long the way is (cli.attach.predicted_typing)."""

from __future__ import annotations

import pytest

from holdfast.cli.attach.predicted_typing import (
    ALWAYS,
    AUTO,
    CHOSEN_BY,
    NEVER,
    PredictedTyping,
    chosen,
)
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.size import Size
from holdfast.model.state import SessionState
from holdfast.model.turn_info import TurnInfo
from holdfast.sdk.prediction.round_trip import FAST_S, SAMPLES, SLOW_S, RoundTrip
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

SIZE = Size(40, 5)
LATE, SOON = SLOW_S * 3, FAST_S / 2


class Client:
    """What a terminal client does with it, and what it asks the host."""

    def __init__(self, choice: str = AUTO) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self.written = b""
        self.seq = self.offset = self._answered = 0
        self.ahead = PredictedTyping(choice, self._ask, self._write, lambda: self.now)

    def _ask(self, kind: object, _fields: dict[str, object]) -> int:
        self.asked.append(getattr(kind, "tag", ""))
        return len(self.asked)

    def _write(self, _fd: int, data: bytes) -> None:
        self.written += data

    def attach(self, far: bool, seconds: float) -> None:
        self.ahead.connected(far, seconds)
        self.ahead.paint(b"\x1b[H$ ", SIZE)

    def answer(self, seconds: float, *, blind: bool = False) -> None:
        """The next question for the turn is answered, all having taken so long."""
        self.now += seconds
        questions = [at for at, tag in enumerate(self.asked, 1) if tag == turn_messages.GetTurn.tag]
        self.ahead.on_message(turn_messages.TurnShown(questions[self._answered], turn(blind), True))
        self._answered += 1

    def type(self, letter: bytes, took: float = 0.0) -> None:
        """Typed, accepted and echoed, after so long."""
        self.seq += 1
        self.ahead.typed(self.seq, letter)
        self.now += took
        self.ahead.on_message(m.Accepted(1, self.seq, self.offset))
        self.offset += 1
        self.ahead.show(letter, self.offset)

    def predicts(self) -> bool:
        """Whether a letter is drawn before anything comes back."""
        self.type(b"a", LATE)
        self.written = b""
        self.seq += 1
        self.ahead.typed(self.seq, b"b")
        drawn = b"b" in self.written
        self.now += LATE
        self.ahead.on_message(m.Accepted(1, self.seq, self.offset))
        self.offset += 1
        self.ahead.show(b"b", self.offset)
        return drawn


SESSION = SessionId("0" * 26)


def turn(blind: bool) -> TurnInfo:
    return TurnInfo("me", "me", blind=blind)


def far_client() -> Client:
    client = Client()
    client.attach(True, LATE)
    client.answer(LATE)
    client.answer(LATE)
    return client


def test_a_host_on_this_machine_is_not_even_measured() -> None:
    client = Client()
    client.attach(False, 10.0)
    assert not client.ahead.on and not client.ahead.measures and client.asked == []
    client.ahead.measure(1)
    assert client.asked == []


def test_a_long_way_is_believed_when_it_was_measured_so_every_time() -> None:
    client = Client()
    client.attach(True, LATE)
    assert client.ahead.on, "in doubt: output is followed, so that nothing must be painted again"
    assert not client.predicts()
    client = far_client()
    assert client.ahead.on and client.predicts()


def test_one_slow_answer_is_no_long_way() -> None:
    client = Client()
    client.attach(True, LATE)
    client.answer(SOON)
    assert not client.ahead.on
    assert client.ahead.timeout_ms(None) is None


def test_a_way_that_becomes_short_ends_it_and_what_is_drawn_goes() -> None:
    client = far_client()
    assert client.predicts()
    client.seq += 1
    client.ahead.typed(client.seq, b"z")
    client.written = b""
    client.now += SOON
    client.ahead.on_message(m.Accepted(1, client.seq, client.offset))
    assert not client.ahead.on
    assert client.written.startswith(b"\x1b[1D") and b"z" not in client.written


def test_a_way_that_becomes_long_is_noticed_while_keys_are_typed() -> None:
    client = Client()
    client.attach(True, SOON)
    asked = len(client.asked)
    client.ahead.measure(0)
    assert len(client.asked) == asked, "nobody types"
    client.ahead.measure(7)
    client.ahead.measure(7)
    assert len(client.asked) == asked + 1
    for _ in range(SAMPLES):
        assert not client.ahead.lacks_screen
        client.answer(LATE)
    assert client.ahead.on and client.ahead.lacks_screen
    client.ahead.paint(b"\x1b[H$ ", SIZE)
    assert not client.ahead.lacks_screen and client.predicts()


def test_between_slow_and_fast_all_stays_as_it_is() -> None:
    way = RoundTrip()
    middle = (SLOW_S + FAST_S) / 2
    for seconds in (middle,) * SAMPLES:
        way.took(seconds)
    assert not way.slow and not way.doubtful
    for seconds in (LATE,) * SAMPLES:
        way.took(seconds)
    assert way.slow
    for seconds in (middle,) * SAMPLES:
        way.took(seconds)
    assert way.slow
    way.took(SOON)
    assert not way.slow


@pytest.mark.parametrize("state", [SessionState.SECRET, None], ids=["secret", "blind"])
def test_for_a_secret_and_in_a_blind_turn_nothing_is_drawn(state: SessionState | None) -> None:
    client = far_client()
    assert client.predicts()
    if state is not None:
        client.ahead.on_message(m.StateEvent(SESSION, "s", state, 0.0))
    else:
        client.ahead.on_message(
            turn_messages.TurnMessage(SESSION, "blind", 0.0, "me", turn(True), True)
        )
    assert not client.predicts()
    client.ahead.on_message(m.StateEvent(SESSION, "s", SessionState.PROMPT, 0.0))
    client.ahead.on_message(
        turn_messages.TurnMessage(SESSION, "blind", 0.0, "me", turn(False), True)
    )
    assert client.predicts()


def test_the_host_is_asked_to_tell_of_secrets_once_for_each_connection() -> None:
    client = far_client()
    client.ahead.paint(b"\x1b[H$ ", SIZE)
    assert client.asked.count(m.Watch.tag) == 1
    client.ahead.connected(True, LATE)
    assert client.asked.count(m.Watch.tag) == 2


def test_a_refused_key_is_taken_away() -> None:
    client = far_client()
    assert client.predicts()
    client.seq += 1
    client.ahead.typed(client.seq, b"z")
    client.written = b""
    client.ahead.on_message(m.Failed(99, "turn_held", "another has it"))
    assert client.written.startswith(b"\x1b[1D")
    client.written = b""
    client.ahead.close()
    assert client.written == b""


def test_the_choice_is_the_commands_then_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHOSEN_BY, raising=False)
    assert chosen(None) == AUTO
    monkeypatch.setenv(CHOSEN_BY, NEVER)
    assert chosen(None) == NEVER and chosen(ALWAYS) == ALWAYS
    monkeypatch.setenv(CHOSEN_BY, "sometimes")
    with pytest.raises(InvalidArgument):
        chosen(None)


def test_never_and_always_do_not_measure() -> None:
    never, always = Client(NEVER), Client(ALWAYS)
    never.attach(True, LATE)
    always.attach(False, SOON)
    assert not never.ahead.on and not never.ahead.measures and never.asked == []
    assert always.ahead.on and not always.ahead.measures and always.predicts()
