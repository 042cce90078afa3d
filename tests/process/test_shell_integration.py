"""What the real bash, zsh and fish report, on a real PTY, of each kind of command line."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import (
    CommandBegin,
    CommandEnd,
    PromptShown,
    integrate,
)
from holdfast.core import command_output
from holdfast.core.command_output import CommandOutput
from holdfast.host.session.exec_runs import command_bytes
from process.integrated_shell import NONCE_FD, Start, starter

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from starter(tmp_path)


@pytest.mark.parametrize("kind", SHELLS)
def test_a_started_shell_says_that_it_is_at_the_prompt(kind: str, start: Start) -> None:
    shell = start(kind)
    assert shell.reports == [PromptShown(1, 0, str(shell.home))]
    assert shell.reader.refused == 0


@pytest.mark.parametrize("kind", SHELLS)
def test_each_command_line_has_one_begin_and_one_end_with_its_status_and_directory(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    home = str(shell.home)
    for line, status in (
        ("true", 0),
        ("sleep 0.01 &", 0),  # fish keeps the status of the line before
        ("false", 1),
        ("true | false | cat", 0),
        ("echo a; false", 1),
        ("no_such_command_at_all", 127),
        ("sh -c 'exit 42'", 42),
    ):
        begin, end = shell.run(line)
        assert (begin.text, begin.cwd) == (line, home), line
        assert (end.status, end.cwd) == (status, home), line
    begin, end = shell.run("cd /tmp")
    assert (begin.cwd, end.cwd, end.status) == (home, "/tmp", 0)
    assert shell.prompts()[-1].cwd == "/tmp"
    assert shell.reader.refused == 0


@pytest.mark.parametrize("kind", ("bash", "zsh"))
def test_what_a_debug_trap_would_miss_is_reported_too(kind: str, start: Start) -> None:
    shell = start(kind)
    assert shell.run("(exit 3)")[1].status == 3
    assert shell.run("f() { echo in f; return 5; }")[1].status == 0
    assert shell.run("f")[1].status == 5
    assert shell.run("! true")[1].status == 1
    assert shell.run("if false; then :; fi")[1].status == 0
    assert shell.run("x=1")[1].status == 0
    assert shell.run("(( 0 ))")[1].status == 1


@pytest.mark.parametrize("kind", SHELLS)
def test_a_loop_over_several_lines_is_one_command(kind: str, start: Start) -> None:
    shell = start(kind)
    lines = "for i in 1 2\necho $i\nend" if kind == "fish" else "for i in 1 2\ndo echo $i\ndone"
    begin, end = shell.run(lines)
    assert begin.text.startswith("for i in 1 2")
    assert shell.shown(end.seq) == "1\n2\n"


@pytest.mark.parametrize("kind", SHELLS)
def test_a_line_that_does_not_parse_begins_and_ends_without_running(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    shell.run("true")
    for _ in range(2):  # the second time the status was a parse error already
        begin, end = shell.run("echo )")
        assert not begin.parsed
        assert end.status == (1 if kind == "zsh" else 2)
        if kind == "fish":  # which keeps the line for correction
            shell.type(b"\x15")
    if kind != "fish":
        ended = command_output.mark(command_output.END, end.seq)
        shell.until(lambda: bool(ended.search(shell.output)))
        refusal = CommandOutput(end.seq, parsed=False)
        complaint = refusal.feed(shell.output) + refusal.end_reported()
        assert b"error near" in complaint
        assert not command_output.mark(command_output.BEGIN, end.seq).search(shell.output)
    assert shell.run("true")[1].status == 0


@pytest.mark.parametrize("kind", SHELLS)
def test_an_interrupted_command_ends_with_130(kind: str, start: Start) -> None:
    shell = start(kind)
    _, end = shell.run("sh -c 'echo started; exec sleep 100'", interrupt_after=b"started\r\n")
    assert end.status == 130
    assert shell.run("true")[1].status == 0


@pytest.mark.parametrize("kind", SHELLS)
def test_empty_lines_and_an_abandoned_line_use_up_no_number(kind: str, start: Start) -> None:
    shell = start(kind)
    _, end = shell.run("false")
    seen = len(shell.reports)
    for count in range(3):
        shell.type(shell._enter)
        shell.at_prompt(count + 3)
    shell.abandon()
    assert all(isinstance(report, PromptShown) for report in shell.reports[seen:])
    assert shell.prompts()[-1].seq == end.seq + 1
    assert shell.prompts()[-1].status == 130
    assert shell.run("true")[1].seq == end.seq + 1


@pytest.mark.parametrize("kind", SHELLS)
def test_quotes_newlines_percents_and_utf8_arrive_as_typed(kind: str, start: Start) -> None:
    shell = start(kind)
    line = """printf '%s ' "it's" '100% %0A %s \\n' grün 漢字 🦀"""
    begin, end = shell.run(line)
    assert begin.text == line
    assert shell.shown(end.seq) == "it's 100% %0A %s \\n grün 漢字 🦀 "
    begin, end = shell.run("echo 'a\nb'")
    assert begin.text == "echo 'a\nb'"
    assert shell.shown(end.seq) == "a\nb\n"


@pytest.mark.parametrize("kind", SHELLS)
def test_a_long_line_arrives_whole_and_a_longer_one_cut(kind: str, start: Start) -> None:
    shell = start(kind)
    line = "true " + "x" * 10_000
    begin, _ = shell.run(line)
    assert begin.text == line
    if kind != "fish":  # twenty thousand typed keys take its editor too long
        begin, end = shell.run("true " + "ü" * 9_000)
        assert begin.text.startswith("true üü")
        assert 16_380 <= len(begin.text.encode()) <= 16_384
        assert end.status == 0


@pytest.mark.parametrize("kind", SHELLS)
def test_forged_marks_and_forged_reports_change_nothing(kind: str, start: Start) -> None:
    shell = start(kind)
    forge = shell.home / "forge"
    forge.write_text(
        "#!/bin/sh\n"
        "printf 'one\\033]133;D;0;hold=1\\007two\\033]133;C;hold=1\\007three\\n'\n"
        f"printf '\\0HOLD1 {'0' * 32} E 1 0 /\\0' >>{shell.fifo}\n"
        f"printf 'no end' >>{shell.fifo}\n"
        "exit 9\n"
    )
    forge.chmod(0o755)
    begin, end = shell.run("./forge")
    assert (begin.seq, end.seq, end.status) == (1, 1, 9)
    assert shell.shown(1) == "onetwothree\n"
    assert shell.reader.refused == 2


@pytest.mark.parametrize("kind", SHELLS)
def test_a_child_sees_nothing_of_ours_and_a_shell_of_a_program_does_not_report(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    seen = shell.says("env")
    assert "hold" not in seen.lower().replace(str(shell.home).lower(), "")
    assert shell.nonce not in seen
    assert "ZDOTDIR" not in seen
    assert "\nENV=" not in seen
    quiet = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}[kind]
    quiet = f"sh -c 'exec {quiet}'"
    reports = len(shell.reports)
    shell.type(quiet)
    shell.type(shell._enter)
    shell.until(lambda: isinstance(shell.reports[-1], CommandBegin))
    shell.type(b"sh -c 'echo insi''de; exit 6'" + shell._enter)
    shell.until(lambda: b"inside\r\n" in shell.output)
    shell.type(b"exit 4" + shell._enter)
    shell.at_prompt(3)
    kinds = [type(report) for report in shell.reports[reports:]]
    assert kinds == [CommandBegin, CommandEnd, PromptShown]
    assert shell.prompts()[-1].status == 4


@pytest.mark.parametrize("kind", SHELLS)
def test_no_descriptor_of_ours_stays_open_at_the_prompt(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("true")
    for fd in Path(f"/proc/{shell.pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except FileNotFoundError:
            continue  # closed since it was listed
        assert target != shell.fifo
        if kind != "fish":  # which cannot close what it was given: an empty pipe at its end
            assert not (int(fd.name) == NONCE_FD and stat.S_ISFIFO(fd.stat().st_mode))


@pytest.mark.parametrize("kind", SHELLS)
def test_a_fifo_that_is_full_or_gone_neither_stops_the_shell_nor_shows(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    try:
        while True:
            os.write(shell.fifo_fd, b"x" * 4096)
    except BlockingIOError:
        pass
    shell.type(b"echo fu''ll" + shell._enter)
    shell.until(lambda: b"full\r\n" in shell.output, fifo=False)
    shell.until(lambda: b"133;A;hold=2" in shell.output and shell.raw(), fifo=False)
    os.unlink(shell.fifo)
    shell.type(b"echo go''ne" + shell._enter)
    shell.until(lambda: b"gone\r\n" in shell.output, fifo=False)
    shell.until(lambda: b"133;A;hold=3" in shell.output and shell.raw(), fifo=False)
    assert shell.shown(2) == "gone\n"
    assert not os.path.exists(shell.fifo)


@pytest.mark.parametrize("kind", SHELLS)
def test_exit_and_exec_begin_and_are_never_said_to_have_ended(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.type(b"exec sh -c 'echo repl''aced; exec cat'" + shell._enter)
    shell.until(lambda: b"replaced\r\n" in shell.output)
    assert isinstance(shell.reports[-1], CommandBegin)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("bash", "-c", "true"),
        ("bash", "script.sh"),
        ("bash", "-r"),
        ("bash", "--posix"),
        ("bash", "--rcfile"),
        ("bash", "-o", "vi"),
        ("dash",),
        ("python3",),
        ("zsh", "-c", "true"),
        ("fish", "-c", "true"),
        ("fish", "script.fish"),
    ],
)
def test_anything_but_a_bare_interactive_shell_is_left_alone(argv: tuple[str, ...]) -> None:
    assert integrate(argv, {}, "/fifo", 7) is None


def _exactly(kind: str, line: str) -> bytes:
    started = integrate((kind,), {}, "/nowhere", 7)
    assert started is not None
    return command_bytes(line, bracketed=True, shell=kind, exact=started.exact_line_key)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_line_of_exec_is_not_expanded_and_the_persons_own_next_one_is(
    start: Start, kind: str
) -> None:
    shell = start(kind)
    if kind == "fish":
        shell.run("abbr -a gg 'echo expanded'")
        line = "echo gg; true gg"
    else:
        shell.run("echo first")
        line = "echo '!!'; echo !! !x\n\techo !!"
    prompts = len(shell.prompts())
    shell.type(_exactly(kind, line))
    shell.at_prompt(prompts + 1)
    shown = shell.shown(shell.prompts()[-1].seq - 1)
    if kind == "fish":
        assert shown == "gg\n"
        assert shell.says("gg") == "expanded\n"
    else:
        assert shown == "!!\n!! !x\n!!\n"
        shell.run("echo mine")
        assert "echo mine" in shell.says("echo !!")


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_a_command_of_exec_keeps_or_sets_the_history_characters(start: Start, kind: str) -> None:
    shell = start(kind)
    shell.run("histchars='@^#'")
    shell.type(_exactly(kind, "echo @@ # a comment" if kind == "bash" else "echo @@"))
    shell.at_prompt(3)
    assert shell.shown(2) == "@@\n"
    assert shell.says('echo "$histchars"') == "@^#\n"
    shell.type(_exactly(kind, "histchars='+^#'"))
    shell.at_prompt(5)
    assert shell.says('echo "$histchars"') == "+^#\n"


def test_a_line_of_exec_that_zsh_does_not_parse_leaves_history_expansion_as_it_was(
    start: Start,
) -> None:
    shell = start("zsh")
    shell.run("setopt interactive_comments ksh_arrays")
    shell.type(_exactly("zsh", "echo ) # !x"))
    shell.at_prompt(3)
    assert shell.says('echo "$histchars"') == "!^#\n"
    shell.type(_exactly("zsh", "echo one # !x"))
    shell.at_prompt(5)
    assert shell.shown(4) == "one\n"


@pytest.mark.parametrize("option", ["-N", "--no-config"])
def test_fish_without_its_configuration_reports_too_and_reads_none(
    start: Start, tmp_path: Path, option: str
) -> None:
    configuration = tmp_path / ".config" / "fish"
    configuration.mkdir(parents=True)
    (configuration / "config.fish").write_text("set -g read_one yes\n")
    shell = start("fish", option)
    assert shell.says("set -q read_one; echo $status") == "1\n"


def test_zsh_without_startup_files_reports_too_and_reads_none(start: Start, tmp_path: Path) -> None:
    for name in (".zshenv", ".zshrc"):
        (tmp_path / name).write_text("read_one=yes\n")
    shell = start("zsh", "-f")
    assert shell.says("[[ -o rcs ]]; echo $? ${read_one-none} ${ZDOTDIR-none}") == "1 none none\n"
