"""Guesses leave no trace: whatever is typed and printed, the terminal ends as it would have without
them; and nothing is drawn that a program did not show that it echoes."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.cli.attach.predicted_typing import ALWAYS, PredictedTyping
from holdfast.model.size import Size
from holdfast.wire.messages import session as m

SIZE = Size(24, 5)
UNDERLINED = b"\x1b[0;4m"
SECRET = "жшю"  # letters that nothing here prints by itself


class Attached:
    """A terminal that guesses are drawn on, and one beside it that only gets the output."""

    def __init__(self) -> None:
        self.now = 0.0
        self.written = b""
        self.terminal, self.without = GhosttyScreen(SIZE), GhosttyScreen(SIZE)
        self.ahead = PredictedTyping(ALWAYS, lambda *_: 1, self._write, lambda: self.now)
        self.seq = 0
        self.offset = 0
        self.in_flight: list[bytes] = []
        self.ahead.paint(b"\x1b[H\x1b[2J$ ", SIZE)
        self.without.feed(b"\x1b[H\x1b[2J$ ")

    def _write(self, _fd: int, data: bytes) -> None:
        self.written += data
        self.terminal.feed(data)

    def type(self, data: bytes) -> None:
        self.seq += 1
        self.in_flight.append(data)
        self.ahead.typed(self.seq, data)

    def print(self, data: bytes) -> None:
        self.offset += len(data)
        self.without.feed(data)
        self.ahead.show(data, self.offset)

    def accept(self) -> None:
        self.ahead.on_message(m.Accepted(1, self.seq, self.offset))

    def echo(self, count: int) -> None:
        """The oldest keys come back as a shell would echo them."""
        for data in self.in_flight[:count]:
            self.print(ECHOES.get(data, data))
        del self.in_flight[:count]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.ahead.tick()

    def both_alike(self) -> bool:
        """Everything a terminal can be brought to: cells, pen, modes, cursors, scrollback. (Not the
        library's own image: it numbers colours in the order in which they were first used.)"""
        return self.terminal.snapshot() == self.without.snapshot()

    def close(self) -> None:
        self.ahead.close()
        self.terminal.close()
        self.without.close()


ECHOES = {b"\x7f": b"\b \b", b"\r": b"\r\n$ ", b"\x1b[D": b"\b", b"\x1b[C": b"\x1b[C"}
LETTERS = [b"a", b"b", b" ", b"l", b"-", b"ls", "ж".encode()]
KEYS = st.sampled_from([*LETTERS, *LETTERS, *ECHOES, *ECHOES, b"\t", b"\x1b[A", "漢".encode()])
# Not REP (`CSI b`): see holdfast.cli.attach.predicted_typing.
OUTPUT = st.sampled_from([
    b"x", b"word", b"\r\n", b"\r", b"\n", b"\b", b"\t", b"\x1b[A", b"\x1b[2;3H", b"\x1b[K",
    b"\x1b[1K", b"\x1b[2J", b"\x1b[31m", b"\x1b[1;4;44m", b"\x1b[m", b"\x1b[3D", b"\x1b[9C",
    b"\x1b[4h", b"\x1b[4l", b"\x1b7", b"\x1b8", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l",
    b"\x1b[?25h", b"\x1b(0", b"\x1b(B", b"\x1b[2;4r", b"\x1b[r", b"\x1b[?6h", b"\x1b[?6l",
    b"\x1b[2@", b"\x1b[2P", b"\x1b[2L", b"\x1b[?7l", b"\x1b]8;;http://a/b\x1b\\",
    b"\x1b]8;;\x1b\\", b"\x1b[?69h\x1b[3;9s", b"\x1b[?69l", b"\x1b", b"[", b"\xe6\xbc", b"\xa2",
    "漢字".encode(), "é".encode(), "e\u0301".encode(), b"\x1b[48;5;4m\x1b[K", b"$ ", b"\x1b[s",
    b"\x1b[u", b"\x1b[?2026h", b"\x1b[?2026l", b"\x1bc", b"y" * 30,
])  # fmt: skip
STEP = st.one_of(
    st.tuples(st.just("type"), KEYS),
    st.tuples(st.just("type"), KEYS),
    st.tuples(st.just("echo"), st.integers(1, 3)),
    st.tuples(st.just("echo"), st.integers(1, 3)),
    st.tuples(st.just("accept")),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.3])),
    st.tuples(st.just("print"), OUTPUT),
)
MOSTLY_TYPING = st.one_of(*[st.tuples(st.just("type"), st.sampled_from(LETTERS))] * 3, STEP)
Steps = list[tuple[object, ...]]


def play(attached: Attached, steps: Steps) -> None:
    for name, *arguments in steps:
        getattr(attached, str(name))(*arguments)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(st.one_of(st.lists(STEP, max_size=40), st.lists(MOSTLY_TYPING, max_size=40)))
def test_without_the_guesses_the_terminal_is_as_if_there_had_been_none(steps: Steps) -> None:
    with closing(Attached()) as attached:
        play(attached, steps)
        attached.ahead.close()
        assert attached.both_alike()


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(MOSTLY_TYPING, max_size=40), OUTPUT)
def test_what_is_printed_over_guesses_falls_on_what_was_there(steps: Steps, more: bytes) -> None:
    """Not only at the end: output itself finds the terminal as the session left it."""
    with closing(Attached()) as attached:
        play(attached, steps)
        while attached.in_flight:
            attached.echo(1)
        attached.print(more)
        attached.print(b"\x18\x1b[?2026l\r\nend of it ")
        attached.wait(9.0)
        attached.accept()
        attached.wait(9.0)
        assert attached.both_alike()


SECRETS = st.text(st.sampled_from(SECRET), min_size=1, max_size=3).map(str.encode)
PLAIN_STEP = st.one_of(
    st.tuples(st.just("type"), st.sampled_from([b"a", b"b", b"\x7f", b"\x1b[D"])),
    st.tuples(st.just("echo"), st.integers(1, 3)),
    st.tuples(st.just("accept")),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.3])),
)
HIDDEN_STEP = st.one_of(
    st.tuples(st.just("type"), SECRETS),
    st.tuples(st.just("type"), SECRETS),
    st.tuples(st.just("accept")),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.3])),
    st.tuples(st.just("print"), OUTPUT),
    st.tuples(st.just("print"), st.sampled_from([b"Password: ", b"*", b"\r\n$ ", b"a", b"ls"])),
)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(st.lists(PLAIN_STEP, max_size=20), st.lists(HIDDEN_STEP, max_size=30))
def test_what_is_typed_after_enter_and_never_echoed_is_never_drawn(
    before: Steps, after: Steps
) -> None:
    with closing(Attached()) as attached:
        play(attached, before)
        attached.type(b"\r")
        play(attached, [step for step in after if step != ("echo",)])
        assert not any(letter.encode() in attached.written for letter in SECRET)


def test_guesses_are_drawn_at_all() -> None:
    """Or the rest of this file would show nothing."""
    with closing(Attached()) as attached:
        attached.type(b"a")
        attached.echo(1)
        attached.type("ж".encode())
        assert attached.terminal.text() == "$ aж"
        assert attached.without.text() == "$ a"
        assert attached.terminal.cursor() == (4, 0)
        assert UNDERLINED in attached.written


BENT = {
    "full screen": b"\x1b[?1049h",
    "full screen, the old way": b"\x1b[?47h",
    "inserting": b"\x1b[4h",
    "origin in a region": b"\x1b[2;4r\x1b[?6h",
    "left and right margins": b"\x1b[?69h\x1b[3;9s",
    "no cursor": b"\x1b[?25l",
    "line drawing": b"\x1b(0",
    "a link": b"\x1b]8;;http://a/b\x1b\\",
    "held back": b"\x1b[?2026h",
}


@pytest.mark.parametrize("state", BENT.values(), ids=list(BENT))
def test_where_printing_does_more_than_fill_a_cell_nothing_is_drawn(state: bytes) -> None:
    with closing(Attached()) as attached:
        attached.type(b"a")
        attached.echo(1)  # from here on guesses would be drawn
        attached.print(state)
        for letter in (b"b", b"c", b"d"):
            attached.type(letter)
            assert UNDERLINED not in attached.written
            attached.echo(1)
        assert attached.both_alike()


@pytest.mark.parametrize("cut", [b"\x1b", b"\x1b[3", b"\x1b]2;title", b"\xe6\xbc"])
def test_nothing_is_drawn_into_the_middle_of_a_sequence_or_a_character(cut: bytes) -> None:
    with closing(Attached()) as attached:
        attached.type(b"a")
        attached.echo(1)
        attached.print(cut)
        attached.written = b""
        attached.type(b"b")
        attached.wait(9.0)
        assert attached.written == b""


@pytest.mark.parametrize("pen", [b"", b"\x1b[1;31;44m", b"\x1b[4:3;38;2;1;2;3m"])
def test_the_pen_and_the_saved_cursor_of_a_program_are_left_alone(pen: bytes) -> None:
    with closing(Attached()) as attached:
        attached.print(pen + b"\x1b7")
        attached.type(b"a")
        attached.echo(1)
        attached.type(b"bcd")
        assert "abcd" in attached.terminal.text()
        attached.print(b"b\x1b8!")
        assert attached.terminal.text() == attached.without.text() == "$ !b"
        attached.wait(9.0)
        assert attached.both_alike()
