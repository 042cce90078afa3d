"""Positions of a command's output, also when the command prints marks of its own."""

from __future__ import annotations

from holdfast.core.marks import find_output, find_refusal, strip_marks


def mark(kind: str, seq: int) -> bytes:
    return f"\x1b]133;{kind};hold={seq}\x07".encode()


PROMPT = mark("A", 7) + b"$ " + mark("B", 7)


def output_of(data: bytes, seq: int) -> bytes | None:
    found = find_output(data, seq)
    return None if found is None else data[found[0] : found[1]]


def test_output_is_what_lies_between_the_marks_of_that_command() -> None:
    data = PROMPT + b"ls\r\n" + mark("C", 7) + b"a\r\nb\r\n" + mark("D;0", 7) + mark("A", 8)
    assert output_of(data, 7) == b"a\r\nb\r\n"


def test_a_command_that_is_not_all_there_has_no_output_yet() -> None:
    data = PROMPT + mark("C", 7) + b"a"
    assert output_of(data, 7) is None
    assert output_of(data + mark("D;0", 7)[:-1], 7) is None
    assert output_of(data + mark("D;0", 8), 7) is None
    assert output_of(b"a" + mark("D;0", 7), 7) is None
    assert output_of(b"", 7) is None


def test_a_forged_end_or_beginning_does_not_shorten_the_output() -> None:
    inside = b"x" + mark("D;0", 7) + b"y" + mark("C", 7) + b"z" + mark("D;0", 70)
    assert output_of(PROMPT + mark("C", 7) + inside + mark("D;1", 7), 7) == inside


def test_an_unterminated_mark_of_the_command_does_not_swallow_the_real_one() -> None:
    inside = b"\x1b]133;D;hold=7"
    assert output_of(mark("C", 7) + inside + mark("D;0", 7), 7) == inside


def test_marks_may_end_with_st_and_carry_other_parameters() -> None:
    data = b"\x1b]133;C;aid=3;hold=7;k=v\x1b\\out\x1b]133;D;0;hold=7\x1b\\"
    assert output_of(data, 7) == b"out"


def test_marks_of_others_have_no_number() -> None:
    data = mark("C", 7) + b"\x1b]133;D;0\x07\x1b]133;D;0;hold=\x07" + mark("D;0", 7)
    assert output_of(data, 7) == b"\x1b]133;D;0\x07\x1b]133;D;0;hold=\x07"


def test_what_the_shell_says_of_a_line_that_does_not_parse_is_found() -> None:
    data = PROMPT + b")\r\n" + b"syntax error\r\n" + mark("D;2", 7) + mark("A", 8)
    found = find_refusal(data, 7)
    assert found is not None
    assert data[found[0] : found[1]] == b"syntax error\r\n"
    assert find_refusal(data, 8) is None
    assert find_output(data, 7) is None


def test_stripping_leaves_everything_but_marks() -> None:
    data = mark("C", 7) + b"a\x1b]0;title\x07\x1b[1mb" + b"\x1b]133;P;k=i\x1b\\" + mark("D;0", 7)
    assert strip_marks(data) == b"a\x1b]0;title\x07\x1b[1mb"
    assert strip_marks(b"\x1b]133;A") == b"\x1b]133;A"
