"""The pieces that turn a session's bytes into text, however the bytes are cut."""

from __future__ import annotations

import pytest

from holdfast.cli.bytes_out import Newlines
from holdfast.cli.verbs.tail import _LastLines
from holdfast.sdk.plain_text import PlainText

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
