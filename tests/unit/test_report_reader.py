"""The parser of shell reports: what counts, what is refused, what is put together."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import (
    RECORD_MAX_BYTES,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    ReportReader,
    ShellBelow,
    integrate,
    make_fifo,
    nonce_pipe,
)
from holdfast.model.limits import COMMAND_TEXT_MAX_BYTES

NONCE = "0123456789abcdef" * 2


def record(body: str | bytes, nonce: str = NONCE) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    return b"\0HOLD1 " + nonce.encode() + b" " + body + b"\0"


def test_a_session_from_start_to_prompt() -> None:
    reader = ReportReader(NONCE)
    assert reader.feed(
        record("R 0 4711 bash 5.2.15(1)-release")
        + record("P 1 0 /home")
        + record("T 1 0 cd /t")
        + record("T 1 1 mp%0Als")
        + record("B 1 2 whole /home")
        + record("E 1 130 /tmp")
        + record("P 2 130 /tmp/a b")
    ) == [
        PromptShown(1, 0, "/home"),
        CommandBegin(1, "cd /tmp\nls", "/home"),
        CommandEnd(1, 130, "/tmp"),
        PromptShown(2, 130, "/tmp/a b"),
    ]
    assert reader.refused == 0


def test_a_shell_below_another_goes_on_with_the_numbers_and_gives_them_back() -> None:
    reader = ReportReader(NONCE)
    reader.feed(record("R 0 10 bash 5") + record("B 1 0 unknown /") + record("R 1 20 zsh 5.9"))
    assert reader.feed(record("P 2 0 /") + record("B 2 0 unknown /") + record("E 2 1 /")) == [
        PromptShown(2, 0, "/"),
        CommandBegin(2, "", "/", text_known=False),
        CommandEnd(2, 1, "/"),
    ]
    inner = record("B 3 0 unknown /") + record("R 3 30 fish 3") + record("B 4 0 unknown /")
    assert ShellBelow(3, 30, "fish") in reader.feed(inner)
    # The shell in the middle is gone, and with it the one below: what they ran is over.
    assert reader.feed(record("E 1 137 /") + record("P 5 137 /")) == [
        CommandEnd(4, 137, "/"),
        CommandEnd(3, 137, "/"),
        CommandEnd(1, 137, "/"),
        PromptShown(5, 137, "/"),
    ]
    # One of them that lives on says nothing that counts.
    assert reader.feed(record("E 4 0 /") + record("P 2 0 /") + record("E 1 0 /")) == []
    assert reader.refused == 0


def test_another_reader_knows_in_which_commands_a_shell_reports() -> None:
    reader = ReportReader(NONCE, begun=3, ended=3, below=[1])
    assert reader.feed(record("E 1 0 /")) == [CommandEnd(1, 0, "/")]
    assert ReportReader(NONCE, begun=3, ended=3).feed(record("E 1 0 /")) == []


def test_percents_and_newlines_are_given_back() -> None:
    reader = ReportReader(NONCE)
    [end] = reader.feed(record("E 1 0 /100%25%0A%250A"))
    assert end == CommandEnd(1, 0, "/100%\n%0A")


def test_a_record_without_the_nonce_is_refused_wherever_it_stands() -> None:
    reader = ReportReader(NONCE)
    forged = record("E 1 0 /", "f" * 32)
    real = record("E 1 1 /")
    assert reader.feed(forged + b"no end" + real + b"HOLD1 " + forged) == [CommandEnd(1, 1, "/")]
    assert reader.refused == 4


@pytest.mark.parametrize(
    "body",
    [
        "",
        "E",
        "E 1",
        "E 1 0",
        "E x 0 /",
        "E 1 -1 /",
        "E " + "9" * 40 + " 0 /",
        "Z 1 0 /",
        "B 1 0 /",
    ],
)
def test_a_malformed_body_is_refused_even_with_the_nonce(body: str) -> None:
    reader = ReportReader(NONCE)
    assert reader.feed(record(body)) == []
    assert reader.refused == 1


def test_garbage_without_end_does_not_grow_and_does_not_hide_what_follows() -> None:
    reader = ReportReader(NONCE)
    for _ in range(100):
        assert reader.feed(b"x" * 4096) == []
    assert len(reader._pending) <= RECORD_MAX_BYTES
    assert reader.feed(record("E 1 0 /")) == [CommandEnd(1, 0, "/")]
    assert reader.refused == 1


def test_a_new_reader_goes_on_where_the_old_one_was_killed() -> None:
    stream = record("E 1 0 /") + record("P 2 0 /")
    # The old one died with the first bytes of a record: the rest of that is lost, no more.
    reader = ReportReader(NONCE)
    assert reader.feed(stream[10:]) == [PromptShown(2, 0, "/")]
    assert reader.refused == 1


def test_an_end_that_is_said_twice_is_given_once() -> None:
    reader = ReportReader(NONCE)
    assert len(reader.feed(record("E 1 0 /") * 2 + record("B 1 0 whole /"))) == 1
    assert reader.refused == 0


def test_a_text_with_a_lost_piece_is_unknown_rather_than_wrong() -> None:
    reader = ReportReader(NONCE)
    [begin] = reader.feed(record("T 1 0 rm ") + record("T 1 2 /") + record("B 1 3 whole /"))
    assert begin == CommandBegin(1, "", "/", text_known=False)
    # Pieces of another command are not taken either.
    [begin] = reader.feed(record("T 2 0 ls") + record("B 3 1 whole /"))
    assert begin == CommandBegin(3, "", "/", text_known=False)


def test_an_unsubmitted_line_comes_in_pieces_and_uses_up_no_number() -> None:
    reader = ReportReader(NONCE)
    assert reader.feed(
        record("T 3 0 echo 100%25")
        + record("T 3 1 %0Ax")
        + record("L 3 2 whole 4")
        + record("L 3 0 whole 0")
        + record("T 3 0 ls")
        + record("B 3 1 whole /")
    ) == [
        LineShown(3, 4, "echo 100%\nx"),
        LineShown(3, 0, ""),
        CommandBegin(3, "ls", "/"),
    ]
    assert reader.refused == 0


def test_an_unsubmitted_line_that_lost_a_piece_says_so() -> None:
    reader = ReportReader(NONCE)
    lost = record("T 1 0 rm ") + record("T 1 2 /") + record("L 1 3 whole 1")
    assert reader.feed(lost) == [LineShown(1, 1, "", text_known=False)]
    cut = record("T 1 0 x") + record("L 1 1 cut 1")
    assert reader.feed(cut) == [LineShown(1, 1, "x", cut=True)]
    assert reader.feed(record("L 1 0 whole x")) == []
    assert reader.refused == 1


def test_flags_say_what_the_text_is() -> None:
    reader = ReportReader(NONCE)
    assert reader.feed(record("B 1 0 unknown /")) == [CommandBegin(1, "", "/", text_known=False)]
    assert reader.feed(record("T 2 0 )") + record("B 2 1 unparsed /")) == [
        CommandBegin(2, ")", "/", parsed=False)
    ]
    cut = record("T 3 0 x") + record("B 3 1 cut /")
    assert reader.feed(cut) == [CommandBegin(3, "x", "/")]


def test_a_text_is_cut_at_its_limit_between_characters() -> None:
    reader = ReportReader(NONCE)
    pieces = ["a" + "ü" * 300] + ["ü" * 300] * 40
    stream = b"".join(record(f"T 1 {index} {piece}") for index, piece in enumerate(pieces))
    [begin] = reader.feed(stream + record(f"B 1 {len(pieces)} whole /"))
    assert isinstance(begin, CommandBegin)
    assert len(begin.text.encode()) == COMMAND_TEXT_MAX_BYTES - 1


def test_bytes_that_are_not_utf8_become_text_that_can_be_sent() -> None:
    reader = ReportReader(NONCE)
    [end] = reader.feed(record(b"E 1 0 /a\xffb"))
    assert end == CommandEnd(1, 0, "/a\\xffb")


def test_the_fifo_is_private_keeps_data_and_is_found_again(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    fd = make_fifo(path, os.getuid(), os.getgid())
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not os.get_inheritable(fd)
    os.write(fd, b"kept")
    again = make_fifo(path, os.getuid(), os.getgid())
    assert os.read(again, 10) == b"kept"
    with pytest.raises(BlockingIOError):
        os.read(again, 10)
    os.close(fd)
    os.close(again)


def test_something_else_in_the_place_of_the_fifo_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_fifo(str(tmp_path / "file"), os.getuid(), os.getgid())


def test_the_nonce_comes_once_and_then_the_pipe_ends() -> None:
    fd = nonce_pipe(NONCE)
    assert os.read(fd, 100) == NONCE.encode() + b"\n"
    assert os.read(fd, 100) == b""
    os.close(fd)
    with pytest.raises(ValueError):
        nonce_pipe("not; a nonce")


def test_bash_is_started_as_it_was_asked_for_besides_reading_our_file() -> None:
    plain = integrate(("/bin/bash", "-i"), {}, "/f", 7)
    assert plain is not None
    assert (plain.argv[0], plain.argv[1], plain.argv[3:]) == ("/bin/bash", "--init-file", ("-i",))
    login = integrate(("-bash",), {"ENV": "/own"}, "/f", 7)
    assert login is not None
    assert login.argv == ("bash", "--posix", "-l")
    assert login.env["HOLD_SHELL_ENV"] == "/own"
    dumb = integrate(("bash", "--noediting"), {}, "/f", 7)
    assert dumb is not None
    assert not dumb.edits_lines
