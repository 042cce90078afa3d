"""A command's output is cut out of the stream exactly, whatever the command prints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.command_output import CommandOutput

BEGIN, END = b"\x1b]133;C;hold=4\x07", b"\x1b]133;D;0;hold=4\x07"
PROMPT = b"\x1b]133;A;hold=5\x07$ "


def run(pieces: list[bytes], report_after: int) -> tuple[bytes, bool]:
    """Feed the pieces, reporting the end after so many of them."""
    output, got = CommandOutput(4), b""
    for index, piece in enumerate(pieces):
        if index == report_after:
            got += output.end_reported()
        got += output.feed(piece)
    if report_after >= len(pieces):
        got += output.end_reported()
    return got, output.complete


@given(st.binary(max_size=300), st.lists(st.integers(1, 60), max_size=20), st.integers(0, 25))
def test_any_output_comes_out_whole_however_it_is_cut(
    output: bytes, cuts: list[int], report_after: int
) -> None:
    stream = b"echo hi\r\n" + BEGIN + b"|" + output + END + PROMPT
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(stream[at : at + cut])
        at += cut
    pieces.append(stream[at:])
    got, complete = run(pieces, report_after)
    assert (got, complete) == (b"|" + output, True)


def test_a_forged_end_mark_before_the_report_cuts_nothing() -> None:
    stream = BEGIN + b"one" + END + b"two" + END + PROMPT
    assert run([stream], 5) == (b"one" + END + b"two", True)


OUTER_END = b"\x1b]133;D;3;hold=2\x07\x1b]133;A;hold=5\x07$ "


def test_a_command_that_ends_its_nested_shell_ends_where_the_shell_did() -> None:
    for report_after in (0, 5):
        assert run([BEGIN + b"one", OUTER_END[:9], OUTER_END[9:]], report_after) == (b"one", True)


def test_the_end_of_a_shell_that_was_nested_cuts_nothing_of_what_has_its_own_mark() -> None:
    assert run([BEGIN + b"a" + OUTER_END + b"b" + END + PROMPT], 5) == (
        b"a" + OUTER_END + b"b",
        True,
    )
    later = b"\x1b]133;D;0;hold=40\x07"
    assert run([BEGIN + later + END + PROMPT], 5) == (later, True)


def test_a_long_output_is_passed_on_before_the_end() -> None:
    output = CommandOutput(4)
    assert output.feed(BEGIN + b"x" * 10_000) == b"x" * 10_000
    assert not output.complete


def test_output_after_a_false_mark_is_not_held_for_ever() -> None:
    output = CommandOutput(4)
    got = output.feed(BEGIN + END + b"y" * 100_000)
    assert got.endswith(b"y" * 30_000)


def test_a_line_the_shell_refused_gives_its_complaint() -> None:
    output = CommandOutput(4, parsed=False)
    got = output.feed(b"echo )\r\n\x1b[?2004l\rbash: syntax error\r\n" + END)
    assert got + output.end_reported() == b"bash: syntax error\r\n"


NOISE = b"\x1b[?2004l\x1b]0;title\x07\x1b[30m\x1b(B\x1b[m\r"


@given(st.lists(st.integers(1, 20), max_size=20), st.sampled_from([b"hi", b"", b"\x1b[31mred"]))
def test_what_fish_itself_writes_at_the_start_is_left_out(cuts: list[int], output: bytes) -> None:
    stream, at = BEGIN + NOISE + output + END, 0
    filtered, got = CommandOutput(4, preamble=True), b""
    for cut in cuts:
        got += filtered.feed(stream[at : at + cut])
        at += cut
    got += filtered.feed(stream[at:]) + filtered.end_reported()
    assert (got, filtered.complete) == (output, True)


def test_what_another_command_writes_at_its_start_is_its_own() -> None:
    assert run([BEGIN + NOISE + b"hi" + END], 1) == (NOISE + b"hi", True)


def test_output_whose_begin_rolled_off_is_shown_from_the_middle() -> None:
    output = CommandOutput(4)
    assert output.lost(100) == b""
    assert output.feed(b"the rest" + END) + output.end_reported() == b"the rest"
