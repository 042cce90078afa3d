"""What the real bash, zsh and fish write of their own state at each prompt (A6)."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell import integration as shell_adapter
from holdfast.adapters.shell.state_file import read_state
from holdfast.core.command_output import mark
from holdfast.core.shell_changes import changes
from holdfast.model.change_text import text
from process.integrated_shell import Shell, Start, starter

SHELLS = ("bash", "zsh", "fish")
SECRET = "hunter2-of-the-tests"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from starter(tmp_path)


def said(shell: Shell, line: str) -> list[str]:
    return [text(change) for change in shell.changed_by(line)]


POSIX_CHANGES = [
    ("true", []),
    ("alias ll='ls -l \"$HOME\"'", ['alias ll added: ls -l "$HOME"']),
    ("alias ll='it'\"'\"'s'", ['alias ll changed: ls -l "$HOME" -> it\'s']),
    ("unalias ll", ["alias ll removed"]),
    ("export TOKEN=a", ["variable TOKEN added"]),
    ("export TOKEN=b", ["variable TOKEN changed"]),
    ("unset TOKEN", ["variable TOKEN removed"]),
    (
        """export LD_PRELOAD=$'/a b\\n\\e[1m"`'""",
        ["""variable LD_PRELOAD added: /a b\\n\\x1b[1m"`"""],
    ),
    ("unset LD_PRELOAD", ["variable LD_PRELOAD removed"]),
    ("PATH=/tmp/evil:$PATH", ["PATH: added /tmp/evil (first)"]),
    ("PATH=${PATH#*:}", ["PATH: removed /tmp/evil"]),
    ("IFS=:", ["variable IFS changed:  \\t\\n -> :"]),
    ("f() { echo 1; }", ["function f added"]),
    ("f() { echo 2; }", ["function f changed"]),
    ("f() { echo 2; }", []),
    ("unset -f f", ["function f removed"]),
    ("trap 'echo \"hi\"' USR1", ['trap on USR1 added: echo "hi"']),
    ("trap - USR1", ["trap on USR1 removed"]),
    ("umask 027", ["umask: 0022 -> 0027"]),
    ("umask 022", ["umask: 0027 -> 0022"]),
]


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("kind", ("bash", "zsh"))
def test_each_kind_of_change_is_told_and_nothing_else(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("umask 022; IFS=$' \\t\\n'")
    for line, expected in POSIX_CHANGES:
        assert said(shell, line) == expected, line
    home = str(shell.home)
    assert said(shell, "cd /tmp") == [f"directory: {home} -> /tmp"]
    own = {
        "bash": [
            ("hash -p /usr/bin/id uname", ["remembered command uname added: /usr/bin/id"]),
            ("shopt -s nullglob", ["option nullglob: on"]),
            ("set -u", ["option nounset: on"]),
            ("trap 'x=1' DEBUG", ["trap on DEBUG added: x=1"]),
            ("trap 'y=1' ERR RETURN", ["trap on ERR added: y=1", "trap on RETURN added: y=1"]),
            ("PROMPT_COMMAND=':'", ["variable PROMPT_COMMAND added: :"]),
        ],
        "zsh": [
            ("hash uname=/usr/bin/id", ["remembered command uname added: /usr/bin/id"]),
            ("setopt null_glob", ["option nullglob: on"]),
            ("alias -g G='|grep'", ["alias G -g added: |grep"]),
            ("chpwd_functions+=(g)", ["variable chpwd_functions added: g"]),
        ],
    }[kind]
    for line, expected in own:
        assert said(shell, line) == expected, line


@pytest.mark.requirement("A6")
def test_each_kind_of_change_in_fish_is_told_and_nothing_else(start: Start) -> None:
    shell = start("fish")
    shell.run("umask 022")
    for line, expected in [
        ("true", []),
        ("abbr -a gs 'git status'", ["alias gs added: git status"]),
        ("set -gx TOKEN a", ["variable TOKEN added"]),
        ("set -gx TOKEN b", ["variable TOKEN changed"]),
        ("set -e TOKEN", ["variable TOKEN removed"]),
        ("set -gx LD_PRELOAD \"/it's\" 'a\nü'", ["variable LD_PRELOAD added: /it's a\\nü"]),
        ("set -gx PATH /tmp/evil $PATH", ["PATH: added /tmp/evil (first)"]),
        ("function f; echo 1; end", ["function f added"]),
        ("function f; echo 2; end", ["function f changed"]),
        ("functions -e f", ["function f removed"]),
        ("function ls; echo mine; end", ["function ls added"]),  # fish has a file for it
        ("function ls; echo else; end", ["function ls changed"]),
        (
            "function g --on-event fish_prompt; end",
            ["function g added", "trap on fish_prompt g added"],
        ),
        ("umask 027", ["umask: 0022 -> 0027"]),
        ("cd /tmp", [f"directory: {shell.home} -> /tmp"]),
    ]:
        assert said(shell, line) == expected, line


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("kind", SHELLS)
def test_a_background_job_is_told_and_its_end_too(kind: str, start: Start) -> None:
    shell = start(kind)
    [job] = said(shell, "sleep 100 &")
    pid = job.split()[1].rstrip(":")
    assert job.startswith(f"job {pid}: running sleep 100")
    os.kill(int(pid), 9)
    for _ in range(20):  # a shell hears of it between two lines, and tells at the next one
        shell.run("sleep 0.01")
        if pid not in shell.state().jobs:
            return
    pytest.fail(f"still there: {shell.state().jobs}")


def test_a_job_that_ended_or_stopped_is_still_announced_by_bash(start: Start) -> None:
    shell = start("bash")
    shell.run("sleep 0.05 & wait")
    shell.run("sh -c 'kill -STOP $$' &")
    shell.run("sleep 0.2")
    shell.run("kill -KILL %%")
    shell.run("sleep 0.1")
    for notice in (b"Done", b"Stopped", b"Killed"):
        shell.until(lambda notice=notice: notice in shell.output)  # type: ignore[misc]


@pytest.mark.parametrize("kind", SHELLS)
def test_nothing_of_ours_and_no_secret_is_in_the_state(kind: str, start: Start) -> None:
    shell = start(kind, API_KEY=SECRET)
    shell.run("true")
    state = shell.state()
    assert state.kind == kind
    assert "API_KEY" in state.exported
    assert not {"_", "PWD", "SHLVL"} & state.exported.keys()
    shown = repr(state).replace("accept-and-hold", "")  # a function of zsh's line editor
    assert "hold" not in shown.replace(str(shell.home), "")
    assert SECRET not in shown
    assert shell.nonce not in shown
    assert stat.S_IMODE(os.stat(shell.state_file).st_mode) == 0o600


@pytest.mark.parametrize("kind", SHELLS)
def test_writing_the_state_shows_nothing_and_keeps_no_descriptor(kind: str, start: Start) -> None:
    shell = start(kind)
    _, end = shell.run("true")
    assert shell.shown(end.seq) == ""
    shell.until(shell.quiet)
    for fd in Path(f"/proc/{shell.pid}/fd").iterdir():
        assert os.readlink(fd) != shell.state_file
    assert shell.state_file not in shell.says("ls -l /proc/self/fd")


@pytest.mark.parametrize("kind", SHELLS)
@pytest.mark.parametrize("gone", ("file", "unwritable"))
def test_a_state_that_cannot_be_written_neither_shows_nor_stops_the_reports(
    kind: str, gone: str, start: Start
) -> None:
    shell = start(kind)
    os.unlink(shell.state_file)
    if gone == "unwritable":
        os.mkdir(shell.state_file)
    at = len(shell.output)
    _, end = shell.run("echo still")
    shell.run("true")
    assert shell.shown(end.seq) == "still\n"
    for word in (b"No such", b"no such", b"irectory", b"rror", b"state"):
        assert word not in shell.output[at:]
    assert gone == "unwritable" or not os.path.exists(shell.state_file)  # never made by a shell
    assert read_state(shell.state_file, shell.nonce, os.getuid()) is None
    shell.type("ec")
    assert shell.probe().text == "ec"


def test_bash_under_errexit_nounset_noclobber_and_a_strict_umask(start: Start) -> None:
    shell = start("bash")
    found = said(shell, "set -euC; umask 0777")
    assert found == [
        "umask: 0022 -> 0777",
        "option errexit: on",
        "option noclobber: on",
        "option nounset: on",
    ]
    assert said(shell, "export A=1") == ["variable A added"]
    os.unlink(shell.state_file)
    assert shell.run("! true")[1].status == 1
    assert shell.says("echo $-").rstrip().count("e") == 1


def test_zsh_under_errexit_nounset_noclobber_and_ksh_arrays(start: Start) -> None:
    shell = start("zsh")
    shell.run("setopt no_unset no_clobber ksh_arrays sh_word_split all_export")
    assert {"ksharrays", "allexport"} <= set(shell.state().options)
    assert "clobber" not in shell.state().options
    assert said(shell, "export A=1") == ["variable A added"]
    shell.run("setopt err_exit")
    assert said(shell, "export A=2") == ["variable A changed"]


@pytest.mark.parametrize("kind", ("bash", "zsh"))
def test_xtrace_shows_nothing_of_it_and_statuses_stay(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("set -x")
    at = len(shell.output)
    shell.run("false")
    shell.run("echo status:$?:")
    shell.until(lambda: b"status:1:\r\n" in shell.output)
    traced = shell.output[at:]
    for word in (b"HOLDSTATE", b"write_state", b"declare", b"compgen", b"umask", b"__hold"):
        assert word not in traced


def test_a_zsh_whose_startup_file_sets_xtrace_shows_nothing_of_ours(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / ".zshrc").write_text("set -x\n")
    shell = start("zsh")
    assert "echo there" in shell.says("echo there")
    shell.run("echo )")  # a line that does not parse has a way of its own
    assert b"__hold" not in shell.output


def test_bash_keeps_the_last_argument_and_pipe_statuses_between_lines(start: Start) -> None:
    shell = start("bash")
    shell.run("(exit 3) | (exit 4)")
    assert shell.says("echo ${PIPESTATUS[*]}") == "3 4\n"
    shell.run("true last-word")
    assert shell.says("echo $_") == "last-word\n"
    assert "HOLDSTATE" not in shell.says("history")


def test_a_users_prompt_command_and_debug_trap_still_work(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(
        "PROMPT_COMMAND='echo pc:$?'; trap 'echo \"<$BASH_COMMAND>\"' DEBUG\n"
    )
    shell = start("bash")
    shell.run("(exit 7)")
    shell.until(lambda: b"pc:7\r\n" in shell.output)
    state = shell.state()  # although the trap prints between the lines of it
    assert state.variables["PROMPT_COMMAND"] == "echo pc:$?"
    assert state.traps["DEBUG"] == 'echo "<$BASH_COMMAND>"'
    assert b"HOLDSTATE" not in shell.output


@pytest.fixture
def old_bash(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """One that knows only one prompt command, as before 5.1, and has one of the user's in it."""
    script = (shell_adapter.SHELLS / "bash.sh").read_text()
    arrays = "BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1)"
    (tmp_path / "bash.sh").write_text(script.replace(arrays, "0"))
    monkeypatch.setattr(shell_adapter, "SHELLS", tmp_path)
    (tmp_path / ".bashrc").write_text("PROMPT_COMMAND='echo pc:$?'\n")
    return start("bash")


def test_a_bash_that_knows_only_one_prompt_command_writes_its_state_too(old_bash: Shell) -> None:
    assert old_bash.state().variables["PROMPT_COMMAND"] == "echo pc:$?"
    assert said(old_bash, "alias a=b") == ["alias a added: b"]


def test_a_report_that_is_not_taken_at_once_is_no_job_of_the_users(old_bash: Shell) -> None:
    """It is written by a process of its own, and here before the state is."""
    before, prompts, at = old_bash.state(), old_bash.prompts(), len(old_bash.output)
    os.write(old_bash.master, b"alias a=b\n")
    # Its begin is in the FIFO, and nobody reads that before the next prompt is there.
    ready = mark(b"B", prompts[-1].seq + 1)
    old_bash.until(lambda: ready.search(old_bash.output, at) is not None, fifo=False)
    old_bash.at_prompt(len(prompts) + 1)
    assert [text(change) for change in changes(before, old_bash.state())] == ["alias a added: b"]


def test_many_functions_are_told_by_name_until_the_whole_is_asked_for(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text(
        'for i in {1..2000}; do eval "many_$i() { local a=$i; case \\$a in (*) echo $i;; esac; }";'
        " done\n"
    )
    shell = start("bash")
    shell.run("true")
    before = shell.state()
    assert before.functions["many_7"] == ""
    assert said(shell, "later() { :; }; many_7() { :; }") == ["function later added"]
    shell.run("many_8() { echo other; }")
    shell.probe()
    whole = shell.state()
    assert all(whole.functions.values())
    shell.run("many_9() { echo other; }")
    shell.probe()
    assert [text(c) for c in changes(whole, shell.state())] == ["function many_9 changed"]


@pytest.mark.parametrize("kind", SHELLS)
def test_what_a_program_writes_into_the_file_is_refused(kind: str, start: Start) -> None:
    shell = start(kind)
    shell.run("true")
    whole = Path(shell.state_file).read_bytes()
    forged = whole.replace(shell.nonce.encode(), b"0" * 32)
    Path(shell.state_file).write_bytes(forged)
    assert read_state(shell.state_file, shell.nonce, os.getuid()) is None
    Path(shell.state_file).write_bytes(whole[: whole.index(b"\0END ") + 20])
    assert read_state(shell.state_file, shell.nonce, os.getuid()) is None
    shell.run("true")
    assert shell.state().number == 3


@pytest.mark.parametrize("kind", SHELLS)
def test_a_prompt_after_an_empty_line_has_a_state_of_its_own(kind: str, start: Start) -> None:
    shell = start(kind)
    before = shell.state()
    shell.type(shell._enter)
    shell.at_prompt(2)
    after = shell.state()
    assert (after.number, after.serial) == (before.number, before.serial + 1)
    assert changes(before, after) == ()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("may not mount a small disk here")
    try:
        (disk / "full").write_bytes(b"x" * 4096)
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("kind", SHELLS)
def test_a_full_disk_shows_nothing_and_leaves_no_state(
    kind: str, start: Start, full_disk: Path
) -> None:
    shell = start(kind)
    os.unlink(shell.state_file)
    (full_disk / "state").touch()
    os.symlink(full_disk / "state", shell.state_file)
    at = len(shell.output)
    _, end = shell.run("echo still")
    shell.run("true")
    assert shell.shown(end.seq) == "still\n"
    assert b"space" not in shell.output[at:]
    assert read_state(str(full_disk / "state"), shell.nonce, os.getuid()) is None
