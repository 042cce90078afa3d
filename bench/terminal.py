"""A terminal for a client to be attached in: a PTY whose master this process reads as fast as it
can. It draws nothing, so what is measured is the way to the terminal, not a terminal."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

COLS, ROWS = 120, 40
_READ_BYTES = 1 << 16
_LEAVE_S = 3.0


class Silent(Exception):
    """What was waited for did not come."""


class Terminal:
    """A program in a terminal of 120x40. Ends with the context."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.received = 0  # bytes printed to it so far
        self._argv = argv
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=dict(env),
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        finally:
            os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.master)  # a hang-up, as when a window is closed
        try:
            self.process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def wait_for(self, text: bytes, timeout_s: float) -> None:
        """Read until `text` has been printed."""
        deadline = time.monotonic() + timeout_s
        keep = len(text) - 1
        tail = b""
        while True:
            data = self._read(deadline, text)
            if text in data or (keep and text in tail + data[:keep]):
                return
            tail = (tail + data)[-keep:] if keep else b""

    def discard(self, quiet_s: float) -> None:
        """Read until nothing has come for so long."""
        while select.select([self.master], [], [], quiet_s)[0]:
            try:
                self.received += len(os.read(self.master, _READ_BYTES))
            except OSError:
                return

    def _read(self, deadline: float, text: bytes) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.master], [], [], left)[0]:
            raise Silent(f"{self._argv[0]}: no {text!r} in time, got {self.received} bytes")
        try:
            data = os.read(self.master, _READ_BYTES)
        except OSError as error:
            raise Silent(f"{self._argv[0]} left with status {self.process.wait()}") from error
        self.received += len(data)
        return data


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
