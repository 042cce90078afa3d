"""The text left at a real shell's prompt: asked for with the probe, and left as it was (A6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import (
    CLEAR_LINE,
    GATE_PROBE,
    LINE_PROBE,
    PASTE_PROBE,
    integrate,
    may_probe,
)
from holdfast.model.limits import COMMAND_TEXT_MAX_BYTES
from process.integrated_shell import Start, starter

SHELLS = ("bash", "zsh", "fish")
LEFT = b"\x1b[D"
_STARTED = integrate(("zsh",), {}, "/run/bell", 9)
assert _STARTED is not None
EXACT_LINE = _STARTED.exact_line_key


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from starter(tmp_path)


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("kind", SHELLS)
def test_the_half_typed_text_is_told_and_stays_with_its_cursor(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type("echo 100% 'grün 漢字 %0A")
    line = shell.probe()
    assert (line.text, line.point) == ("echo 100% 'grün 漢字 %0A", 22)
    assert (line.seq, line.text_known) == (1, True)
    shell.type(LEFT * 3)
    assert shell.probe().point == 19
    begin, end = shell.run("X'; echo ")
    assert (begin.seq, begin.text) == (1, "echo 100% 'grün 漢字 X'; echo %0A")
    assert shell.shown(end.seq) == "100% grün 漢字 X\n%0A\n"


@pytest.mark.parametrize("kind", SHELLS)
def test_an_empty_prompt_has_no_text_and_no_status_is_lost(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("sh -c 'exit 7'")
    assert shell.probe().text == ""
    assert shell.says("echo $status" if kind == "fish" else "echo $?") == "7\n"
    assert len(shell.prompts()) == 3


@pytest.mark.parametrize("kind", SHELLS)
def test_a_text_of_several_lines_is_told_whole(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type(b"\x1b[200~echo 'a\nb c\nd\x1b[201~")
    assert shell.probe().text == "echo 'a\nb c\nd"
    begin, end = shell.run("'")
    assert begin.text == "echo 'a\nb c\nd'"
    assert shell.shown(end.seq) == "a\nb c\nd\n"


@pytest.mark.parametrize("kind", SHELLS)
def test_lines_that_wait_for_the_rest_of_a_command_are_told_too(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type(b"echo 'first" + shell._enter + b"sec")
    line = shell.probe()
    assert (line.text, line.point) == ("echo 'first\nsec", 15)
    _, end = shell.run("ond'")
    assert shell.shown(end.seq).endswith("first\nsecond\n")
    assert b"error" not in shell.output
    shell.type("next")
    assert shell.probe().text == "next"


@pytest.mark.parametrize("kind", SHELLS)
def test_a_search_through_the_history_ends_with_what_it_found(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("echo hello")
    shell.type(b"\x12hel")
    assert shell.probe().text == "echo hello"
    assert b"keymap" not in shell.output


@pytest.mark.parametrize("kind", SHELLS)
def test_undo_still_undoes_what_was_typed_before(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type("echo one")
    shell.until(shell.quiet)
    shell.type(b"\x17")  # ^W takes the word away
    assert shell.probe().text == "echo "
    shell.type(b"\x1f")  # undo
    assert shell.probe().text == "echo one"


@pytest.mark.parametrize(
    "kind, vi", [("bash", "set -o vi"), ("zsh", "bindkey -v"), ("fish", "fish_vi_key_bindings")]
)
def test_both_vi_modes_answer_too(kind: str, vi: str, start: Start) -> None:
    shell = start(kind)
    shell.run(vi)
    shell.type("echo mode")
    assert shell.probe().text == "echo mode"
    shell.type(b"\x1b")
    shell.until(shell.quiet)
    assert shell.probe().text == "echo mode"
    shell.type("x")  # a command in this mode, so it still is this mode
    assert shell.probe().text == "echo mod"


@pytest.mark.parametrize("kind", SHELLS)
def test_the_prompt_line_looks_as_before(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type("echo half")
    shell.until(shell.quiet)
    at = len(shell.output)
    shell.probe()
    drawn = shell.output[at:]
    assert b"\n" not in drawn
    assert b"5099" not in drawn
    # Either nothing is drawn, or the same line again.
    assert not drawn or drawn.endswith(b"echo half")


@pytest.mark.parametrize(
    "typed", (b"", b"ls", b"ls\r", b"\x1b[D", b"\x1b[200~a\x1b[201~", "ü".encode())
)
def test_the_probe_may_follow_whole_keys(typed: bytes) -> None:
    assert may_probe(typed)


@pytest.mark.parametrize("typed", (b"ls\x16", b"\x11", b"\x18", b"ls\x1b"))
def test_the_probe_may_not_follow_half_a_key(typed: bytes) -> None:
    assert not may_probe(typed)


@pytest.mark.parametrize("kind", ("bash", "zsh"))
def test_a_very_long_text_is_cut(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type(b"\x1b[200~" + b"x" * (COMMAND_TEXT_MAX_BYTES + 5) + b"\x1b[201~")
    line = shell.probe()
    assert line.text == "x" * COMMAND_TEXT_MAX_BYTES


@pytest.mark.parametrize("key", (EXACT_LINE, GATE_PROBE, PASTE_PROBE, CLEAR_LINE, LINE_PROBE))
@pytest.mark.parametrize("kind", ("bash", "zsh"))
def test_a_shell_with_xtrace_shows_nothing_of_our_keys(kind: str, key: bytes, start: Start) -> None:
    shell = start(kind)
    shell.run("set -x")
    at = len(shell.output)
    shell.type("abc")
    shell.until(lambda: b"abc" in shell.output[at:] and shell.quiet())
    at = len(shell.output)
    shell.type(key)
    shell.until(shell.quiet)
    assert shell.probe().text == ("" if key == CLEAR_LINE else "abc")  # so it took the key
    assert b"__hold" not in shell.output[at:]


def test_bash_with_xtrace_and_errexit_shows_nothing_of_the_probe(start: Start) -> None:
    shell = start("bash")
    shell.run("set -exu")
    shell.type("ec")
    at = len(shell.output)
    assert shell.probe().text == "ec"
    assert b"__hold" not in shell.output[at:]
    shell.run("ho")
