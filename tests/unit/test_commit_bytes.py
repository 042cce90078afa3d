"""Where an input is cut: before what commits something, and never in text."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.gate.commit_bytes import (
    Stop,
    commit_length,
    first_stop,
    interrupts,
    leaves_paste_open,
    walks_history,
)

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
        (BEGIN[:-1] + b"\r" + END, 0, Stop.COMMIT),
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


FREE_KEYS = [
    *(b"\x01", b"\x02", b"\x05", b"\x06", b"\x07", b"\x08", b"\x0b", b"\x0c", b"\x0e", b"\x10"),
    *(b"\x12", b"\x15", b"\x17", b"\x19", b"\x7f", b"\x03", b"\x11", b"\x13", b"\x1a", b"\x1c"),
    *(b"\x1b[A", b"\x1b[D", b"\x1bOC", b"\x1b[H", b"\x1b[3~", b"\x1b[1;5D", b"\x1b[1;2C"),
    *(b"\x1b[I", b"\x1b[24;80R", b"\x1b[?62;22c", b"\x1b[<0;10;3M", b"\x1b]11;rgb:00/00/00\x07"),
]  # fmt: skip
COMMITS = [
    *(b"\r", b"\n", b"\x0f", b"\t", b"\x04", b"\x00", b"\x14", b"\x16x", b"\x18\x05", b"\x18e"),
    *(b"\x1b", b"\x1b\x05", b"\x1ba", b"\x1b\r", b"\x1b.", b"\x1b[15~", b"\x1b[1;3C", b"\x1b[Z"),
    *(b"\x1bOP", b"\x1b[5099~", b"\x1f", b"\x1d", b"\xff", b"\xc2\x85", b"\x1b[13;5u"),
]  # fmt: skip


@pytest.mark.parametrize("key", FREE_KEYS)
def test_a_key_that_only_edits_is_free(key: bytes) -> None:
    assert first_stop(b"ls" + key + "é漢".encode()).stop is Stop.NOTHING


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("key", COMMITS)
def test_every_other_key_commits_as_one(key: bytes) -> None:
    assert first_stop(b"ls" + key) == (2, Stop.COMMIT)
    assert key == b"\xc2\x85" or commit_length(key) == len(key)


@pytest.mark.requirement("A8")
@given(st.binary(max_size=40), st.booleans())
@settings(max_examples=1000, deadline=None)
def test_nothing_passes_that_is_not_in_the_list(data: bytes, rebound: bool) -> None:
    """Every byte is in a free piece or in a commit, and a free one is made of keys in the list."""
    at = 0
    while at < len(data):
        cut = first_stop(data, at, rebound=rebound)
        free = data[at : cut.at]
        for key in sorted([*FREE_KEYS, BEGIN, END], key=len, reverse=True):
            free = free.replace(key, b"")
        text = "" if b"\x1b" in free else free.decode()
        assert not any(category(each) == "Cc" for each in text)
        assert not (rebound and text)
        if cut.stop is Stop.NOTHING:
            break
        at = cut.at
        at += commit_length(data[at:], rebound=rebound) if cut.stop is Stop.COMMIT else len(BEGIN)


def test_where_keys_are_bound_anew_text_commits_as_a_whole() -> None:
    assert first_stop(b"ls -l\r", rebound=True) == (0, Stop.COMMIT)
    assert commit_length(b"ls -l\r", rebound=True) == 5
    assert first_stop(b"\x03", rebound=True).stop is Stop.NOTHING
    assert first_stop(BEGIN + b"ls" + END, rebound=True).stop is Stop.PASTE


@pytest.mark.parametrize("key", [b"\x10", b"\x12", b"\x1b[A", b"\x1bOB", b"\x1b<", b"\x19"])
def test_keys_that_bring_earlier_text_are_known(key: bytes) -> None:
    assert walks_history(b"ls" + key)
    assert not walks_history(b"ls\x01\x1b[C\x05\r")
    assert walks_history(b"l\x1b[C", suggests=True)
