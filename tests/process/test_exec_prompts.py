"""`hold exec` where something looks like the shell's prompt and is none: nothing is typed there;
and what was typed and may have run is never said to have been refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from process.commanding import PATIENCE_S, Hold
from process.sdking import reached, run

SHELLS = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish",)}


_numbers = itertools.count(1)


def _shell(hold: Hold, kind: str) -> str:
    """One at its prompt; gives its name."""
    name = f"at-{kind}-{next(_numbers)}"
    hold.shell(name, *SHELLS[kind])
    return name


def _screen(hold: Hold, name: str) -> str:
    return hold.ok("screen", name)


@pytest.mark.parametrize("kind", SHELLS)
def test_a_shell_that_took_the_place_of_ours_is_typed_no_command(
    host_home: Hold, kind: str
) -> None:
    name = _shell(host_home, kind)
    host_home.ok("send", name, "--enter", "exec env PS1='other] ' bash --norc")
    host_home.ok("wait", name, "--for", "text:^other]", "--timeout", "20")
    host_home.ok("wait", name, "--for", "prompt", "--timeout", "20")
    said = host_home.fails("no_shell_integration", "exec", name, "--", ": never")
    assert "bash took the place" in said and "hold send" in said
    assert ": never" not in _screen(host_home, name)


def test_a_shell_that_a_startup_file_put_in_place_is_typed_no_command(
    host_home: Hold, tmp_path: Path
) -> None:
    rc = tmp_path / "rc"
    rc.write_text("PS1='other] '; export PS1; exec bash --norc\n")
    host_home.ok("run", "-d", "--name", "rc-exec", "--", "bash", "--rcfile", str(rc))
    host_home.ok("wait", "rc-exec", "--for", "text:^other]", "--timeout", "20")
    host_home.ok("wait", "rc-exec", "--for", "prompt", "--timeout", "20")
    said = host_home.fails("no_shell_integration", "exec", "rc-exec", "--", ": never")
    assert "bash took the place" in said
    assert ": never" not in _screen(host_home, "rc-exec")


@pytest.mark.parametrize("kind", SHELLS)
def test_an_exec_that_replaces_its_shell_ends_as_unknown(host_home: Hold, kind: str) -> None:
    name = _shell(host_home, kind)
    said = host_home.fails("input_unknown", "exec", name, "--", "exec bash --norc")
    assert "in the place of" in said
    host_home.fails("no_shell_integration", "exec", name, "--", "true")


@pytest.mark.parametrize(
    ("kind", "unhook"), [("bash", "unset PROMPT_COMMAND"), ("zsh", "precmd_functions=()")]
)
def test_an_exec_that_removes_what_reports_its_end_ends_as_unknown(
    host_home: Hold, kind: str, unhook: str
) -> None:
    name = _shell(host_home, kind)
    assert host_home.ok("exec", name, "--", "echo reported") == "reported\n"
    said = host_home.fails("input_unknown", "exec", name, "--", f"seq 1 30000; {unhook}")
    assert "has not reported the command's end" in said


@pytest.mark.parametrize(
    ("kind", "reads"), [("bash", "read -e it"), ("zsh", "it=; vared it"), ("fish", "read it")]
)
def test_a_builtin_that_looks_like_the_prompt_gets_no_command_line(
    host_home: Hold, kind: str, reads: str
) -> None:
    name = _shell(host_home, kind)
    reading = host_home.start("exec", name, "--", f"{reads}; echo got=$it")
    host_home.ok("wait", name, "--for", f"text:{reads}", "--timeout", "20")
    host_home.ok("wait", name, "--for", "prompt", "--timeout", "20")
    said = host_home.fails("terminal_in_use", "exec", name, "--", ": never")
    assert reads in said
    host_home.ok("send", name, "--enter", "answer")
    out, _ = reading.communicate(timeout=PATIENCE_S)
    assert out.endswith(b"got=answer\n")
    assert host_home.ok("exec", name, "--", "echo back") == "back\n"


@pytest.mark.parametrize("kind", SHELLS)
def test_a_line_that_is_not_complete_is_said_so_and_cleared(host_home: Hold, kind: str) -> None:
    name = _shell(host_home, kind)
    for line in ("echo 'unclosed", "begin\n  echo two" if kind == "fish" else "if true\nthen"):
        said = host_home.fails("invalid_argument", "exec", name, "--", line)
        assert "not complete" in said
        assert host_home.ok("exec", name, "--", "echo fine") == "fine\n"


@pytest.mark.parametrize("kind", ["bash", "zsh"])  # for fish a comment is a command
def test_a_line_that_runs_nothing_never_exits_with_the_status_of_an_earlier_one(
    host_home: Hold, kind: str
) -> None:
    name = _shell(host_home, kind)
    comments = "shopt -s interactive_comments" if kind == "bash" else "setopt interactive_comments"
    for earlier, status in ((comments, 0), ("(exit 7)", 7)):
        assert host_home("exec", name, "--", earlier).returncode == status
        done = host_home("exec", name, "--", "# nothing here")
        assert (done.returncode, done.stdout) == (125, "")
        assert "did not run this line" in done.stderr

        async def ask() -> None:
            async with reached(host_home) as hold:
                result = await (await hold.session(name)).submit("# nothing here")
                assert (result.status, result.seq, result.ok) == (None, 0, False)

        run(ask())


@pytest.mark.parametrize(
    ("kind", "off"),
    [("bash", "bind 'set enable-bracketed-paste off'"), ("zsh", "unset zle_bracketed_paste")],
)
def test_several_lines_are_one_command_also_where_the_shell_knows_no_pastes(
    host_home: Hold, kind: str, off: str
) -> None:
    name = _shell(host_home, kind)
    host_home.ok("exec", name, "--", off)
    done = host_home("exec", name, "--", 'echo "it\'s" !!\necho two; (exit 5)')
    assert (done.returncode, done.stdout) == (5, "it's !!\ntwo\n"), done.stderr
    assert host_home.ok("exec", name, "--", "echo fine") == "fine\n"


def test_a_debug_trap_prints_nothing_for_what_reports(host_home: Hold) -> None:
    name = _shell(host_home, "bash")
    assert host_home.ok("exec", name, "--", "trap 'echo traced' DEBUG") == ""
    for _ in range(3):
        assert host_home.ok("exec", name, "--", "echo it") == "traced\nit\n"
        host_home.ok("catchup", name)  # which asks the shell what is at the prompt
    host_home.ok("exec", name, "--", "trap - DEBUG")
    assert _screen(host_home, name).count("\ntraced") == 4  # once for each command under it


def test_the_sessions_own_shell_is_never_called_another_program(host_home: Hold) -> None:
    name = _shell(host_home, "bash")
    host_home.ok("send", name, "--enter", "read it")
    host_home.ok("wait", name, "--for", "input", "--timeout", "20")
    said = host_home.fails("terminal_in_use", "exec", name, "--", ": never")
    assert "still runs 'read it'" in said and "another program" not in said and "C-d" not in said
    host_home.ok("run", "-d", "--name", "plain-lines", "--", "bash", "--norc", "--noediting")
    host_home.ok("wait", "plain-lines", "--for", "input", "--timeout", "20")
    said = host_home.fails("session_busy", "exec", "plain-lines", "--", ": never")
    assert "without its line editor" in said and "C-d" not in said
