"""The list of sessions to choose from, and which one is next."""

from __future__ import annotations

import pytest

from holdfast.cli.attach.session_chooser import SessionChooser, beside
from holdfast.model.ids import SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState


def info(number: int, *, ended: bool = False) -> SessionInfo:
    return SessionInfo(
        id=SessionId(f"{number:026d}"),
        name=f"name-{number}",
        state=SessionState.ENDED if ended else SessionState.PROMPT,
        argv=("bash",),
        cwd="/",
        pid=0 if ended else 1,
        user="root",
        level=Level.PLAIN,
        epoch=1,
        size=Size(80, 24),
        created_at=float(number),
        operators=0,
        observers=0,
        output_offset=0,
        held_from=0,
        ending=Ending(code=0) if ended else None,
    )


SESSIONS = [info(3), info(1), info(2, ended=True), info(4)]


def test_next_and_previous_go_round_in_the_order_of_their_start_and_leave_out_the_ended() -> None:
    order = []
    here = SESSIONS[1]
    for _ in range(4):
        order.append(here.name)
        found = beside(SESSIONS, here.id, 1)
        assert found is not None
        here = found
    assert order == ["name-1", "name-3", "name-4", "name-1"]
    before = beside(SESSIONS, SESSIONS[1].id, -1)
    assert before is not None and before.name == "name-4"


def test_alone_there_is_none_and_from_an_ended_one_it_is_the_first() -> None:
    assert beside([SESSIONS[0]], SESSIONS[0].id, 1) is None
    assert beside([], SESSIONS[0].id, 1) is None
    found = beside(SESSIONS, SESSIONS[2].id, 1)
    assert found is not None and found.name == "name-1"


@pytest.mark.parametrize("key", (b"q", b"w", b"\x1b", b"\x03"))
def test_the_list_closes_without_a_choice(key: bytes) -> None:
    assert SessionChooser(SESSIONS, SESSIONS[0].id).take(key) == (False, "")


def test_one_is_chosen_by_its_key_or_by_moving_and_enter_and_other_keys_do_nothing() -> None:
    chooser = SessionChooser(SESSIONS, SESSIONS[1].id)
    assert chooser.take(b"9") == (True, "")
    assert chooser.take(b"3") == (False, SESSIONS[3].id)
    assert chooser.take(b"\x1b[B") == (True, "")
    assert chooser.take(b"\r") == (False, SESSIONS[0].id)
    assert chooser.take(b"k") == (True, "") and chooser.take(b"p") == (True, "")
    assert chooser.take(b"\r") == (False, SESSIONS[3].id)


def test_however_many_there_are_the_chosen_one_is_drawn_within_the_terminal() -> None:
    many = [info(number) for number in range(40)]
    chooser = SessionChooser(many, many[20].id)
    drawn = chooser.drawn(Size(30, 10)).decode()
    rows = [part for part in drawn.split("\x1b[") if ";1H" in part]
    assert len(rows) <= 10 and "name-20" in drawn and "more" in drawn
    assert chooser.drawn(None) == b""
