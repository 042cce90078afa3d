"""The daemon's end of the exec gates' answerer (adapters/seccomp/answerer.py): started when the
first session needs it, started again when it dies, and left running for the next daemon.

The socket is in the host's run directory. Whoever starts an answerer makes the socket, so that
connecting works at once; while an answerer lives nothing can take its place, because the kernel
refuses connections only where nobody listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Protocol

from holdfast.adapters.seccomp import gate_messages
from holdfast.adapters.seccomp.gate_messages import (
    AskWritten,
    CallQuestion,
    Gone,
    Learns,
    Read,
    Serve,
    Wrote,
)
from holdfast.model.record import Record

log = logging.getLogger(__name__)

_PROGRAM = "holdfast.adapters.seccomp.answerer"
_BACKLOG = 4  # daemons that connect at once: one, and one that it replaces
_AGAIN_FIRST_S = 0.05
_AGAIN_MAX_S = 2.0
_HEARD_AT_ONCE = 32
_STEADY_S = 10.0  # an answerer that ran so long resets the wait


class Asker(Protocol):
    """A session that is answered for."""

    def serve(self) -> tuple[Serve, tuple[int, int]]:
        """What the answerer has to know of it: listener and page."""
        ...

    def asked(self, question: CallQuestion) -> None: ...

    def wrote(self, wrote: Wrote) -> None: ...

    def read(self, read: Read) -> None: ...

    def learns(self, learns: Learns) -> None: ...

    def asked_written(self) -> None: ...

    def gone(self, id: int) -> None: ...


class AnswererLink:
    """Of one host."""

    def __init__(self, run: str) -> None:
        self._run, self._name = run, "gate.sock"
        self._sock: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions: dict[str, Asker] = {}
        self._outgoing: deque[tuple[Record, tuple[int, ...]]] = deque()
        self._began, self._wait_s = 0.0, _AGAIN_FIRST_S
        self._again: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the answerer, if this daemon started it."""
        return self._process.pid if self._process is not None else None

    def serve(self, session: str, asker: Asker) -> None:
        """From now on its calls are answered."""
        self._sessions[session] = asker
        if self._sock is None:
            if self._again is None:
                self._connect()
        else:
            self._say(*asker.serve())

    def leave(self, session: str) -> None:
        if self._sessions.pop(session, None) is not None:
            self.say(gate_messages.Leave(session))

    def say(self, message: Record) -> None:
        """Without an answerer it is dropped: the next one asks everything again."""
        self._say(message, ())

    def close(self) -> None:
        """It goes on with what it knows, until the next daemon connects."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        self._disconnect()

    # -- the connection ---------------------------------------------------------------------------

    def _connect(self) -> None:
        self._again = None
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.setblocking(False)
        try:
            try:
                self._at(sock.connect)
            except (ConnectionRefusedError, FileNotFoundError):
                self._start()
                self._at(sock.connect)
        except OSError as error:
            sock.close()
            log.error("the exec gate has no answerer: %s; trying again", error)
            self._later()
            return
        self._sock, self._began = sock, loop.time()
        loop.add_reader(sock, self._hear)
        for asker in self._sessions.values():
            self._say(*asker.serve())

    def _at(self, use: Callable[[str], None]) -> None:
        """By descriptor: the path of a socket is short, that of a home may be long."""
        place = os.open(self._run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            use(f"/proc/self/fd/{place}/{self._name}")
        finally:
            os.close(place)

    def _start(self) -> None:
        if self._process is not None:
            self._process.poll()  # reaped, if it was ours
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._run}/{self._name}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with listener:
            before = os.umask(0o177)
            try:
                self._at(listener.bind)
            finally:
                os.umask(before)
            listener.listen(_BACKLOG)
            # Its own session: a ^C at the daemon's terminal is not meant for it.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def _disconnect(self) -> None:
        if self._sock is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._sock)
            loop.remove_writer(self._sock)
            self._sock.close()
            self._sock = None
        self._outgoing.clear()

    def _lost(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._began > _STEADY_S:
            self._wait_s = _AGAIN_FIRST_S
        self._disconnect()
        if self._process is not None:
            self._process.poll()
        if self._sessions and not self._closed:
            log.warning("the exec gates' answerer is gone; starting another")
            self._later()

    def _later(self) -> None:
        self._again = asyncio.get_running_loop().call_later(self._wait_s, self._connect)
        self._wait_s = min(self._wait_s * 2, _AGAIN_MAX_S)

    # -- messages ---------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Some of what is there: the loop has others to serve."""
        for _ in range(_HEARD_AT_ONCE):
            if self._sock is None:
                return
            try:
                heard = gate_messages.receive(self._sock)
            except BlockingIOError:
                return
            except ConnectionError:
                heard = None
            if heard is None:
                self._lost()
                return
            self._take(heard[0])

    def _take(self, message: Record) -> None:
        asker = self._sessions.get(getattr(message, "session", ""))
        if asker is None:
            return
        if isinstance(message, CallQuestion):
            asker.asked(message)
        elif isinstance(message, Wrote):
            asker.wrote(message)
        elif isinstance(message, Learns):
            asker.learns(message)
        elif isinstance(message, Read):
            asker.read(message)
        elif isinstance(message, AskWritten):
            asker.asked_written()
        elif isinstance(message, Gone):
            asker.gone(message.id)

    def _say(self, message: Record, fds: tuple[int, ...]) -> None:
        if self._sock is not None:
            self._outgoing.append((message, fds))
            self._flush()

    def _flush(self) -> None:
        sock = self._sock
        if sock is None:
            return
        loop = asyncio.get_running_loop()
        try:
            while self._outgoing:
                gate_messages.send(sock, *self._outgoing[0])
                self._outgoing.popleft()
        except BlockingIOError:
            loop.add_writer(sock, self._flush)
            return
        except OSError:
            self._outgoing.clear()  # seen when it is read
        loop.remove_writer(sock)
