"""The daemon's end of the channel to its supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from holdfast.keeper import channel


class SupervisorLink:
    """Orders and news. Nothing in it is about a session."""

    def __init__(self, fd: int, pid: int) -> None:
        self._sock = socket.socket(fileno=fd)
        self._sock.setblocking(False)
        self.pid: int | None = pid  # None: it is gone
        self.relay_pid: int | None = None

    def listen(
        self,
        loop: asyncio.AbstractEventLoop,
        terminate: Callable[[], None],
        lost: Callable[[], None],
        relay: Callable[[str, str, str], None],
    ) -> None:
        """News from now on."""

        def on_readable() -> None:
            try:
                news = channel.receive(self._sock)
            except BlockingIOError:
                return
            except ConnectionError:
                news = None
            if news is None:
                loop.remove_reader(self._sock)
                self.pid = self.relay_pid = None
                lost()
            elif news["news"] == "terminate":
                terminate()
            elif news["news"] == "relay":
                self.relay_pid = news["pid"]
                relay(news["url"], news["pin"], news["why"])

        loop.add_reader(self._sock, on_readable)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._sock)

    def relay(self, address: str, ports: list[int], words: list[str]) -> None:
        """Run a relay that listens there, or with no address none."""
        self._send({"do": "relay", "listen": address, "ports": ports, "words": words})

    def ready(self) -> None:
        self._send({"do": "ready"})

    def stop(self) -> None:
        """Start no other daemon, and end."""
        self._send({"do": "stop"})

    def _send(self, order: dict[str, Any]) -> None:
        self._sock.setblocking(True)
        try:
            with contextlib.suppress(ConnectionError):  # it is gone: `lost` is called
                channel.send(self._sock, order)
        finally:
            self._sock.setblocking(False)


def start_supervisor(run: str, listen_fd: int) -> None:
    """One that takes over the listening socket, and outlives whoever starts it. If another has the
    lock already, it leaves at once."""
    words = ["--run-dir", run, "--listen-fd", str(listen_fd)]
    subprocess.Popen(
        [sys.executable, "-m", "holdfast.keeper.supervisor", *words],
        stdin=subprocess.DEVNULL,
        pass_fds=(listen_fd,),
        start_new_session=True,
    )
