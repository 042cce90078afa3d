"""The operator's own terminal: raw while attached, and put back whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import termios

from holdfast.model import terminal_reset
from holdfast.model.size import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

# What a terminal gives back another may take for a scroll region. Some of it moves the cursor home,
# so it ends on the last row, below everything the session had printed.
RESET = terminal_reset.ALL + b"\x1b[?2026l" + terminal_reset.GIVE_BACK + b"\x1b[r" + b"\x1b[999;1H"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class RawTerminal:
    """Raw input on a descriptor for as long as the block lasts."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] = termios.tcgetattr(fd)

    def __enter__(self) -> Self:
        write_all(1, terminal_reset.KEEP)
        self.make_raw()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, termios.error):
            write_all(1, RESET)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def reset(self) -> None:
        """What one session has set is undone before another one is shown; it stays raw."""
        write_all(1, RESET + terminal_reset.KEEP)

    def make_raw(self) -> None:
        """Also after the operator's shell changed it, when we were stopped and continued."""
        raw = list(self._before)
        raw[0] &= ~(
            termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON
            | termios.INLCR | termios.IGNCR
        )  # fmt: skip
        raw[1] &= ~termios.OPOST
        raw[2] = (raw[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        raw[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[6] = list(raw[6])
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, raw)


def write_all(fd: int, data: bytes) -> None:
    """All of it, also where the descriptor was left non-blocking by somebody else."""
    sent = 0
    while sent < len(data):
        try:
            sent += os.write(fd, data[sent:] if sent else data)
        except BlockingIOError:
            select.select([], [fd], [])


def terminal_size() -> Size | None:
    try:
        cols, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return Size(cols, rows) if cols and rows else None


def signals_as_bytes() -> socket.socket:
    """Signals as bytes on a socket, so that one poll waits for everything."""
    reader, writer = socket.socketpair()
    for end in (reader, writer):
        end.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    signals_as_bytes.__dict__["kept"] = writer  # the descriptor must outlive this function

    def note(_number: int, _frame: Any) -> None:
        """The wakeup descriptor does the work."""

    for number in (signal.SIGWINCH, signal.SIGCONT, signal.SIGALRM, *_ENDING):
        signal.signal(number, note)
    return reader
