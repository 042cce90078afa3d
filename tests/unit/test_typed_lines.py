"""Which line a command is made of, told from what was typed and how much of it is unread."""

from __future__ import annotations

import time

import pytest

from holdfast.core.line_authors import TypedLines
from holdfast.host.session.line_attribution import TypedBefore, after_interrupt
from holdfast.journal import entries
from holdfast.model.limits import TYPED_AHEAD_LINES


def lines(*typed: tuple[str, bytes], hidden: bool = False) -> TypedLines:
    made = TypedLines()
    for actor, data in typed:
        made.typed(actor, data, hidden=hidden)
    return made


A, B, C = ("ann", b"echo a\r"), ("bob", b"echo of-b\r"), ("cid", b"c\r")
SIZE = {who: len(data) for who, data in (A, B, C)}


def test_each_command_takes_the_line_that_was_read_for_it() -> None:
    typed = lines(A, B, C)
    typed.prompted(sum(SIZE.values()))
    assert typed.began(SIZE["bob"] + SIZE["cid"]).authors == ["ann"]
    typed.prompted(SIZE["bob"] + SIZE["cid"] - 3)  # it has begun to read the next
    assert typed.began(SIZE["cid"]).authors == ["bob"]
    typed.prompted(SIZE["cid"])
    assert typed.began(0).authors == ["cid"] and not typed.waits


def test_what_is_taken_up_late_is_told_apart_all_the_same() -> None:
    typed = lines(A, B, C)  # P B(ann) E P B(bob) E P, and the line of cid under way
    typed.prompted(0, 2 + 1)
    assert typed.began(0, 1, prompted_since=True).authors == ["ann"]
    typed.prompted(0, 1 + 1)
    assert typed.began(0, 0, prompted_since=True).authors == ["bob"]
    typed.prompted(0)
    assert typed.began(0).authors == ["cid"]


def test_a_line_read_before_the_prompt_was_seen_is_taken_if_no_other_was() -> None:
    typed = lines(A, B)
    typed.prompted(SIZE["bob"])
    assert typed.began(SIZE["bob"]).authors == ["ann"]
    typed.prompted(SIZE["bob"])
    assert typed.began(0).authors == ["bob"]


def test_what_a_program_read_is_of_no_command() -> None:
    typed = lines(A, B)
    typed.program_read(SIZE["bob"])
    typed.typed("cid", b"x")
    typed.prompted(SIZE["bob"] + 1)
    assert typed.began(1).authors == ["bob"]
    assert typed.authors() == ("cid",)
    typed = lines(A)
    typed.prompted(0)
    typed.settled(0)
    typed.typed(*B)
    assert typed.began(0).authors == ["bob"]


def test_lines_that_one_command_is_made_of_are_all_its_own() -> None:
    typed = lines(("ann", b"echo 'a"), ("bob", b"\r"), C)
    typed.prompted(sum(SIZE.values()))
    assert typed.began(0).authors == ["ann", "bob", "cid"]


def test_a_shell_that_reads_ahead_hides_no_blind_line() -> None:
    typed = lines(A)
    typed.typed("bob", b"secret\r", blind=True)
    typed.prompted(sum(SIZE.values()))
    assert typed.began(0).authors == ["ann", "bob"]
    typed.prompted(0)
    assert typed.began(0).authors == ["bob"] and typed.began(0).blind
    typed.typed(*C)
    assert typed.began(0).authors == ["cid"]


def test_where_a_terminal_edits_the_line_blind_stays_blind() -> None:
    typed = TypedLines()
    typed.typed("ann", b"not this\x15x\r", hidden=True)
    typed.typed("bob", b"secret\x7f\r", blind=True, hidden=True)
    typed.prompted(7)  # the first may be read, or not
    assert typed.began(0).blind


def test_text_without_its_enter_is_not_counted_in_line_mode_and_stays() -> None:
    typed = lines(("ann", b"half"), hidden=True)
    typed.prompted(0)
    assert typed.waits and typed.authors() == ("ann",)
    typed = lines(("ann", b"q"))  # a program that reads keys has read it
    typed.prompted(0)
    assert not typed.waits


def test_a_key_that_makes_the_terminal_forget() -> None:
    typed = lines(A)
    typed.interrupted()
    assert not typed.waits
    typed.prompted(0)
    assert typed.began(0).authors == []
    assert after_interrupt(b"a\x03b\x1cc") == b"c" and after_interrupt(b"abc") == b"abc"


def test_beyond_the_limit_the_oldest_are_one_of_all_of_them() -> None:
    typed = TypedLines()
    typed.typed("ann", b"s\r", blind=True)
    for _ in range(TYPED_AHEAD_LINES):
        typed.typed("bob", b"x\r")
    unread = 2 * TYPED_AHEAD_LINES
    typed.prompted(unread + 2)
    first = typed.began(unread)
    assert first.authors == ["ann", "bob"] and first.blind


@pytest.mark.parametrize("answer", (b"\x1b[5099~", b"\x1b[1;1R"))
def test_what_the_host_types_is_of_nobody(answer: bytes) -> None:
    typed = lines(("", answer))
    assert not typed.waits
    typed.typed(*A)
    assert typed.began(0).authors == ["ann"]


# -- from the journal -------------------------------------------------------------------------


def replayed(*bodies: tuple[str, entries.Body]) -> TypedBefore:
    before = TypedBefore()
    before.replay(
        [
            entries.Entry(seq, float(seq), 1, actor, seq, body, b"")
            for seq, (actor, body) in enumerate(bodies, 1)
        ]
    )
    return before


def keys(actor: str, data: bytes, seq: int = 1) -> tuple[str, entries.Body]:
    return actor, entries.InputEntry(actor, seq, seq, "keys", data, 0)


BEGAN = "", entries.CommandBegan(1, "x", "/", 0, ())
ENDED = "", entries.CommandEnded(1, 0, "/", 0)


def test_text_typed_before_is_of_who_typed_it() -> None:
    before = replayed(keys("ann", b"ls\r"), BEGAN, ENDED, keys("bob", b"ec"), keys("ann", b"ho"))
    before.lines.left(0)
    assert (before.lines.authors(), before.last.actor, before.last.at) == (
        ("bob", "ann"),
        "ann",
        5.0,
    )
    assert not before.running and before.last.data == b"ho"


def test_a_command_that_ended_left_nothing() -> None:
    before = replayed(keys("ann", b"ls\r"), BEGAN, ENDED)
    before.lines.left(0)
    assert not before.lines.waits and before.lines.past is None


def test_what_was_voided_was_not_typed() -> None:
    voided = "", entries.Voided("ann", 3, 3)
    before = replayed(keys("bob", b"x"), keys("ann", b"ls", 3), voided)
    assert before.lines.authors() == ("bob",) and before.last.actor == "bob"


def test_blind_keys_typed_ahead_before_stay_blind() -> None:
    dark = "ann", entries.BlindInput("ann", 2, 2, 9)
    before = replayed(keys("ann", b"sleep 5\r"), BEGAN, dark, ENDED)
    before.lines.left(0)
    assert before.lines.blind and before.lines.began(0).blind


def test_a_corrected_line_that_a_program_read_is_not_waited_for() -> None:
    """A terminal in line mode takes the key that corrects, and what it corrects, away."""
    typed = TypedLines()
    typed.typed("ann", b"foo\x7f\r", hidden=True)
    typed.prompted(0)
    assert typed.is_ahead, "it may be unread"
    typed.settled(4)
    assert typed.is_ahead
    typed.settled(0)
    assert not typed.is_ahead
    typed.typed(*B)
    assert typed.began(0).authors == ["bob"]


def test_thousands_of_lines_at_once_are_counted_quickly() -> None:
    typed = TypedLines()
    began = time.process_time()
    typed.typed("ann", b"\n" * 65536)
    assert time.process_time() - began < 0.1
    assert typed.began(0).authors == ["ann"]
