"""A way to a relay on which what comes from the relay can be held up, as by a client that does not
read: little fits into it."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

_ROOM_BYTES = 32 << 10  # of each socket; the kernel would let it grow to megabytes
_SEGMENT_BYTES = 1400


class SlowLane:
    """On a port of its own, to a port on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._moves = threading.Event()
        self._moves.set()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._moves.set()
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def stall(self) -> None:
        self._moves.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket()
                far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM_BYTES)
                # By the segments of loopback the kernel would hold megabytes for the sender.
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
                far.connect(("127.0.0.1", self._port))
                self._ends += [near, far]
                for ways in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._copy, args=ways, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, held_up: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(4096):
                if held_up:
                    self._moves.wait()
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
