"""A shell started in one that reports: bash, zsh and fish in one another, on a real PTY."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import CommandBegin, CommandEnd, PromptShown, ShellBelow
from process.integrated_shell import LINE_END, Shell, Start, starter

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from starter(tmp_path)


def enter(shell: Shell, line: str, kind: str) -> ShellBelow:
    """Start a nested shell and wait for its prompt; the keyboard is its own from here on."""
    seen = len(shell.reports)
    shell.type(line.encode() + shell._enter)
    shell.until(lambda: any(isinstance(each, ShellBelow) for each in shell.reports[seen:]))
    found = next(each for each in shell.reports[seen:] if isinstance(each, ShellBelow))
    assert found.kind == kind
    shell.until(lambda: isinstance(shell.reports[-1], PromptShown) and shell.raw())
    shell.kind, shell._enter = kind, LINE_END[kind]
    return found


def leave(shell: Shell, status: int, kind: str) -> list[CommandEnd]:
    """`exit`: the ends that are reported until the outer shell, of this kind, is at its prompt."""
    seen, prompts = len(shell.reports), len(shell.prompts())
    shell.type(f"exit {status}".encode() + shell._enter)
    shell.at_prompt(prompts + 1)
    shell.kind, shell._enter = kind, LINE_END[kind]
    return [each for each in shell.reports[seen:] if isinstance(each, CommandEnd)]


@pytest.mark.parametrize("inner", SHELLS)
@pytest.mark.parametrize("outer", SHELLS)
def test_a_nested_shell_reports_and_gives_the_prompt_back(
    outer: str, inner: str, start: Start
) -> None:
    shell = start(outer)
    shell.run("true")
    below = enter(shell, inner, inner)
    assert below.below == 2
    assert f"/{inner}" in os.readlink(f"/proc/{below.pid}/exe")
    assert shell.says("echo inside") == "inside\n"
    begin, end = shell.run("false")
    assert (begin.seq, begin.text, end.status) == (4, "false", 1)
    assert shell.state().kind == inner
    # Of the line that ends it, the status is the shell's own; then the outer one's goes on.
    assert [(end.seq, end.status) for end in leave(shell, 3, outer)] == [(5, 3), (2, 3)]
    assert shell.prompts()[-1] == PromptShown(6, 3, str(shell.home))
    assert shell.state().kind == outer
    assert shell.says("echo outside") == "outside\n"
    assert shell.reader.refused == 0


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("bash -i", "bash"),
        ("bash --norc", "bash"),
        ("bash -l", "bash"),
        ("/bin/bash", ""),  # by its path: a function has no such name
        ("env FOO=1 bash", "bash"),
        ("env FOO=1 BAR='a b' zsh -f", "zsh"),
        ("su", "bash"),
        ("su root", "bash"),
        ("su -c 'echo said'", ""),
        ("bash -c 'echo said'", ""),
        ("env FOO=said sh -c 'echo $FOO'", ""),
        ("env -u FOO bash -c 'echo said'", ""),
    ],
)
def test_what_starts_a_bare_shell_makes_it_report(line: str, kind: str, start: Start) -> None:
    if line.startswith("su") and os.getuid():
        pytest.skip("su asks others than root for a password")
    shell = start("bash")
    if kind:
        enter(shell, line, kind)
        said = shell.says('echo "$FOO,$BAR,$HOLD_SHELL_NONCE_FD"')
        wanted = {"env FOO=1 bash": "1,,", "env FOO=1 BAR='a b' zsh -f": "1,a b,"}
        assert said.strip() == wanted.get(line, ",,")
        leave(shell, 0, "bash")
    elif "said" in line:
        assert shell.says(line) == "said\n"
    else:
        shell.type(line.encode() + b"\n")
        shell.until(lambda: isinstance(shell.reports[-1], CommandBegin) and shell.raw())
        assert not any(isinstance(each, ShellBelow) for each in shell.reports)


@pytest.mark.parametrize("kind", SHELLS)
def test_nothing_that_a_nested_shell_starts_finds_the_secret(kind: str, start: Start) -> None:
    shell = start("bash")
    below = enter(shell, kind, kind)
    assert shell.nonce not in shell.says("env; cat <&9 2>/dev/null")
    assert "HOLD_SHELL" not in shell.says("env")
    started_with = Path(f"/proc/{below.pid}/environ").read_bytes()
    assert shell.nonce.encode() not in started_with
    assert shell.nonce not in Path(f"/proc/{below.pid}/cmdline").read_text()


def test_shells_three_deep_that_end_at_once_leave_no_command_without_an_end(start: Start) -> None:
    shell = start("bash")
    enter(shell, "zsh", "zsh")
    assert enter(shell, "bash", "bash").below == 2
    shell.type(b"kill -9 $PPID" + shell._enter)  # the shell in the middle

    def outer_prompt() -> bool:
        last = shell.reports[-1]
        return isinstance(last, PromptShown) and last.status == 137

    shell.until(outer_prompt)
    ends = {each.seq: each.status for each in shell.reports if isinstance(each, CommandEnd)}
    assert (ends[1], ends[2]) == (137, 137)
    assert sorted(ends) == [each.seq for each in shell.reports if isinstance(each, CommandBegin)]
    assert shell.prompts()[-1].seq > max(ends)


@pytest.mark.parametrize("kind", SHELLS)
def test_one_command_line_starts_two_shells_one_after_the_other(kind: str, start: Start) -> None:
    shell = start(kind)
    first = enter(shell, "bash; bash", "bash")
    shell.run("true")
    seen = len(shell.reports)
    shell.type(b"exit 3\n")
    shell.until(lambda: any(isinstance(each, ShellBelow) for each in shell.reports[seen:]))
    shell.until(lambda: isinstance(shell.reports[-1], PromptShown) and shell.raw())
    second = next(each for each in shell.reports[seen:] if isinstance(each, ShellBelow))
    assert first.below == second.below == 1 and first.pid != second.pid
    assert shell.run("false")[0].seq == 4
    assert [(end.seq, end.status) for end in leave(shell, 5, kind)] == [(5, 5), (3, 5), (1, 5)]
    assert shell.says("echo outside") == "outside\n"


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_tracing_shows_the_call_alone(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("set -x")
    assert "hold" not in shell.says("bash -c 'echo inside'").lower()


@pytest.mark.parametrize("kind", SHELLS)
def test_our_functions_are_no_state_of_the_shell_and_another_of_their_name_is(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    shell.run("true")
    assert not {"bash", "zsh", "fish", "su", "env"} & shell.state().functions.keys()
    other = "function env; echo trap; end" if kind == "fish" else "env() { echo trap; }"
    shell.run(other)
    assert {"bash", "env"} & shell.state().functions.keys() == {"env"}


def test_no_program_inherits_our_functions(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("set -a\n")
    shell = start("bash")
    assert "BASH_FUNC" not in shell.says("command env")
    assert shell.says("bash -c 'type -t env'") == "file\n"


def test_the_users_own_function_of_that_name_stays(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("bash() { echo mine; }\n")
    shell = start("bash")
    assert shell.says("bash") == "mine\n"
