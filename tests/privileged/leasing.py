"""A host with short leases, and ways to come between it and its coordination point."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.adapters.halt import cgroup
from process.commanding import PATIENCE_S, Hold

LEASE_S = 3.0
_LOOK_S = 0.01


class LeasedHost(Hold):
    """Its coordination point is the host's own file, unless another is named."""

    def __init__(self, coordination: str = "", lease_s: float = LEASE_S) -> None:
        super().__init__()
        self.files = tempfile.mkdtemp(prefix="hf-files-", dir="/tmp")  # a session sees no home
        lines = [f"lease_s = {lease_s}\n"]
        lines += [f'coordination = "{coordination}"\n'] if coordination else []
        Path(self.home, "config.toml").write_text("".join(lines))

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.files, ignore_errors=True)

    def counting(self, name: str, *options: str) -> Path:
        """A session that counts for ever; gives the file it counts in."""
        counter = Path(self.files, f"{name}.count")
        line = f"while :; do echo >> {counter}; sleep 0.01; done"
        self.ok("run", "-d", "--name", name, *options, "--", "sh", "-c", line)
        soon(lambda: size(counter) > 2, "it does not count")
        return counter

    def lease(self, name: str) -> Any:
        return self.json("show", name)["lease"]

    def fenced(self, name: str) -> bool:
        return bool(self.lease(name)["state"] == "fenced")

    def epoch(self, name: str) -> int:
        return int(self.json("show", name)["epoch"])

    def group(self, name: str) -> str:
        """The control group of a session."""
        pid = self.json("show", name)["pid"]
        own = Path(f"/proc/{pid}/cgroup").read_text()
        session = self.json("show", name)["id"]
        (inside,) = re.findall(rf"^0::(.*/{session})", own, re.MULTILINE)
        mine = cgroup.locate(Path("/proc/self/mountinfo").read_text(), f"0::{inside}\n")
        assert mine is not None
        return mine

    @property
    def daemon_pid(self) -> int:
        return int(self.json("daemon", "status")["daemon_pid"])

    @property
    def registry(self) -> Path:
        return Path(self.home, "registry.sqlite")

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Nobody can write to the coordination point: another process has it locked. The lock is
        waited for, as the host's own writes are in between."""
        with locked(self.registry):
            yield


@contextmanager
def locked(registry: Path) -> Iterator[None]:
    lock = sqlite3.connect(registry, isolation_level=None, timeout=PATIENCE_S)
    lock.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        lock.execute("ROLLBACK")
        lock.close()


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def soon(condition: Callable[[], bool], otherwise: str, within_s: float = PATIENCE_S) -> float:
    """Until it is so; gives how long it took. There is no event for it here."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + within_s, otherwise
        time.sleep(_LOOK_S)
    return time.monotonic() - began


def moved_s(path: Path, since: float) -> float:
    """How long after `since` it was last counted, whenever we come to look: by the file's own time,
    which is the wall clock's."""
    return path.stat().st_mtime - since


def stands_still(path: Path) -> bool:
    """Whether nothing is counted while it is watched."""
    before = size(path)
    time.sleep(0.3)
    return size(path) == before


def counts(path: Path) -> None:
    before = size(path)
    soon(lambda: size(path) > before, "it does not count")


def needs_contained() -> str:
    """Why such sessions cannot be started here; "" when they can."""
    return "needs root" if os.geteuid() != 0 else cgroup.unavailable()
