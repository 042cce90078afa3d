"""A person at a terminal: the real `hold attach` on a PTY of its own, with an emulator to see."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from typing import Any

from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.model.size import Size
from process.commanding import HOLD, PATIENCE_S, Hold

SIZE = Size(100, 30)


class Terminal:
    """One terminal window. What is written to it is kept whole and drawn by an emulator."""

    def __init__(self, hold: Hold, *words: str, size: Size = SIZE, program: str = HOLD) -> None:
        self.screen = GhosttyScreen(size)
        self.seen = b""
        self.master, slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.resize(size, draw=False)
        # Kept open: the terminal outlives the command, and its settings can be compared.
        self.slave = slave
        self.settings_before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(slave)
            os.execve(program, [program, *words], hold.env)
        self.status: int | None = None

    def resize(self, size: Size, *, draw: bool = True) -> None:
        packed = struct.pack("4H", size.rows, size.cols, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, packed)
        if draw:
            self.screen.resize(size)

    def type(self, data: bytes) -> None:
        """All of it, reading meanwhile as a terminal does."""
        while data:
            ready, room, _ = select.select([self.master], [self.master], [], PATIENCE_S)
            assert ready or room, "the client takes no keys"
            if ready:
                self._read()
            if room:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self.master, data[:512]) :]

    def until(self, wanted: bytes) -> bytes:
        """Read until `wanted` was written since the last such wait; gives everything up to it."""
        deadline = time.monotonic() + PATIENCE_S
        while wanted not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} did not appear in {self.seen[-2000:]!r}"
            if select.select([self.master], [], [], left)[0] and not self._read():
                raise AssertionError(f"the terminal ended before {wanted!r}: {self.seen[-2000:]!r}")
        before, found, self.seen = self.seen.partition(wanted)
        return before + found

    def until_shown(self, wanted: str) -> None:
        """Read until the emulator's screen shows this."""
        self.until_true(lambda text: wanted in text)

    def until_true(self, condition: Callable[[str], bool]) -> None:
        """Read until this is so of the emulator's screen."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.screen.text()):
            left = deadline - time.monotonic()
            assert left > 0, f"it is not so of the screen:\n{self.screen.text()}"
            if select.select([self.master], [], [], left)[0]:
                self._read()

    def wait(self) -> int:
        """The command's exit status, once it has ended; its last words are read."""
        deadline = time.monotonic() + PATIENCE_S
        while self.status is None:
            assert time.monotonic() < deadline, "the command does not end"
            if select.select([self.master], [], [], 0.05)[0]:
                self._read()
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
        while select.select([self.master], [], [], 0.05)[0] and self._read():
            pass
        return self.status

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.screen.close()

    def _read(self) -> bool:
        try:
            data = os.read(self.master, 65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.seen += data
        self.screen.feed(data)
        return bool(data)
