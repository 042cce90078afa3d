"""Where an input is cut: before what commits something, and never in text."""

from __future__ import annotations

import pytest

from holdfast.core.gate.commit_bytes import Stop, first_stop, interrupts, leaves_paste_open

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


@pytest.mark.parametrize(
    ("data", "at", "stop"),
    [
        (b"", 0, Stop.NOTHING),
        (b"ls -l", 5, Stop.NOTHING),
        (b"\r", 0, Stop.COMMIT),
        (b"ls\rpwd\r", 2, Stop.COMMIT),
        (b"ls\npwd", 2, Stop.COMMIT),
        (b"ls\x0f", 2, Stop.COMMIT),
        (b"a" + BEGIN + b"ls" + END, 15, Stop.NOTHING),
        (BEGIN + b"ls" + END + b"\r", 14, Stop.COMMIT),
        (b"a" + BEGIN + b"ls\npwd" + END + b"\r", 1, Stop.PASTE),
        (BEGIN + b"ls\x0f" + END, 0, Stop.PASTE),
        # One that does not end here is no paste: its newlines commit.
        (BEGIN + b"ls\npwd", 8, Stop.COMMIT),
        # An end without a beginning is text.
        (b"ls" + END + b"\r", 8, Stop.COMMIT),
        (BEGIN[:-1] + b"\r" + END, 5, Stop.COMMIT),
        (BEGIN + BEGIN + b"\n" + END, 0, Stop.PASTE),
    ],
)
def test_an_input_is_cut_before_what_commits(data: bytes, at: int, stop: Stop) -> None:
    assert first_stop(data) == (at, stop)


def test_a_paste_that_does_not_end_is_seen() -> None:
    assert leaves_paste_open(BEGIN + b"ls")
    assert not leaves_paste_open(BEGIN + b"ls" + END)
    assert not leaves_paste_open(b"ls" + END)
    assert leaves_paste_open(BEGIN + b"ls" + END + BEGIN)


@pytest.mark.parametrize("key", [b"\x03", b"\x1a", b"\x1c", b"ls\x03"])
def test_keys_for_signals_take_back_what_was_typed(key: bytes) -> None:
    assert interrupts(key)
    assert not interrupts(b"ls\r\x04")
