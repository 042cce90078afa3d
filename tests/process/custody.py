"""One real keeper with a real program on a real terminal, and nothing else of a host."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.adapters import compiled, pty
from holdfast.adapters.session_memory.layout import DATA_AT, HEAD_AT
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.keeper import protocol
from holdfast.model.size import Size
from process.waiting import PATIENCE_S, wait_ended

CAPACITY = 4 << 20


class Kept:
    """The keeper, its program, and what a daemon would hold."""

    def __init__(self, script: str, capacity: int = CAPACITY) -> None:
        self.directory = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
        self.path = f"{self.directory}/k.sock"
        terminal = pty.open_plain(Size(80, 24), os.geteuid())
        self.master, self.ring = terminal.master, Ring.create(capacity)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        listener.bind(self.path)
        listener.listen(8)
        self.daemon, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.daemon.settimeout(PATIENCE_S)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become_keeper(terminal.slave, listener, theirs, self.path, script)
            finally:
                os._exit(70)
        self.pidfd = os.pidfd_open(self.pid)
        os.close(terminal.slave)
        listener.close()
        theirs.close()

    def deposit(self, blob: bytes = b"state", output: int = protocol.KEEP_OUTPUT) -> None:
        fds = {"master": self.master, "ring": self.ring.memfd, "output": self.ring.conduit}
        place = protocol.RingPlace("master", "ring", "output", DATA_AT, self.ring.capacity, HEAD_AT)
        protocol.send(self.daemon, protocol.deposit(fds, blob, place, output), fds.values())

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(PATIENCE_S)
        sock.connect(self.path)
        return sock

    def collect(self) -> protocol.News:
        """As a new daemon does; it is connected from here on."""
        self.daemon.close()
        self.daemon = self.connect()
        protocol.send(self.daemon, protocol.COLLECT)
        news = protocol.receive(self.daemon)
        assert news is not None and news.kind == "D"
        for fd in news.fds:
            os.close(fd)
        return news

    def news(self) -> protocol.News | None:
        return protocol.receive(self.daemon)

    def leave(self) -> None:
        """The daemon dies."""
        self.daemon.close()

    def output(self) -> bytes:
        self.ring.recover()
        return self.ring.copy(self.ring.tail, self.ring.head)

    def switches(self) -> int:
        """How often the keeper has waited for something."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def private_kb(self) -> int:
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))

    def wait_exit(self) -> None:
        wait_ended(self.pidfd)

    def close(self) -> None:
        self.daemon.close()
        with contextlib.suppress(OSError):
            sock = self.connect()
            protocol.send(sock, protocol.RELEASE)
            select.select([self.pidfd], [], [], PATIENCE_S)
            sock.close()
        signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        os.close(self.master)
        self.ring.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        os.rmdir(self.directory)


def _become_keeper(
    slave: int, listener: socket.socket, theirs: socket.socket, path: str, script: str
) -> None:
    program = os.fork()
    if program == 0:
        for number in (0, 1, 2):
            os.dup2(slave, number)
        os.closerange(3, 1024)
        words = ["hold-init", "--subreaper", "--", "/bin/sh", "sh", "-c", script]
        os.execv(compiled.program(compiled.INIT), words)
    for end in (listener, theirs):
        end.set_inheritable(True)
    fds = (str(theirs.fileno()), str(listener.fileno()))
    os.execv(compiled.program(compiled.KEEPER), ["hold-keeper", str(program), *fds, path])


@contextlib.contextmanager
def kept(script: str, capacity: int = CAPACITY) -> Iterator[Kept]:
    with contextlib.closing(Kept(script, capacity)) as session:
        yield session


@contextlib.contextmanager
def waiting(directory: Path, script: str, capacity: int = CAPACITY) -> Iterator[Kept]:
    """A program whose terminal is raw, and that waits for a line before it runs the script."""
    ready = directory / "ready"
    with kept(f"stty raw -echo; : > {ready}; read x; {script}", capacity) as session:
        wait_file(ready)
        yield session


def wait_file(path: Path) -> None:
    """Until a program has made it."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} is not made"
        time.sleep(0.005)
