"""The `hold` process behind one ssh channel: on its own terminal, or on pipes.

It is an ordinary client with an ordinary environment, so the host decides what it may do. It ends
with the gateway, however that ends: on a terminal by the hang-up, on pipes because only the gateway
holds the other end of its standard input. Ending it never ends a session.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

from holdfast.model.limits import SIZE_MAX_CELLS_PER_SIDE, SSH_CHILD_GRACE_S

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

# The code that Python runs. The child itself makes the terminal its controlling terminal, because
# nothing may run between fork and exec in a process with an event loop.
_RUN = "from holdfast.cli import main; sys.exit(main())"
_IN_TERMINAL = f"import os, sys; os.login_tty(0); {_RUN}"
_ON_PIPES = (
    "import os, signal, sys, threading; "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # ignored if the gateway runs under nohup
    "end = lambda: (os.read(0, 1), os.kill(os.getpid(), signal.SIGHUP)); "
    f"threading.Thread(target=end, daemon=True).start(); {_RUN}"
)
# Variables that would change how a child acts, or make it believe it runs inside a session.
_NOT_INHERITED = ("HOLDFAST_AS", "HOLDFAST_SESSION")
_TERM_MAX_CHARS = 64

Stream = tuple[int, bool]  # a descriptor to read, and whether it is standard error


class Child:
    """One process, until it has been waited for."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        process: subprocess.Popen[bytes],
        streams: tuple[Stream, ...],
        terminal: int | None,
        lifeline: int | None,
    ) -> None:
        self._loop = loop
        self._process = process
        self.streams = streams
        self.terminal = terminal  # for keys and size; None on pipes
        self._lifeline = lifeline
        self._handle = os.pidfd_open(process.pid)
        self._patience: asyncio.TimerHandle | None = None
        self._on_end: list[Callable[[int], None]] = []
        self._closed = False
        loop.add_reader(self._handle, self._ended)

    def when_ended(self, tell: Callable[[int], None]) -> None:
        """Call `tell` once with the exit status."""
        self._on_end.append(tell)

    def resize(self, cols: int, rows: int) -> None:
        if self.terminal is not None and not self._closed:
            _set_size(self.terminal, cols, rows)

    def signal(self, number: signal.Signals) -> None:
        """Through a pidfd: the pid may belong to another process by now."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def hang_up(self) -> None:
        """The client is gone. Stop reading and ask the child to exit."""
        if self._closed:
            return
        self._closed = True
        for fd in {fd for fd, _ in self.streams} | {self._lifeline} - {None}:
            assert fd is not None
            os.close(fd)
        if self._process.returncode is None:
            self.signal(signal.SIGHUP)
            self._patience = self._loop.call_later(SSH_CHILD_GRACE_S, self.signal, signal.SIGKILL)

    def _ended(self) -> None:
        if self._process.poll() is None:
            return
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        if self._patience is not None:
            self._patience.cancel()
        code = self._process.returncode
        for tell in self._on_end:
            tell(code if code >= 0 else 128 - code)


def in_terminal(
    loop: asyncio.AbstractEventLoop,
    words: Sequence[str],
    acting: str,
    term: str,
    size: tuple[int, int],
) -> Child:
    """On its own terminal, of the client's size."""
    master, slave = os.openpty()
    try:
        os.set_blocking(master, False)
        _prepare(slave)
        _set_size(slave, *size)
        process = _spawn(_IN_TERMINAL, words, _environment(acting, term), slave, slave, slave)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return Child(loop, process, ((master, False),), master, None)


def on_pipes(loop: asyncio.AbstractEventLoop, words: Sequence[str], acting: str) -> Child:
    """With separate output and errors, and no input."""
    reader, lifeline = os.pipe()
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    try:
        environment = _environment(acting, "")
        process = _spawn(_ON_PIPES, words, environment, reader, out_end, err_end, apart=True)
    except BaseException:
        for fd in (lifeline, out, err):
            os.close(fd)
        raise
    finally:
        for fd in (reader, out_end, err_end):
            os.close(fd)
    for fd in (out, err):
        os.set_blocking(fd, False)
    return Child(loop, process, ((out, False), (err, True)), None, lifeline)


def _spawn(
    code: str,
    words: Sequence[str],
    environment: dict[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    *,
    apart: bool = False,
) -> subprocess.Popen[bytes]:
    # -P: do not import from the current directory.
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, *words],
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=apart,  # in a terminal it does so itself; our ^C must not reach it
    )


def _environment(acting: str, term: str) -> dict[str, str]:
    """Our environment, with that actor. Of the variables an ssh client sends, only TERM is used."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    environment["HOLDFAST_AS"] = acting
    known = term.isascii() and term.isprintable() and 0 < len(term) <= _TERM_MAX_CHARS
    environment["TERM"] = term if known else "dumb"
    return environment


def _prepare(slave: int) -> None:
    """Until the client makes it raw, early keys are kept unchanged and not echoed. Only ^C ends a
    client that is still starting."""
    settings = termios.tcgetattr(slave)
    settings[0] = 0
    settings[3] = termios.ISIG
    for name in (termios.VQUIT, termios.VSUSP):
        settings[6][name] = b"\0"
    settings[6][termios.VMIN], settings[6][termios.VTIME] = 1, 0
    termios.tcsetattr(slave, termios.TCSANOW, settings)


def _set_size(fd: int, cols: int, rows: int) -> None:
    most = SIZE_MAX_CELLS_PER_SIDE
    packed = struct.pack("4H", min(rows, most), min(cols, most), 0, 0)
    with contextlib.suppress(OSError):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, packed)
