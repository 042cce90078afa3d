"""Holdfast and its peers behind one face: start a session, attach to it, end everything.

Each runs on sockets of its own in the run's temporary directory, with no configuration file, and
is gone when the run ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from bench.terminal import COLS, ROWS
from holdfast.model.errors import HoldfastError
from holdfast.model.size import Size
from holdfast.sdk.client import Host

COMMAND_TIMEOUT_S = 30.0
_GONE_TIMEOUT_S = 60.0  # five hundred sessions are ended first


class System(ABC):
    """One way to keep a session."""

    name: str
    program: str

    def __init__(self, directory: str, env: Mapping[str, str]) -> None:
        self.directory = os.path.join(directory, self.name)
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self.env = dict(env)
        self.known: set[str] = set()  # sessions started by name, to be attached to again

    @property
    def installed(self) -> bool:
        return shutil.which(self.program) is not None

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def start_command(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """The command line that starts a session in the background. `env` is added to its own."""

    @abstractmethod
    def attach_command(self, name: str) -> list[str]: ...

    @abstractmethod
    def end(self, name: str) -> None:
        """End one session."""

    def begin(self) -> None:  # noqa: B027 - two of four have no server
        """Have the server running, if there is one."""

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.command(self.start_command(name, argv, env or {}), env)

    def pid_file(self, name: str) -> str:
        """Where a session's program says which process it is, in its own numbering."""
        return os.path.join(self.directory, f"{name}.pid")

    def command(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            argv,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip() or done.stderr.strip()

    @abstractmethod
    def close(self) -> None:
        """End everything that was started here."""


class Holdfast(System):
    """The product, by its own command line; the SDK is used for what is not timed."""

    name = "holdfast"
    program = os.path.join(os.path.dirname(sys.executable), "hold")
    ring_bytes = 0  # the default

    def __init__(self, directory: str, env: Mapping[str, str]) -> None:
        super().__init__(directory, env)
        self.home = self.directory
        self.env["HOLDFAST_HOME"] = self.home
        self.env["HOLDFAST_RELAY"] = "off"  # the others have none either
        self.socket = os.path.join(self.home, "run", "hold.sock")
        self._pids: tuple[int, ...] = ()

    def version(self) -> str:
        return self.command([self.program, "--version"]).removeprefix("hold ")

    def begin(self) -> None:
        self.command([self.program, "up", "-d"])
        self._pids = self.processes()

    def host(self) -> Host:
        return Host(self.socket, client="bench")

    def processes(self) -> tuple[int, ...]:
        """The pids of supervisor, daemon and keepers."""
        with self.host() as host:
            info = host.host()
            keepers = (each.keeper_pid for each in host.sessions())
            assert info.supervisor_pid is not None
            return info.supervisor_pid, info.daemon_pid, *keepers

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        with self.host() as host:
            host.run(
                argv,
                name=name,
                cwd="/",
                env={**self.env, **(env or {})},
                size=Size(COLS, ROWS),
                ring_bytes=self.ring_bytes,
            )

    def start_command(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        size = f"{COLS}x{ROWS}"
        return [self.program, "run", "-d", "--name", name, "--size", size, "--", *argv]

    def attach_command(self, name: str) -> list[str]:
        return [self.program, "attach", name]

    def end(self, name: str) -> None:
        with self.host() as host:
            host.end(name)

    def close(self) -> None:
        with contextlib.suppress(HoldfastError), self.host() as host:
            host.shutdown(end_sessions=True)
        deadline = time.monotonic() + _GONE_TIMEOUT_S
        while any(os.path.exists(f"/proc/{pid}") for pid in self._pids):
            if time.monotonic() > deadline:
                for pid in self._pids:  # supervisor first: it would start another daemon
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.02)


class Tmux(System):
    name = program = "tmux"

    def version(self) -> str:
        return self.command(["tmux", "-V"]).removeprefix("tmux ")

    def begin(self) -> None:
        # A session of its own keeps the server; no status line: its clock would draw meanwhile.
        keeper = ["new-session", "-d", "-s", "keep", "exec sleep 100000"]
        self.command([*self._tmux(), *keeper, ";", "set-option", "-g", "status", "off"])

    def start_command(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        variables = [word for key, value in env.items() for word in ("-e", f"{key}={value}")]
        size = ["-x", str(COLS), "-y", str(ROWS)]
        return [*self._tmux(), "new-session", "-d", "-s", name, *size, *variables, "--", *argv]

    def attach_command(self, name: str) -> list[str]:
        return [*self._tmux(), "attach-session", "-t", name]

    def end(self, name: str) -> None:
        self.command([*self._tmux(), "kill-session", "-t", name])

    def server_pid(self) -> int:
        return int(self.command([*self._tmux(), "display-message", "-p", "#{pid}"]))

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.command([*self._tmux(), "kill-server"])

    def _tmux(self) -> list[str]:
        return ["tmux", "-S", os.path.join(self.directory, "s"), "-f", "/dev/null"]


class Dtach(System):
    """No server, no screen state: the floor for passing bytes through a second process."""

    name = program = "dtach"

    def version(self) -> str:
        return self.command(["dtach", "--version"]).splitlines()[0].split()[-1]

    def start_command(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        return ["dtach", "-n", self._socket(name), "-r", "none", *argv]

    def attach_command(self, name: str) -> list[str]:
        return ["dtach", "-a", self._socket(name), "-r", "none"]

    def end(self, name: str) -> None:
        """dtach has no word for it: it ends with the session's program."""
        pid_file = self.pid_file(name)
        with contextlib.suppress(OSError, ValueError), open(pid_file, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def close(self) -> None:
        for name in self.known:
            self.end(name)

    def _socket(self, name: str) -> str:
        return os.path.join(self.directory, name)


class Screen(System):
    name = program = "screen"

    def __init__(self, directory: str, env: Mapping[str, str]) -> None:
        super().__init__(directory, env)
        self.env["SCREENDIR"] = self.directory
        self._started: list[str] = []

    def version(self) -> str:
        return subprocess.run(
            ["screen", "--version"], capture_output=True, text=True, check=False
        ).stdout.split()[2]

    def start_command(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        self._started.append(name)
        return ["screen", "-c", "/dev/null", "-dmS", name, *argv]

    def attach_command(self, name: str) -> list[str]:
        return ["screen", "-c", "/dev/null", "-r", name]

    def end(self, name: str) -> None:
        self._started.remove(name)
        self.command(["screen", "-S", name, "-X", "quit"])

    def close(self) -> None:
        for name in list(self._started):
            with contextlib.suppress(RuntimeError):
                self.end(name)
