"""The real `hold` as a process of its own, against a host in a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from process import warm

HOLD = str(Path(sys.executable).with_name("hold"))
PATIENCE_S = 40.0  # far beyond what any command here takes

# Commands that a test repeats until they show what it waits for. Each costs the host and us some
# milliseconds of work: asked again at once, they would take the processor from what is waited for.
_LOOKS = frozenset(
    ("approvals", "blame", "checkpoints", "doctor", "graph", "log", "ls", "metrics", "reap",
     "screen", "score", "show", "tail", "turn", "why")
)  # fmt: skip
_PAUSE = 2.0  # of the time that a look takes
_PAUSE_MAX_S = 0.1

_ERROR = re.compile(r"hold[^\n]*?: .+ \((?P<code>[a-z_]+)\)(?:; .+)?\n")


class Hold:
    """Commands with one HOLDFAST_HOME. Short, because a socket's path must be."""

    def __init__(self, home: str | None = None) -> None:
        self.made = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
        self._looked: tuple[tuple[str | bytes, ...], float] = (), 0.0  # last; not again before
        self.home = home or self.made
        self.env = {**os.environ, "HOLDFAST_HOME": self.home, "PS1": "$ ", "LC_ALL": "C.UTF-8"}
        self.env["HOLDFAST_RELAY"] = (
            "off"  # half a second of work for each host; who needs one says so
        )

    def __call__(
        self, *words: str | bytes, stdin: bytes = b"", **options: Any
    ) -> subprocess.CompletedProcess[str]:
        began = self._pause_before(words)
        request = None if options else warm.packed([*words], self.env, os.getcwd())
        if request is not None:
            status, out, err = warm.run(request, stdin, PATIENCE_S)
        else:
            done = subprocess.run(
                [HOLD, *words],
                env=self.env,
                input=stdin,
                capture_output=True,
                timeout=PATIENCE_S,
                **options,
            )
            status, out, err = done.returncode, done.stdout, done.stderr
        ended = time.monotonic()
        self._looked = words, ended + min(_PAUSE * (ended - began), _PAUSE_MAX_S)
        answer = subprocess.CompletedProcess(words, status, out.decode(), err.decode())
        assert "Traceback" not in answer.stderr, answer.stderr
        return answer

    def _pause_before(self, words: tuple[str | bytes, ...]) -> float:
        """When it begins: a look that is repeated with nothing in between waits a moment."""
        last, free_at = self._looked
        if words == last and words[:1] and words[0] in _LOOKS:
            time.sleep(max(0.0, free_at - time.monotonic()))
        return time.monotonic()

    def ok(self, *words: str | bytes, stdin: bytes = b"") -> str:
        """What it printed; it must succeed and complain of nothing."""
        done = self(*words, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.ok(*words, "--json"))

    def fails(self, code: str, *words: str | bytes, stdin: bytes = b"", **options: Any) -> str:
        """The one line it complains with, which must name the code."""
        done = self(*words, stdin=stdin, **options)
        said = _ERROR.fullmatch(done.stderr)
        assert done.returncode != 0 and said is not None, done
        assert said["code"] == code, done
        return done.stderr

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A command that goes on; the caller ends it."""
        return subprocess.Popen(
            [HOLD, *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def shell(self, name: str, *argv: str) -> str:
        """A shell session at its prompt, bash if nothing is said; gives its id."""
        argv = argv or ("bash", "--norc")
        session = self.ok("run", "-d", "--name", name, "--", *argv).strip()
        self.ok("wait", name, "--for", "prompt", "--timeout", "20")
        return session

    def attached(self, name: str, operators: int = 1) -> None:
        """Return once so many operators are attached; a command started beside us may take its
        time. Each look is a command of its own, so this does not spin."""
        deadline = time.monotonic() + PATIENCE_S
        while self.json("show", name)["operators"] < operators:
            assert time.monotonic() < deadline, f"nobody attached to {name}"

    def sized(self, name: str, cols: int, rows: int) -> None:
        """Return once the session has this size; a key may overtake the signal that says so."""
        deadline = time.monotonic() + PATIENCE_S
        while self.json("show", name)["size"] != {"cols": cols, "rows": rows}:
            assert time.monotonic() < deadline, "the session does not follow its terminal"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing stays: asked first, then told by signal, and the directory goes too."""
        try:
            self("down", "--end-sessions")
        except subprocess.TimeoutExpired:
            pass
        finally:
            for pid in _supervisors(self.home) + keepers(self.home):
                _end(pid)
            shutil.rmtree(self.made, ignore_errors=True)


def _running(first: bytes, last: str) -> list[int]:
    """Processes by their own command line, never by name alone."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if first in words and any(word.startswith(last.encode()) for word in words):
                found.append(int(pid))
    return found


def _supervisors(home: str) -> list[int]:
    return _running(b"holdfast.keeper.supervisor", f"{home}/run")


def keepers(home: str) -> list[int]:
    """Of this home's sessions."""
    return _running(b"hold-keeper", f"{home}/run/keepers/")


def supervisors_end(home: str) -> bool:
    """Whether every supervisor of this home ends by itself, soon."""
    for pid in _supervisors(home):
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                if not select.select([handle], [], [], 10)[0]:
                    return False
            finally:
                os.close(handle)
    return True


def _end(pid: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                signal.pidfd_send_signal(handle, number)
                if select.select([handle], [], [], 10)[0]:
                    return
            finally:
                os.close(handle)
