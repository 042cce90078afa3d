"""Input that no program has read is taken out of a terminal and put back as it was."""

from __future__ import annotations

import os
import pty as pair
import select
from collections.abc import Iterator

import pytest

from holdfast.adapters.pty import put_unread, take_unread


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pair.openpty()
    os.set_blocking(slave, False)
    yield master, slave
    os.close(master)
    os.close(slave)


def typed(terminal: tuple[int, int], data: bytes) -> None:
    os.write(terminal[0], data)
    # The kernel passes it on in a thread; asked whether there is something to read, it waits.
    select.select([terminal[1]], [], [], 0)


def reads(slave: int) -> list[bytes]:
    """What one read after the other gives; in line mode a line each."""
    found = []
    try:
        while True:
            found.append(os.read(slave, 4096))
    except BlockingIOError:
        return found


@pytest.mark.requirement("M2")
def test_lines_stay_lines_and_half_a_line_waits_for_its_end(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    typed(terminal, b"one\ntwo\nhal")
    put_unread(master, take_unread(master))
    assert reads(slave) == [b"one\n", b"two\n"]
    typed(terminal, b"\x7flf\n")
    assert reads(slave) == [b"half\n"]


@pytest.mark.requirement("M2")
def test_an_end_of_input_that_was_typed_ahead_stays_one(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    typed(terminal, b"one\ntwo\x04\x04hal")
    put_unread(master, take_unread(master))
    assert reads(slave) == [b"one\n", b"two", b""]
    typed(terminal, b"f\n")
    assert reads(slave) == [b"half\n"]


@pytest.mark.requirement("M2")
def test_a_zero_byte_that_was_typed_stays_one(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    typed(terminal, b"a\0b\nc")
    put_unread(master, take_unread(master))
    typed(terminal, b"d\n")
    assert reads(slave) == [b"a\0b\n", b"cd\n"]
