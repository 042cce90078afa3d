"""The user's own shell configuration beside ours: sourced, kept, and none the wiser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell import integration as shell_adapter
from process.integrated_shell import Start, starter


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from starter(tmp_path)


BASHRC = """
set -u
PS1='mine:$?> '
PS0='user-ps0 '
PROMPT_COMMAND='echo pc:$?'
trap 'debug_seen=1' DEBUG
HISTCONTROL=ignoreboth
alias printf='echo ALIASED'
read() { echo SHADOWED; }
"""


def test_bash_keeps_what_the_users_rc_file_set(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(BASHRC)
    shell = start("bash")
    _, end = shell.run("sh -c 'exit 7'")
    assert shell.shown(end.seq) == ""
    shell.until(lambda: b"mine:7> " in shell.output)
    assert b"pc:7\r\n" in shell.output
    assert b"user-ps0 " in shell.output
    assert shell.says("echo $debug_seen $-").startswith("1 ")
    assert "debug_seen=1" in shell.says("trap -p DEBUG")
    begin, end = shell.run(" echo secret")  # which ignorespace keeps out of the history
    assert not begin.text_known
    assert begin.text == ""
    assert shell.shown(end.seq) == "secret\n"
    assert shell.run("true")[0].text == "true"
    assert "u" in shell.says("echo $-")


def test_bash_prompt_commands_set_later_keep_their_status_and_ours(start: Start) -> None:
    shell = start("bash")
    shell.run("PROMPT_COMMAND='echo first:$?'")
    assert shell.run("(exit 8)")[1].status == 8
    shell.until(lambda: b"first:8\r\n" in shell.output)
    shell.run('PROMPT_COMMAND="false; $PROMPT_COMMAND"')
    assert shell.run("(exit 9)")[1].status == 9
    shell.run("PROMPT_COMMAND+=('echo last:$?')")
    _, end = shell.run("(exit 10)")
    assert end.status == 10
    assert shell.shown(end.seq) == ""
    shell.until(lambda: b"last:10\r\n" in shell.output)
    shell.run("PS1='new> ' PS0=")
    assert shell.says("echo there") == "there\n"


def test_bash_under_errexit_nounset_allexport_and_xtrace_is_as_without_us(start: Start) -> None:
    shell = start("bash")
    shell.run("set -eua")
    assert shell.run("! true")[1].status == 1
    shell.abandon()
    assert shell.run("if false; then :; fi")[1].status == 0
    assert "__hold" not in shell.says("env")
    shell.run("set +ea")
    traced = len(shell.output)
    shell.run("set -x")
    assert "+ echo traced" in shell.says("echo traced")
    shell.abandon()
    shell.run("set +x")
    assert b"__hold" not in shell.output[traced:]
    shell.run("set -e")
    shell.type(b"false\n")
    assert os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)


def test_a_bash_that_knows_only_one_prompt_command_is_served_too(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Bash before 5.1 takes PROMPT_COMMAND for a string; a newer one can still be asked to.
    script = (shell_adapter.SHELLS / "bash.sh").read_text()
    arrays = "BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1)"
    assert arrays in script
    (tmp_path / "bash.sh").write_text(script.replace(arrays, "0"))
    monkeypatch.setattr(shell_adapter, "SHELLS", tmp_path)
    (tmp_path / ".bashrc").write_text("PROMPT_COMMAND='echo pc:$?'; PS1='mine:$?> '\n")
    shell = start("bash")
    _, end = shell.run("(exit 7)")
    assert (end.status, shell.shown(end.seq)) == (7, "")
    shell.until(lambda: b"pc:7\r\n" in shell.output and b"mine:7> " in shell.output)
    shell.run("set -e")
    assert shell.run("! true")[1].status == 1
    traced = len(shell.output)
    shell.run("set +e; set -x")
    shell.run("set +x")
    assert b"__hold" not in shell.output[traced:]
    shell.run("export PROMPT_COMMAND PS1 PS0")
    assert "__hold" not in shell.says("bash --norc -c 'eval \"$PROMPT_COMMAND\"'")


def test_a_bash_login_shell_reads_the_login_files_and_is_one(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("from_profile=yes\n")
    (tmp_path / ".bashrc").write_text("from_rc=yes\n")
    shell = start("-bash", ENV="/users/own")
    assert shell.says("echo ${from_profile-no} ${from_rc-no} $ENV") == "yes no /users/own\n"
    assert shell.says("shopt login_shell inherit_errexit") == (
        "login_shell    \ton\ninherit_errexit\toff\n"
    )
    assert (
        shell.says("echo $HISTFILE ${POSIXLY_CORRECT-none}") == f"{tmp_path}/.bash_history none\n"
    )
    assert "posix          \toff" in shell.says("set -o")


def test_bash_without_rc_reads_none_and_with_a_named_one_reads_that(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text("from_rc=yes\n")
    (tmp_path / "other").write_text("from_other=yes\n")
    assert start("bash").says("echo ${from_rc-no}") == "yes\n"
    assert start("bash", "--norc").says("echo ${from_rc-no}") == "no\n"
    shell = start("bash", "--rcfile", str(tmp_path / "other"))
    assert shell.says("echo ${from_rc-no} ${from_other-no}") == "no yes\n"


def test_zsh_reads_the_users_files_from_the_users_own_directory(
    start: Start, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / ".zshenv").write_text("seen=env\n")
    (own / ".zprofile").write_text("seen+=,profile\n")
    (own / ".zlogin").write_text("seen+=,login\n")
    (own / ".zshrc").write_text(
        "seen+=,rc\nsetopt no_unset ksh_arrays sh_word_split all_export\n"
        "PS1='mine:%?> '\nprecmd_functions+=(theirs)\ntheirs() { echo pc:$? }\n"
    )
    shell = start("zsh", "-l", ZDOTDIR=str(own))
    assert shell.says("echo $seen $ZDOTDIR") == f"env,profile,rc,login {own}\n"
    _, end = shell.run("(exit 7)")
    assert (end.status, shell.shown(end.seq)) == (7, "")
    shell.until(lambda: b"pc:7\r\n" in shell.output and b"mine:7> " in shell.output)
    assert "__hold" not in shell.says("env")
    shell.run("PS1='new> '")
    assert shell.says("echo there") == "there\n"


def test_fish_reads_the_users_configuration_and_keeps_its_status(
    start: Start, tmp_path: Path
) -> None:
    config = tmp_path / ".config" / "fish"
    config.mkdir(parents=True)
    (config / "config.fish").write_text(
        "set -g seen config\nfunction fish_prompt; echo -n mine:$status'> '; end\n"
        "function theirs --on-event fish_prompt; echo pc:$status; end\n"
    )
    shell = start("fish")
    assert shell.says("echo $seen") == "config\n"
    _, end = shell.run("sh -c 'exit 7'")
    assert (end.status, shell.shown(end.seq)) == (7, "")
    shell.until(lambda: b"pc:7\r\n" in shell.output and b"mine:7> " in shell.output)
