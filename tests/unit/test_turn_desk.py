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
