"""A session's output on our own standard output, as bytes."""

from __future__ import annotations

import sys
from collections.abc import Callable


def write(data: bytes) -> None:
    """Pass on at once: the reader follows something live."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Newlines:
    """`\\r\\n`, as terminals print lines, to `\\n`, as files and pipes want them. A `\\r` at the
    end of a piece waits for the next: its `\\n` may be there."""

    def __init__(self, out: Callable[[bytes], None] = write) -> None:
        self._out = out
        self._held = b""

    def write(self, data: bytes) -> None:
        data = (self._held + data).replace(b"\r\n", b"\n")
        self._held = b"\r" if data.endswith(b"\r") else b""
        if data := data[: len(data) - len(self._held)]:
            self._out(data)

    def close(self) -> None:
        if self._held:
            self._out(self._held)
            self._held = b""
