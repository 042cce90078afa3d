"""A running `hold forward`, and sessions with something to forward to."""

from __future__ import annotations

import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from process.commanding import PATIENCE_S, Hold

SERVERS = str(Path(__file__).with_name("servers.py"))


def server(hold: Hold, name: str, kind: str, *words: str, on: str = "", cwd: str = "/") -> int:
    """A session in which this server of servers.py runs; gives its port."""
    start = ("--on", on) if on else ()
    command = (sys.executable, "-u", SERVERS, kind, *words)
    hold.ok(*start, "run", "-d", "--name", name, "--cwd", cwd, "--", *command)
    return port_of(hold, f"{on}/{name}" if on else name)


def port_of(hold: Hold, name: str) -> int:
    hold.ok("wait", name, "--for", "text:ready", "--timeout", str(PATIENCE_S))
    found = re.search(r"ready (\d+)", hold.ok("screen", name))
    assert found is not None
    return int(found[1])


class Forward:
    """`hold forward ...`, from when it listens until it is left."""

    def __init__(self, hold: Hold, *words: str, ports: int = 1) -> None:
        self.process: subprocess.Popen[bytes] = hold.start("forward", *words)
        assert self.process.stdout is not None and self.process.stderr is not None
        self._said = b""
        self.lines = [self.process.stdout.readline().decode() for _ in range(ports)]
        assert all(line.startswith("http://") for line in self.lines), self._rest()
        self.urls = [line.split()[0] for line in self.lines]
        self.url = self.urls[0]
        self.ports = [int(url.rpartition(":")[2]) for url in self.urls]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        said = self._rest()
        for end in (self.process.stdout, self.process.stderr):
            assert end is not None
            end.close()
        assert "Traceback" not in said and "never retrieved" not in said, said

    def connect(self, at: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[at]), PATIENCE_S)

    def until(self, wanted: str) -> str:
        """It said this on standard error; gives everything it said since the last such wait."""
        assert self.process.stderr is not None
        deadline = time.monotonic() + PATIENCE_S
        while wanted.encode() not in self._said:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} is not in {self._said!r}"
            if select.select([self.process.stderr], [], [], left)[0]:
                piece = self.process.stderr.read1(65536)  # type: ignore[attr-defined]
                assert piece, f"it ended before {wanted!r}: {self._said!r}"
                self._said += piece
        before, found, self._said = self._said.partition(wanted.encode())
        return (before + found).decode()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_S)

    def ends(self) -> tuple[int, str]:
        """By itself: with which status, and what it said."""
        status = self.process.wait(PATIENCE_S)
        return status, self._rest()

    def _rest(self) -> str:
        if self.process.poll() is not None and self.process.stderr is not None:
            self._said += self.process.stderr.read()
        return self._said.decode()


def read_all(sock: socket.socket) -> bytes:
    """Until the end is said; raises ConnectionResetError when it is cut off."""
    got = bytearray()
    while piece := sock.recv(1 << 20):
        got += piece
    return bytes(got)


def read_exactly(sock: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        piece = sock.recv(size - len(got))
        assert piece, f"it ended after {bytes(got)[:200]!r}"
        got += piece
    return bytes(got)


def peak_kib(pid: int) -> int:
    """The most memory this process has ever had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])
