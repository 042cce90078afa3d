"""An integrated shell on a PTY, for tests: its keyboard, its output, its reports.

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
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters.shell.integration import (
    LINE_PROBE,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    Report,
    ReportReader,
    integrate,
    make_fifo,
    make_state_file,
    nonce_pipe,
    state_path,
)
from holdfast.adapters.shell.state_file import read_state
from holdfast.core import command_output, shell_changes
from holdfast.model.shell_state import Change, ShellState

DEADLINE_S = 8.0
NONCE_FD = 7  # in the shell; zsh and bash keep their own descriptors at 10 and above
FISH_MODES = re.compile(rb"^(\x1b(\[[?0-9;]*[a-zA-Z]|\][^\x07]*\x07|\(B))+\r")
LINE_END = {"bash": b"\n", "zsh": b"\r", "fish": b"\r"}


class Shell:
    """One integrated shell: its keyboard, its output, its reports."""

    def __init__(self, argv: tuple[str, ...], home: Path, **env: str) -> None:
        self.home = home
        self.nonce = secrets.token_hex(16)
        self.fifo = str(home / "reports")
        self.fifo_fd = make_fifo(self.fifo, os.getuid(), os.getgid())
        self.state_file = state_path(self.fifo)
        make_state_file(self.state_file, os.getuid(), os.getgid())
        self.reader = ReportReader(self.nonce)
        self.reports: list[Report] = []
        self.output = b""
        # Without it fish reads all manual pages of the machine first, see tests/conftest.py.
        (home / ".local/share/fish/generated_completions").mkdir(parents=True, exist_ok=True)
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
        self.pump(0, fifo)  # what was reported before the awaited output was written

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
        at = len(self.output)  # before Enter: typing it may already bring what the command prints
        self.type(self._enter)
        if interrupt_after:
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
        begin, end = (
            command_output.mark(command_output.BEGIN, seq),
            command_output.mark(command_output.END, seq),
        )
        self.until(lambda: bool(begin.search(self.output) and end.search(self.output)))
        first, last = begin.search(self.output), list(end.finditer(self.output))[-1]
        assert first is not None
        text = re.sub(rb"\x1b\]133;[^\x07]*\x07", b"", self.output[first.end() : last.start()])
        if self.kind == "fish":  # it sets modes and title after its hook: invisible, but there
            text = FISH_MODES.sub(b"", text, count=1)
        return text.decode().replace("\r\n", "\n")

    def says(self, line: str) -> str:
        return self.shown(self.run(line)[1].seq)

    def state(self) -> ShellState:
        """The shell's state, not older than the last prompt."""
        found = read_state(self.state_file, self.nonce, os.getuid())
        assert found is not None, Path(self.state_file).read_bytes()[:500]
        assert found.number >= self.prompts()[-1].seq
        return found

    def changed_by(self, line: str) -> tuple[Change, ...]:
        before = self.state()
        self.run(line)
        return shell_changes.changes(before, self.state())

    def probe(self) -> LineShown:
        """Ask for the text in the line editor, once the shell has taken all keys."""
        seen = len(self.reports)
        self.until(self.quiet)
        self.type(LINE_PROBE)
        self.until(lambda: any(isinstance(r, LineShown) for r in self.reports[seen:]))
        self.until(self.quiet)
        [line] = [report for report in self.reports[seen:] if isinstance(report, LineShown)]
        return line

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.fifo_fd)


Start = Callable[..., Shell]


def starter(tmp_path: Path) -> Iterator[Start]:
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

    try:
        yield begin
    finally:
        for shell in started:
            shell.close()
