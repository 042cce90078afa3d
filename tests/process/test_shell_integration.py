"""The shell integration with the real bash, zsh and fish on a real PTY.

Every wait ends on a report, on output or on the terminal's mode, within DEADLINE_S.
"""

from __future__ import annotations

import os
import pty
import re
import secrets
import select
import shutil
import signal
import stat
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell import (
    CommandBegin,
    CommandEnd,
    PromptShown,
    Report,
    ReportReader,
    ShellReady,
    integrate,
    make_fifo,
    nonce_pipe,
)
from holdfast.core.marks import find_output, find_refusal, strip_marks

DEADLINE_S = 8.0
NONCE_FD = 7  # in the shell; zsh and bash keep their own descriptors at 10 and above
SHELLS = ("bash", "zsh", "fish")
FISH_MODES = re.compile(rb"^(\x1b(\[[?0-9;]*[a-zA-Z]|\][^\x07]*\x07|\(B))+\r")
LINE_END = {"bash": b"\n", "zsh": b"\r", "fish": b"\r"}


class Shell:
    """One integrated shell: its keyboard, its output, its reports."""

    def __init__(self, argv: tuple[str, ...], home: Path, **env: str) -> None:
        self.home = home
        self.nonce = secrets.token_hex(16)
        self.fifo = str(home / "reports")
        self.fifo_fd = make_fifo(self.fifo, os.getuid(), os.getgid())
        self.reader = ReportReader(self.nonce)
        self.reports: list[Report] = []
        self.output = b""
        base = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}
        base |= {"LANG": "C.UTF-8", "USER": "root"} | env
        started = integrate(argv, base, self.fifo, NONCE_FD)
        assert started is not None
        self.kind = started.kind
        self._enter = LINE_END[started.kind]
        pipe = nonce_pipe(self.nonce)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.dup2(pipe, NONCE_FD)
            os.execvpe(started.argv[0], started.argv, base | started.env)
        os.close(pipe)

    def pump(self, timeout: float, fifo: bool = True) -> None:
        """Take what has come, waiting at most `timeout` for something to come."""
        watched = [self.master, self.fifo_fd] if fifo else [self.master]
        ready, _, _ = select.select(watched, [], [], timeout)
        if self.fifo_fd in ready:
            self.reports += self.reader.feed(os.read(self.fifo_fd, 65536))
        if self.master in ready:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:  # the shell has gone
                time.sleep(0.001)

    def until(self, true: Callable[[], bool], fifo: bool = True) -> None:
        end = time.monotonic() + DEADLINE_S
        while not true():
            assert time.monotonic() < end, (self.reports[-6:], self.output[-1500:])
            self.pump(0.005, fifo)

    def type(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        while data:
            data = data[os.write(self.master, data[:1024]) :]
            self.pump(0)

    def raw(self) -> bool:
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    def quiet(self) -> bool:
        """Nothing comes for a tenth of a second, and the shell is asleep."""
        before = len(self.output)
        self.pump(0.1)
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return len(self.output) == before and state == "S"

    def prompts(self) -> list[PromptShown]:
        return [report for report in self.reports if isinstance(report, PromptShown)]

    def at_prompt(self, count: int = 1) -> PromptShown:
        """Wait for the `count`th prompt from the start, ready for keys."""
        self.until(lambda: len(self.prompts()) >= count and self.raw())
        return self.prompts()[-1]

    def abandon(self) -> None:
        """Type half a line, see it echoed, and ^C it."""
        prompts, at = len(self.prompts()), len(self.output)
        self.type("aban")
        # Bash 5.2 and fish 3.6 half lose a ^C that comes while they are still drawing the line.
        self.until(lambda: b"aban" in self.output[at:] and self.quiet())
        self.type(b"\x03")
        self.at_prompt(prompts + 1)

    def run(self, line: str, interrupt_after: bytes = b"") -> tuple[CommandBegin, CommandEnd]:
        """Run one command line; exactly one begin and one end, with the same number."""
        seen, prompts = len(self.reports), len(self.prompts())
        self.type(line)
        self.type(self._enter)
        if interrupt_after:
            at = len(self.output)
            self.until(lambda: interrupt_after in self.output[at:])
            self.type(b"\x03")
        self.at_prompt(prompts + 1)
        new = self.reports[seen:]
        begins = [report for report in new if isinstance(report, CommandBegin)]
        ends = [report for report in new if isinstance(report, CommandEnd)]
        assert len(begins) == len(ends) == 1, (line, new)
        assert begins[0].seq == ends[0].seq == self.prompts()[-1].seq - 1
        return begins[0], ends[0]

    def shown(self, seq: int) -> str:
        """The output of command `seq`, once its end mark has come through the terminal."""
        self.until(lambda: find_output(self.output, seq) is not None)
        start, end = find_output(self.output, seq) or (0, 0)
        text = strip_marks(self.output[start:end])
        if self.kind == "fish":  # it sets modes and title after its hook: invisible, but there
            text = FISH_MODES.sub(b"", text, count=1)
        return text.decode().replace("\r\n", "\n")

    def says(self, line: str) -> str:
        return self.shown(self.run(line)[1].seq)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.fifo_fd)


Start = Callable[..., Shell]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Shell] = []

    def begin(*argv: str, **env: str) -> Shell:
        name = argv[0].lstrip("-")
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed here")
        (tmp_path / ".zshrc").touch()  # or zsh asks a new user questions
        shell = Shell(argv, tmp_path, **env)
        started.append(shell)
        shell.at_prompt()
        return shell

    yield begin
    for shell in started:
        shell.close()


@pytest.mark.parametrize("kind", SHELLS)
def test_a_started_shell_says_who_it_is_and_that_it_is_at_the_prompt(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    ready, prompt = shell.reports[0], shell.reports[-1]
    assert isinstance(ready, ShellReady)
    assert (ready.pid, ready.kind) == (shell.pid, kind)
    assert prompt == PromptShown(1, 0, str(shell.home))


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
        shell.until(lambda: find_refusal(shell.output, end.seq) is not None)
        start_at, end_at = find_refusal(shell.output, end.seq) or (0, 0)
        assert b"error near" in shell.output[start_at:end_at]
        assert find_output(shell.output, end.seq) is None
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
    assert not begin.text_cut
    if kind != "fish":  # twenty thousand typed keys take its editor too long
        begin, end = shell.run("true " + "ü" * 9_000)
        assert begin.text_cut
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
def test_a_child_sees_nothing_of_ours_and_a_child_shell_does_not_report(
    kind: str, start: Start
) -> None:
    shell = start(kind)
    seen = shell.says("env")
    assert "hold" not in seen.lower().replace(str(shell.home).lower(), "")
    assert shell.nonce not in seen
    assert "ZDOTDIR" not in seen
    assert "\nENV=" not in seen
    quiet = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}[kind]
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
        assert os.readlink(fd) != shell.fifo
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


# -- the user's own configuration -------------------------------------------------------------

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
    shell.run("set +ea; set -x")
    assert "__hold_send" not in shell.says("true")
    shell.run("set +x; set -e")
    shell.type(b"false\n")
    assert os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)


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
        ("zsh", "-f"),
        ("zsh", "-c", "true"),
        ("fish", "-c", "true"),
        ("fish", "script.fish"),
    ],
)
def test_anything_but_a_bare_interactive_shell_is_left_alone(argv: tuple[str, ...]) -> None:
    assert integrate(argv, {}, "/fifo", 7) is None
