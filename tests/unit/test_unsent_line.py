"""Keys typed without the turn are dropped as a whole line."""

from __future__ import annotations

import pytest

from holdfast.sdk.client_core.unsent_line import PASTE_GAP_S, PAUSE_S, UnsentLine


@pytest.mark.requirement("A3")
def test_the_rest_of_a_dropped_line_is_dropped_with_its_enter_and_the_next_line_is_not() -> None:
    line = UnsentLine()
    line.dropped(b"e", 10.0)
    assert line.swallows(b"cho", 10.2) and line.swallows(b" rm", 11.0) and line.swallows(b"\r", 12)
    assert not line.swallows(b"ls\r", 12.1)


def test_a_pause_ends_a_dropped_line() -> None:
    line = UnsentLine()
    line.dropped(b"e", 10.0)
    assert line.swallows(b"c", 10.0 + PAUSE_S * 0.9)
    assert line.swallows(b"h", 10.0 + PAUSE_S * 1.8)
    assert not line.swallows(b"ls", 10.0 + PAUSE_S * 2.8)


def test_a_line_dropped_with_its_enter_is_over() -> None:
    line = UnsentLine()
    line.dropped(b"echo\r", 10.0)
    assert not line.drops(10.1) and not line.swallows(b"l", 10.1)


def test_what_follows_a_dropped_enter_at_once_is_of_the_same_paste() -> None:
    line = UnsentLine()
    line.dropped(b"echo one\r", 10.0)
    assert line.swallows(b"rm x\r", 10.0 + PASTE_GAP_S / 2)
    assert line.swallows(b"ls\r", 10.0 + PASTE_GAP_S)
    assert not line.swallows(b"ls\r", 10.0 + PASTE_GAP_S * 3)


def test_an_interrupt_ends_a_dropped_line_and_the_next_one_is_sent() -> None:
    line = UnsentLine()
    line.dropped(b"e", 10.0)
    assert line.swallows(b"\x03", 10.5) and not line.swallows(b"\x03", 10.7)


def test_no_part_of_a_paste_is_sent_after_another_part_was_dropped() -> None:
    line = UnsentLine()
    line.dropped(b"one\rtwo\r", 10.0)
    assert line.swallows(b"three\rfour\r", 10.1) and line.swallows(b"five", 10.2)


def test_nothing_is_dropped_before_something_was() -> None:
    assert not UnsentLine().swallows(b"ls\r", 10.0)
