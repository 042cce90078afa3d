"""A program on a real PTY, observed; for the tests of the observation."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters.proc.observation import ProcObservation
from holdfast.adapters.pty import TIOCGPTN
from holdfast.core.activity import judge
from holdfast.model.graph import Evidence, Graph, Process
from holdfast.model.spec import Place
from holdfast.model.state import SessionState

DEADLINE_S = 15.0  # two busy cores; every wait ends at once when its condition holds

BASH = ("bash", "--norc", "--noprofile")
ZSH = ("zsh", "-f")
FISH = ("fish", "--no-config")
PYTHON = (sys.executable, "-c")


class Observed:
    """A session, drained like the host would, observed like the host would."""

    def __init__(self, place: Place, master: int, *, shell: bool) -> None:
        self.place, self.master, self.shell = place, master, shell
        self.output = b""
        self.observation = ProcObservation(judge)
        os.set_blocking(master, False)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def evidence(self) -> Evidence:
        return self.observation.evidence(self.place, self.master, shell_is_shell=self.shell)

    def graph(self) -> Graph:
        return self.observation.graph(self.place, self.master, shell_is_shell=self.shell)

    def drain(self, wait_s: float) -> bool:
        """Whether anything was printed meanwhile. A terminal that hung up prints nothing."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        try:
            self.output += os.read(self.master, 65536)
        except OSError:
            return False
        return True

    def until(self, holds: Callable[[], bool], what: Callable[[], str]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"{what()}; printed {self.output[-300:]!r}"
            self.drain(0.01)

    def until_state(self, wanted: SessionState) -> Evidence:
        """Reached, and still so after the output went quiet: not merely passed through."""
        while True:
            self.until(
                lambda: judge(self.evidence()) is wanted,
                lambda: f"want {wanted}: {self.evidence()}",
            )
            while self.drain(0.05):
                pass
            if judge(evidence := self.evidence()) is wanted:
                return evidence

    def until_printed(self, text: str) -> None:
        self.until(lambda: text.encode() in self.output, lambda: f"want {text!r}")

    def until_graph(self, holds: Callable[[Graph], bool]) -> Graph:
        """The one that holds: the next may already be another."""
        seen = [self.graph()]

        def looked() -> bool:
            seen[:] = [self.graph()]
            return holds(seen[0])

        self.until(looked, lambda: f"graph is {seen[0]}")
        return seen[0]


class Session(Observed):
    """A program on a PTY of our own, at level plain."""

    def __init__(self, *argv: str, home: Path, shell: bool = False) -> None:
        self.pid, master = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME=str(home), HISTFILE="/dev/null", PS1="$ ")
            os.chdir(home)
            os.closerange(3, 256)  # what the test run itself has open is none of the session's
            os.execvp(argv[0], argv)
        number = struct.unpack("I", fcntl.ioctl(master, TIOCGPTN, bytes(4)))[0]
        place = Place(pid=self.pid, shell_pid=0, tty=f"/dev/pts/{number}", cgroup="")
        super().__init__(place, master, shell=shell)

    def end(self) -> None:
        for process in self.graph().processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.master)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


Start = Callable[..., Session]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    sessions: list[Session] = []

    def begin(*argv: str, shell: bool = False) -> Session:
        if not shutil.which(argv[0]):
            pytest.skip(f"{argv[0]} is not installed")
        sessions.append(Session(*argv, home=tmp_path, shell=shell))
        return sessions[-1]

    yield begin
    for session in sessions:
        session.end()


def named(graph: Graph, name: str) -> Process:
    return next(process for process in graph.processes if process.name == name)


def has(name: str) -> Callable[[Graph], bool]:
    return lambda graph: any(process.name == name for process in graph.processes)


def only(*names: str) -> Callable[[Graph], bool]:
    """These and no other: not while one that forks and leaves is still beside its child."""
    return lambda graph: sorted(process.name for process in graph.processes) == sorted(names)
