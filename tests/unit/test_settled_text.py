"""Terminal output as it reads afterwards."""

from __future__ import annotations

import time

import pytest

from holdfast.mcp.bounding import first_page
from holdfast.sdk.settled_text import settled

VIM = b"\x1b[?1049h\x1b[1;1H~\x1b[2;1H~\x1b[5;1Hinsert\x1b[?1049l"


@pytest.mark.parametrize(
    ("printed", "reads"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b" 10%\r 20%\r100%\r\ndone\r\n", "100%\ndone\n"),
        (b"Downloading\r\x1b[Kdone\r\n", "done\n"),
        (b"a long line\x1b[2K\rshort\r\n", "short\n"),
        (b"|\b/\b-\b\\\b \r\nend", "\nend"),
        (b"%         \r \r$ ", "$"),
        (b"a\r\r\nb", "a\nb"),
        (b"\x1b[31mred\x1b[0m\tx", "red\tx"),
    ],
)
def test_a_line_is_given_as_it_is_shown_at_last(printed: bytes, reads: str) -> None:
    assert settled(printed).text == reads


def test_what_a_full_screen_program_drew_is_left_out_and_said() -> None:
    read = settled(b"before\r\n" + VIM + b"after\r\n")
    assert (read.text, read.full_screen) == ("before\nafter\n", True)
    assert settled(b"\x1b[2;1Hinside\x1b[?1049lafter").text == "after"
    assert settled(b"kept\x1b[?1049lafter").text == "keptafter"
    assert not settled(b"plain").full_screen


def test_it_takes_time_in_proportion_to_the_text() -> None:
    began = time.monotonic()
    for piece in (b"x\x1b[2K", b"ab\r", b"x\b\b", b"\x1b[?1049h\x1b[?1049l"):
        settled(b"x" * 500_000 + piece * 200_000)
    assert time.monotonic() - began < 30


def test_pages_fit_and_join_at_the_ends_of_lines() -> None:
    data = b"".join(b"line %06d \xc3\xbc\r\n" % each for each in range(5000))
    at, text = 0, ""
    while at < len(data):
        page, taken = first_page(data[at:], 1000, last=True)
        assert taken > 0 and len(page.text) <= 1000
        text, at = text + page.text, at + taken
        assert text.endswith("\n")
    assert text == settled(data).text


def test_a_page_of_one_endless_line_takes_something() -> None:
    page, taken = first_page(b"x" * 50_000, 100, last=False)
    assert len(page.text) == taken <= 100 and taken > 0
