"""The operator's own terminal: raw while attached, and put back whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

# Undo every mode a program in the session may have set in the operator's terminal: scroll region,
# colours, cursor keys, keypad, mouse, focus, bracketed paste, alternate screen, kitty keyboard,
# character sets, wrap, cursor. Harmless where nothing was set; nothing here clears the screen.
RESET = (
    b"\x1b[?1049l\x1b[?47l\x1b[r\x1b[0m\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?2026l\x1b[<99u\x1b[>4;0m"
    b"\x1b(B\x0f\x1b[4l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?25h\x1b[0 q"
)


class RawTerminal:
    """Raw input on a descriptor for as long as the block lasts."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] = termios.tcgetattr(fd)

    def __enter__(self) -> Self:
        self.make_raw()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, termios.error):
            write_all(1, RESET)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._before)

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
