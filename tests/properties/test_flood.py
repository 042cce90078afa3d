"""Skipping a flood changes nothing that can be seen."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core import scroll_skip
from holdfast.host.session.screen_view import View
from holdfast.model.size import Size

SIZE = Size(80, 24)
RING = 64 << 10

words = st.sampled_from(
    [b"plain", b"\x1b[31mred\x1b[0m", b"\x1b[1;4m", b"\x1b[m", "wide 世界".encode(), b"x" * 130]
)
line_ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b" ", b"\t"])
acts = st.sampled_from(
    [b"\x1b[?2004h", b"\x1b]2;title\x07", b"\x1b[5;10r", b"\x1b[r", b"\x1b[H\x1b[2J",
     b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l", b"\x1b(0", b"\x1b(B", b"\x08"]
)  # fmt: skip
floods = st.builds(
    lambda pattern, times: b"".join(pattern) * times,
    st.lists(st.builds(lambda a, b: a + b, words, line_ends), min_size=1, max_size=12),
    st.integers(1, 900),
)


def feed_both(view: View, ring: Ring, whole: GhosttyScreen, data: bytes) -> None:
    for start in range(0, len(data), 8192):
        piece = data[start : start + 8192]
        assert os.write(ring.conduit, piece) == len(piece)
        ring.recover()
        whole.feed(piece)
        if ring.head - view.offset > view.lag_max:
            view.make_room()


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.lists(floods | acts, min_size=1, max_size=8))
def test_a_view_that_skips_shows_what_one_that_does_not_shows(output: list[bytes]) -> None:
    ring = Ring.create(RING)
    view, whole = View(ring, SIZE, GhosttyScreen), GhosttyScreen(SIZE)
    for data in output:
        feed_both(view, ring, whole, data)
    _, shown = view.snapshot(scrollback=False)
    assert shown == whole.snapshot(scrollback=False)
    again = View(ring, SIZE, GhosttyScreen)  # a new daemon: from checkpoint and ring alone
    assert again.text() == whole.text()
    assert again.cursor() == whole.cursor()
    view.close()
    again.close()
    ring.close()


@pytest.mark.parametrize("pen", [b"", b"\x1b[1;4;38;5;200m", b"\x1b[44m"])
def test_a_pen_set_before_a_flood_is_in_force_after_it(pen: bytes) -> None:
    ring = Ring.create(RING)
    view, whole = View(ring, SIZE, GhosttyScreen), GhosttyScreen(SIZE)
    feed_both(view, ring, whole, b"start\r\n" + pen + b"no reset in these lines\r\n" * 20_000)
    feed_both(view, ring, whole, b"and its end")
    assert view.snapshot(scrollback=False)[1] == whole.snapshot(scrollback=False)


def test_scrollback_comes_back_after_a_flood_was_skipped() -> None:
    ring = Ring.create(1 << 20)
    view, whole = View(ring, SIZE, GhosttyScreen), GhosttyScreen(SIZE)
    feed_both(view, ring, whole, b"".join(b"line %d\r\n" % n for n in range(200_000)))
    view.text()  # somebody looks: the screen is thin now
    lines = view.text(scrollback=True).splitlines()
    assert len(lines) > 1000
    assert lines[-2:] == ["line 199998", "line 199999"]
    first = int(lines[0].split()[1])
    assert lines == [f"line {n}" for n in range(first, 200_000)]


@pytest.mark.parametrize("mode", [b"", b"\x1b[?1049h"], ids=["usual", "alternate screen"])
def test_what_a_keeper_let_roll_off_in_a_gap_is_missed_and_the_end_is_shown(mode: bytes) -> None:
    ring = Ring.create(RING)
    view, whole = View(ring, SIZE, GhosttyScreen), GhosttyScreen(SIZE)
    feed_both(view, ring, whole, b"before\r\n" + mode)
    view.text()
    view.close(keep=True)

    def moved(data: bytes) -> None:
        for start in range(0, len(data), 8192):
            os.write(ring.conduit, data[start : start + 8192])
            ring.recover()

    moved(b"".join(b"line %d\r\n" % number for number in range(20_000)))  # by the keeper
    again = View(ring, SIZE, GhosttyScreen)
    for number in range(100):  # a new daemon, which nobody asks for a screen yet
        moved(b"more %d\r\n" % number * 100)
        if ring.head - again.offset > again.lag_max:
            again.make_room()
    lines = again.text().splitlines()
    assert [line.strip() for line in lines if line.strip()][-20:] == ["more 99"] * 20
    assert again.mode(1049) == bool(mode), "what was on before the gap is on after it"
    again.close()
    whole.close()
    ring.close()


def test_a_long_flood_is_really_skipped() -> None:
    ring = Ring.create(RING)
    fed = 0

    class Counting(GhosttyScreen):
        def feed(self, data: bytes | memoryview) -> bytes:
            nonlocal fed
            fed += len(data)
            return super().feed(data)

    view, whole = View(ring, SIZE, Counting), GhosttyScreen(SIZE)
    feed_both(view, ring, whole, b"\x1b[32mok\x1b[0m a line of a build\r\n" * 40_000)
    assert view.text() == whole.text()
    assert fed < ring.head / 4


@given(st.binary(max_size=400))
def test_only_scrolling_output_has_no_control_but_line_ends_and_colours(data: bytes) -> None:
    if scroll_skip.only_scrolls(data):
        rest = data
        for allowed in (b"\r", b"\n", b"\t"):
            rest = rest.replace(allowed, b"")
        assert all(byte >= 0x20 or byte == 0x1B for byte in rest)
        assert 0x7F not in rest
