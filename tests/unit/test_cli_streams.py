"""The pieces that turn a session's bytes into text, however the bytes are cut."""

from __future__ import annotations

import time

import pytest

from holdfast.cli.text.raw_stdout import Newlines
from holdfast.cli.verbs.observe.tail import _LastLines
from holdfast.sdk.plain_text import PlainText, page, plain

STREAM = (
    b"\x1b]0;a title\x07\x1b[1;32mgr\xc3\xbcn\x1b[0m\r\n"
    b"\x1b]133;C;hold=3\x1b\\10%\r20%\r\n\x1b(B\x1b=x\x08y\tz\x1b[?2004l\r\n"
)
TEXT = "grün\n10%\n20%\nxy\tz\n"


@pytest.mark.parametrize("step", range(1, len(STREAM) + 1))
def test_plain_text_does_not_depend_on_how_the_stream_is_cut(step: int) -> None:
    plain = PlainText()
    pieces = [plain.feed(STREAM[at : at + step]) for at in range(0, len(STREAM), step)]
    assert "".join(pieces) == TEXT


def test_a_sequence_that_never_ends_does_not_swallow_the_rest() -> None:
    plain = PlainText()
    assert plain.feed(b"\x1b]0;" + b"x" * 5000).endswith("xxx")
    assert plain.feed(b"later") == "later"


def pages(stream: bytes, step: int) -> list[str]:
    """The whole of it, each page from where the one before it ended."""
    at, found = 0, list[str]()
    while at < len(stream):
        last = at + step >= len(stream)
        text, taken = page(stream[at : at + step], last=last)
        assert taken > 0 or last, (step, at)
        found.append(text)
        if last:
            break
        at += taken
    return found


@pytest.mark.parametrize("step", range(20, len(STREAM) + 1))
def test_pages_give_together_what_was_printed(step: int) -> None:
    """A page is longer than what must not be cut."""
    assert "".join(pages(STREAM, step)) == TEXT
    moved = b"\xf0\x9f\x90\x9f\r\x1b[K\x1b[m\r\n" * 8
    assert "".join(pages(moved, step)) == plain(moved) == "\U0001f41f\n\n" * 8
    titled = b"\xc3\xa9\r\x1b=\x1b]0;ti\rx\x1b\\" * 8  # the last return is in a title
    assert "".join(pages(titled, step)) + "\n" == plain(titled) == "\xe9\n" * 8


@pytest.mark.parametrize(
    ("end", "text"),
    [(b"\xf0\x9f", "ab"), (b"\x1b[3", "ab"), (b"\x1b]0;t", "ab"), (b"\r", "ab")],
)
def test_what_is_not_whole_yet_is_left_for_later(end: bytes, text: str) -> None:
    assert page(b"ab" + end, last=True) == (text, 2)
    assert page(end, last=True) == ("", 0)


def test_a_page_that_is_all_one_sequence_is_passed_on() -> None:
    for stream in (b"\x1b]0;" + b"x" * 90, b"\x1b[" + b"0" * 92, b"\r" + b"\x1b[m" * 31):
        assert page(stream, last=False)[1] == len(stream)
    assert page(b"\x1b]0;" + b"x" * 5000, last=True)[0].endswith("xxx")


@pytest.mark.parametrize("begun", [b"\x1b]", b"a\x1bP", b"\x1b[", b"\x1b]\x1b[m"])
def test_sequences_begun_over_and_over_take_no_longer_than_text(begun: bytes) -> None:
    """Who looked for the end of each of them would look for half a minute."""

    def took(piece: bytes) -> float:
        data = piece * ((64 << 10) // len(piece))
        began = time.process_time()
        for read in (
            plain,
            lambda data: page(data, last=True),
            lambda data: page(data, last=False),
        ):
            read(data)
        return time.process_time() - began

    assert took(begun) < 100 * (took(b"\x1b[31mtext") + 0.01)


@pytest.mark.parametrize("step", range(1, 12))
def test_newlines_are_joined_across_pieces(step: int) -> None:
    out: list[bytes] = []
    newlines = Newlines(out.append)
    stream = b"a\r\nb\r\rc\r\n\r"
    for at in range(0, len(stream), step):
        newlines.write(stream[at : at + step])
    newlines.close()
    assert b"".join(out) == b"a\nb\r\rc\n\r"


@pytest.mark.parametrize(
    ("lines", "kept"),
    [(0, b""), (1, b"three\n"), (2, b"two\nthree\n"), (3, b"one\ntwo\nthree\n"), (9, None)],
)
@pytest.mark.parametrize("step", [1, 3, 100])
def test_the_last_lines(lines: int, kept: bytes | None, step: int) -> None:
    stream = b"one\ntwo\nthree\n"
    last = _LastLines(lines)
    for at in range(0, len(stream), step):
        last.add(stream[at : at + step])
    assert last.held == (stream if kept is None else kept)
