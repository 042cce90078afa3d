"""The relay beside the daemon: the supervisor's second child, restarted when it ends.

It is here and not in the daemon so that it keeps running while a daemon is replaced. This module
knows nothing of what a relay does: each daemon says which arguments to start it with and which
ports to try, and learns where the relay listens. When the supervisor dies the kernel kills the
relay, so that the next one finds its port free.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from holdfast.keeper import oom

_BACKOFF_FIRST_S = 0.1
_BACKOFF_MAX_S = 10.0
_STEADY_S = 10.0  # a relay that ran this long resets the backoff
_END_S = 1.0  # for a killed relay to exit
_PR_SET_PDEATHSIG = 1
_LINE_MAX = 4096

News = dict[str, Any]
Status = dict[str, int]  # {"code": 7} or {"signal": 9}


class RelayChild:
    """At most one process. `tell` sends to the daemon; `log` writes to the log."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        tell: Callable[[News], None],
        log: Callable[[str], None],
    ) -> None:
        self.start_at: float | None = None
        self._selector, self._tell, self._log = selector, tell, log
        self._order: News | None = None
        self._news: News | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: int | None = None
        self._port = 0  # of the last one: links contain it
        self._began = 0.0
        self._backoff = _BACKOFF_FIRST_S
        self._replacing = False  # it was killed to be replaced

    def want(self, order: News) -> None:
        """`listen` (an address, or "": no relay), `ports` to try (0: any) and `words` for it."""
        if self._is_as(order):
            self._order = order
            if self._news is not None:
                self._tell(self._news)
            return
        self._order, self._news, self._port = order, None, 0
        self._backoff = _BACKOFF_FIRST_S
        self._replacing = self._process is not None
        if self._process is not None:
            self._process.kill()  # the next one is started when it has exited
        else:
            self.start_at = time.monotonic()

    def _is_as(self, order: News) -> bool:
        """Whether the running relay already matches this order."""
        old = self._order
        if old is None or (old["listen"], old["words"]) != (order["listen"], order["words"]):
            return False
        return self._port in order["ports"] or 0 in order["ports"]

    def start(self) -> None:
        """Start it as ordered. A failure may be temporary, so it is retried."""
        self.start_at = None
        order = self._order
        if self._process is not None or order is None or not order["listen"]:
            return
        try:
            first = [self._port] if self._port else []
            self._port = _free_port(order["listen"], [*first, *order["ports"]])
            self._start(order)
        except OSError as error:
            self._later(f"cannot be started: {error.strerror or error}")

    def _start(self, order: News) -> None:
        address = f"[{order['listen']}]" if ":" in order["listen"] else order["listen"]
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        words = ["--listen", f"{address}:{self._port}", "--ready-fd", str(writer), *order["words"]]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.relay", *words],
                stdin=subprocess.DEVNULL,
                pass_fds=(writer,),
                preexec_fn=_die_with(os.getpid()),
            )
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self._began = time.monotonic()
        self._ready = reader
        self._selector.register(reader, selectors.EVENT_READ, self._on_ready)

    def _on_ready(self) -> None:
        """One line: its address, and the fingerprint of a self-signed certificate."""
        if self._ready is None:
            return
        with contextlib.suppress(BlockingIOError):
            line = os.read(self._ready, _LINE_MAX).decode(errors="replace").split()
            self._forget_ready()
            if line[:1] == ["ready"]:
                self._say({"url": line[1], "pin": "".join(line[2:3]), "why": ""})

    def ended(self, pid: int, status: Status) -> bool:
        """Whether this child was the relay; then it is restarted."""
        if self._process is None or self._process.pid != pid:
            return False
        self._process.returncode = status.get("code", -1)
        self._process = None
        self._forget_ready()
        if self._replacing:
            self._replacing, self.start_at = False, time.monotonic()
            return True
        if time.monotonic() - self._began > _STEADY_S:
            self._backoff = _BACKOFF_FIRST_S
        self._later(f"ended ({status}); see the log")
        return True

    def _later(self, why: str) -> None:
        self._log(f"relay {why}; trying again in {self._backoff:.2f} s")
        self._say({"url": "", "pin": "", "why": why})
        self.start_at = time.monotonic() + self._backoff
        self._backoff = min(self._backoff * 2, _BACKOFF_MAX_S)

    def _say(self, news: News) -> None:
        pid = self._process.pid if self._process is not None else None
        self._news = {"news": "relay", "pid": pid, **news}
        self._tell(self._news)

    def _forget_ready(self) -> None:
        if self._ready is not None:
            self._selector.unregister(self._ready)
            os.close(self._ready)
            self._ready = None

    def close(self) -> None:
        """Kill the relay and wait for it, so that the next supervisor finds the port free."""
        self._order, self.start_at = None, None
        self._forget_ready()
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)


def _free_port(address: str, ports: list[int]) -> int:
    """The first free port; 0 is any."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    failure = OSError("no port to try")
    for port in ports:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the relay does
            try:
                probe.bind((address, port))
                return int(probe.getsockname()[1])
            except OSError as error:
                failure = error
    raise failure


def _die_with(supervisor: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def arrange() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        oom.restore()
        if os.getppid() != supervisor:  # it died before prctl took effect
            os._exit(1)

    return arrange
