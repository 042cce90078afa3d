"""Reading what was typed and no program has read, for a checkpoint: it is taken out of the terminal
and put back, by a process of its own that the launcher forks.

A daemon that was killed in between would take it to its grave, and leave the terminal without echo.
The process is there before the session stands still, so that this costs no more than a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from holdfast.adapters import pty

_READ = b"r"
_MESSAGE_MAX_BYTES = 256 << 10  # more than a terminal holds
_TIMEOUT_S = 5.0  # for reading a terminal, which takes a millisecond


class UnreadReader:
    """The daemon's end."""

    def __init__(self) -> None:
        self._sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.setblocking(False)

    def started(self) -> None:
        """The process has its end."""
        self.theirs.close()

    async def read(self) -> bytes:
        """While nothing in the session runs; the terminal has it again. Raises OSError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_TIMEOUT_S):
            await loop.sock_sendall(self._sock, _READ)
            answer = await loop.sock_recv(self._sock, _MESSAGE_MAX_BYTES)
        if not answer:
            raise OSError(0, "the terminal's unread input cannot be read")
        return answer[1:]

    def close(self) -> None:
        for each in (self._sock, self.theirs):
            each.close()


def serve(fd: int, master: int) -> None:
    """The process: does it once, when it is asked; nobody asks when the other end closes."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in (fd, master):
            with contextlib.suppress(OSError):
                os.close(int(name))
    with socket.socket(fileno=fd) as asking:
        if asking.recv(1):
            unread = pty.take_unread(master)
            pty.put_unread(master, unread)
            asking.send(_READ + unread)
