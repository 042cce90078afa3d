"""The status line about the turn: what the host says in several messages is read as one."""

from __future__ import annotations

from itertools import permutations

import pytest

from holdfast.cli.attach.turn_prompts import TurnPrompts
from holdfast.model.ids import SessionId
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

SESSION = SessionId.of_key(bytes(32))
MINE = turn_messages.TurnMessage(
    SESSION, "seize", 1.0, "ann", TurnInfo(holder="1", holder_name="ann"), True
)
HANDED = turn_messages.HandedOver(
    SESSION,
    Handoff(
        since_seq=0,
        through_seq=1,
        since_at=0.5,
        commands=(),
        commands_left_out=0,
        moves=(),
        refused=0,
        blind_bytes=0,
        cwd="/",
        changes=(),
        changes_known=True,
        jobs=(),
        unsubmitted="rm -r",
    ),
)
NOT_FROZEN = turn_messages.Halted(7, Receipt(1.0, "bot", "session", False, running=(12, 13)))


def line_after(*told: m.Message) -> str:
    """The status line after these, the last of which may be all that anybody gets to see."""
    said: list[str] = []
    desk = TurnPrompts(lambda _kind, _fields: 1, lambda text, _seconds: said.append(text), print)
    assert all(desk.on_message(message) for message in told)
    return said[-1]


@pytest.mark.parametrize("later", list(permutations([HANDED, NOT_FROZEN])), ids=["first", "last"])
def test_who_took_the_turn_reads_what_is_not_frozen_and_what_was_left_in_any_order(
    later: tuple[m.Message, ...],
) -> None:
    line = line_after(MINE, *later)
    assert line.startswith("you have the turn from bot; NOT frozen: 2 processes still run")
    assert "text left at the prompt: rm -r" in line


def test_what_was_left_does_not_hide_whose_the_turn_is() -> None:
    assert line_after(MINE, HANDED).startswith("you have the turn; since you last had it: text")


def test_who_lost_the_turn_for_being_idle_reads_to_whom_and_how_it_is_taken_back() -> None:
    theirs = TurnInfo(holder="2", holder_name="bot")
    told = turn_messages.TurnMessage(SESSION, "request", 2.0, "bot", theirs, False, "idle")
    line = line_after(MINE, told, turn_messages.TurnLostMessage(SESSION, "bot", 2.0, "idle"))
    assert line == "bot took the turn that you left idle; C-\\ s takes it back"


def test_a_turn_that_is_had_again_is_not_told_with_the_news_of_last_time() -> None:
    assert line_after(MINE, HANDED, NOT_FROZEN, MINE) == "you have the turn"


def test_who_never_had_it_is_told_what_was_done_so_far() -> None:
    first = turn_messages.HandedOver(SESSION, HANDED.handoff.replace(since_at=None))
    assert line_after(MINE, first).startswith("you have the turn; so far: text left")


def test_what_is_typed_while_the_turn_is_asked_for_comes_behind_what_was_refused() -> None:
    typed: list[bytes] = []
    desk = TurnPrompts(lambda _kind, _fields: 5, lambda _text, _seconds: None, typed.append)
    assert not desk.holds(b"before")
    desk.refused(b"l")
    assert desk.asks and desk.holds(b"s")
    assert desk.on_message(
        turn_messages.TurnShown(5, TurnInfo(holder="1", holder_name="ann"), True)
    )
    assert typed == [b"ls"]
    assert not desk.asks and not desk.holds(b"after")


THEIRS = TurnInfo(holder="2", holder_name="bot")


class _Typist:
    """An operator without the turn, with a clock that the test sets."""

    def __init__(self) -> None:
        self.typed: list[bytes] = []
        self.said: list[str] = []
        self.now = 10.0
        self.desk = TurnPrompts(
            lambda _kind, _fields: 5,
            lambda text, _seconds: self.said.append(text),
            self.type,
            clock=lambda: self.now,
        )

    def key(self, data: bytes) -> None:
        if not self.desk.swallows(data):
            self.type(data)

    def type(self, data: bytes) -> None:
        if not self.desk.holds(data):
            self.typed.append(data)


@pytest.mark.parametrize("pause", (True, False), ids=("pause", "enter"))
def test_a_turn_that_comes_while_somebody_types_never_delivers_the_tail_of_a_line(
    pause: bool,
) -> None:
    human = _Typist()
    human.desk.refused(b"e")
    assert human.desk.on_message(turn_messages.TurnShown(5, THEIRS, False))
    human.key(b"cho ")
    assert human.desk.on_message(MINE)
    human.key(b"rm -rf x")
    assert human.typed == [] and "line not sent" in human.said[-1]
    if pause:
        human.now += 2.0
    else:
        human.key(b"\r")
        human.now += 0.2
    human.key(b"ls\r")
    assert human.typed == [b"ls\r"]


def test_of_keys_typed_where_another_has_the_turn_one_goes_and_the_rest_waits_for_its_fate() -> (
    None
):
    human = _Typist()
    told = turn_messages.TurnMessage(SESSION, "request", 2.0, "bot", THEIRS, False, "")
    assert human.desk.on_message(told)
    for key in (b"l", b"s", b"\r"):
        human.key(key)
    assert human.typed == [b"l"]
    assert human.desk.on_message(MINE)  # it had become free: the first key took it
    assert human.typed == [b"l", b"s\r"]


def test_a_key_that_comes_back_goes_before_those_typed_after_it_was_sent() -> None:
    human = _Typist()
    human.desk.refused(b"e")
    human.key(b"h")
    human.desk.refused(b"c")  # sent before the first one came back
    assert human.desk.on_message(turn_messages.TurnShown(5, MINE.turn, True))
    assert human.typed == [b"ech"]


def test_a_turn_that_came_without_a_word_holds_nothing_back_once_a_key_was_taken() -> None:
    human = _Typist()
    human.desk.attached("bot")
    assert human.desk.on_message(turn_messages.TurnShown(5, THEIRS, False))
    assert not human.desk.usual and human.said == []
    human.key(b"l")
    human.key(b"s")
    assert human.typed == [b"l"]
    human.desk.taken()
    assert human.typed == [b"l", b"s"] and human.desk.usual


def test_of_more_than_is_held_nothing_is_sent() -> None:
    human = _Typist()
    human.desk.refused(b"echo ")
    human.key(b"x" * (64 << 10))
    human.key(b"y\r")
    human.key(b"rm x\r")
    assert human.desk.on_message(turn_messages.TurnShown(5, MINE.turn, True))
    assert human.typed == [] and "line not sent" in human.said[-1]


def test_the_tail_of_a_line_whose_beginning_a_halt_refused_is_not_sent_after_the_resume() -> None:
    human = _Typist()
    human.desk.failed(9, b"echo ")
    human.key(b"rm x\r")
    assert human.typed == []
    human.now += 0.2
    human.key(b"ls\r")
    assert human.typed == [b"ls\r"]
