"""The one line a client draws over a session's screen."""

from __future__ import annotations

import re

import pytest

from holdfast.cli.attach.prefix_keys import HELP
from holdfast.cli.attach.status_line import StatusLine
from holdfast.model.size import Size

SIZE = Size(80, 24)


def drawn(line: StatusLine) -> tuple[int, str]:
    """The column it begins in, and the text."""
    found = re.search(r"\x1b\[24;(\d+)H(.*?)\x1b\[0m", line.drawn(SIZE).decode())
    assert found
    return int(found[1]), found[2]


def test_a_short_text_after_a_long_one_is_seen_whole_and_nothing_stays_of_the_other() -> None:
    line = StatusLine()
    line.show("x" * 100, 0.0)
    column, text = drawn(line)
    assert (column, len(text)) == (1, 80) and text.endswith("x… ")
    line.show("nobody has the turn: type to take it", 0.0)
    assert drawn(line) == (1, " nobody has the turn: type to take it ".rjust(80))
    line.hide()
    line.show("short", 0.0)
    assert drawn(line) == (74, " short ")


@pytest.mark.parametrize("cols", [1, 2, 3, 80])
def test_no_width_is_too_small(cols: int) -> None:
    line = StatusLine()
    line.show("you have the turn", 0.0)
    assert line.drawn(Size(cols, 24))


def test_the_keys_fit_a_common_terminal() -> None:
    assert len(f" {HELP} ") <= SIZE.cols
