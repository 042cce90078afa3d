"""A host of the test's own: its home is a short temporary directory, nothing of it outlives the
test. `HOLDFAST_HOME` is set for its processes only, never in the tests' own environment, so no
test can reach another host by mistake."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from holdfast.adapters.halt import cgroup
from holdfast.model.errors import HoldfastError
from holdfast.model.state import Ending
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from process import warm
from process.waiting import until

HOLD = str(Path(sys.executable).with_name("hold"))
PATIENCE_S = 20.0  # far beyond what anything takes here, on two busy cores
_LOOK_S = 0.01

T = TypeVar("T")


class ProcessKey(NamedTuple):
    """A process for ever: a pid alone may be given to another."""

    pid: int
    started: int


class FaultHost:
    """Supervisor and daemon under one home."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="hf", dir="/tmp"))
        self.work = Path(tempfile.mkdtemp(prefix="hw", dir="/tmp"))
        self.socket = f"{self.home}/run/hold.sock"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST")},
            "HOLDFAST_RELAY": "off",  # half a second of work for each host
            **(environment or {}),
            "HOLDFAST_HOME": str(self.home),
        }
        self._clients: list[Host] = []

    # -- life ---------------------------------------------------------------------------------

    def __enter__(self) -> FaultHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> FaultHost:
        done = self.hold("up", "-d")
        assert done.returncode == 0, done.stderr + self.log()
        return self

    def hold(self, *words: str, timeout_s: float = 40.0) -> subprocess.CompletedProcess[str]:
        """A `hold` command against this host."""
        request = warm.packed([*words], self.environment, os.getcwd())
        assert request is not None, "such a long command is started by the test itself"
        status, out, err = warm.run(request, b"", timeout_s)
        return subprocess.CompletedProcess(words, status, out.decode(), err.decode())

    def client(self) -> Host:
        client = Host(path=self.socket)
        self._clients.append(client)
        return client

    def log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.home / "host.log").read_text(errors="replace")
        return ""

    def story(self) -> str:
        """What can be said of a host that does not answer."""
        supervisor = "lives" if self.supervisor_alive() else "is gone"
        return f"its supervisor {supervisor}; it said last:\n{self.log()[-3000:]}"

    def down(self) -> None:
        """End everything, by asking if it answers, by force if not."""
        for client in self._clients:
            client.close()
        known = self.processes()
        with contextlib.suppress(HoldfastError, OSError), Host(path=self.socket) as client:
            request = m.Shutdown(client.connection.next_id(), end_sessions=True)
            client.connection.ask(request, timeout=10)
            until("the supervisor left", lambda: not self.supervisor_alive(), 10)
        for process in sorted({*known, *self.processes()}):  # parents first: none respawns a child
            kill_process(process)
        end_marked_processes(self.home)
        for group in self.groups():
            cgroup.kill(str(group))
            cgroup.remove(str(group))
        with contextlib.suppress(OSError):
            self.group_home().rmdir()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)

    # -- its processes ------------------------------------------------------------------------

    def supervisor_pid(self) -> int:
        lock = self.home / "run/supervisor.lock"  # empty while the next one writes it
        return int(until("a supervisor has said its pid", lambda: lock.read_text().strip()))

    def supervisor_alive(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return str(self.home) in command_line(self.supervisor_pid())
        return False

    def keepers(self) -> list[int]:
        """Every keeper of this home, by its command line."""
        sockets = f"{self.home}/run/keepers/"
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal()
            and (line := command_line(int(entry.name))).startswith("hold-keeper")
            and sockets in line
            and process_key(int(entry.name)) is not None
        ]

    def daemon_pid(self) -> int | None:
        """The daemon there is at this instant, ready or not."""
        return self._started("holdfast.host")

    def relay_pid(self) -> int | None:
        """The same of its own relay."""
        return self._started("holdfast.relay")

    def _started(self, module: str) -> int | None:
        found = children(self.supervisor_pid())
        return next((pid for pid in found if module in command_line(pid)), None)

    def kill_daemon(self) -> int:
        pid = until("there is a daemon", self.daemon_pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return pid

    def wait_new_daemon(self, old: int) -> int:
        """The pid of a daemon that serves, and is not `old`."""

        def look() -> int | None:
            assert self.supervisor_alive(), self.story()
            with contextlib.suppress(HoldfastError), Host(path=self.socket) as client:
                pid = client.connection.welcome.daemon_pid
                return pid if pid != old else None
            return None

        return until("a new daemon serves", look)

    def processes(self) -> set[ProcessKey]:
        """Supervisor, daemon, launcher, keepers, and every process of every session."""
        roots = self.keepers()
        if self.supervisor_alive():
            roots.append(self.supervisor_pid())
        pids = {pid for root in roots for pid in (root, *descendants(root))}
        return {key for pid in pids if (key := process_key(pid)) is not None}

    # -- its control groups -------------------------------------------------------------------

    def group_home(self) -> Path:
        where = cgroup.home(f"{os.getuid()}-{zlib.crc32(str(self.home).encode()):08x}")
        return Path(where or "/nonexistent")

    def groups(self) -> list[Path]:
        home = self.group_home()
        return [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []


def ending_of(client: Host, session: str) -> Ending:
    """How it ended, once it has."""
    return until(f"{session} ended", lambda: client.show(session).ending)


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode("utf-8", "replace")
        )
    return ""


def process_key(pid: int) -> ProcessKey | None:
    """None when there is no such process, or only its unreaped remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else ProcessKey(pid, int(fields[19]))


def is_alive(process: ProcessKey) -> bool:
    return process_key(process.pid) == process


def kill_process(process: ProcessKey) -> None:
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no process {pid}")


def descriptor_count(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def environments() -> list[tuple[int, dict[bytes, bytes]]]:
    """Every process with its environment, as the kernel has it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                pairs = (entry / "environ").read_bytes().split(b"\0")
                found.append((int(entry.name), dict(p.split(b"=", 1) for p in pairs if b"=" in p)))
    return sorted(found)


def end_marked_processes(home: Path, spared: set[str] | None = None) -> None:
    """SIGKILL to the processes of this host's sessions but the spared, whoever their parent is now:
    by their environment, because /proc/PID/children may miss some while others end."""
    known = set(os.listdir(home / "sessions")) if (home / "sessions").is_dir() else set()
    while True:
        doomed = []
        for pid, environment in environments():
            session = environment.get(b"HOLDFAST_SESSION", b"").decode()
            marked = environment.get(b"HOLDFAST_TEST_HOME", b"").decode() == str(home)
            if (session in known or marked) and session not in (spared or set()):
                doomed.append(pid)
        doomed = [pid for pid in doomed if process_key(pid) is not None]
        if not doomed:
            return
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_S)
