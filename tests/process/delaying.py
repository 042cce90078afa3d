"""A long way to somewhere near: a TCP proxy that hands on everything late."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time


class DelayProxy:
    """On a port of its own, before a port of this machine. `one_way_s` may be changed at any time;
    what is on its way then still takes as long as before."""

    def __init__(self, port: int, one_way_s: float) -> None:
        self.one_way_s = one_way_s
        self._open = threading.Event()
        self._open.set()
        self._target = port
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold_back(self, yes: bool) -> None:
        """Nothing gets through, in either direction, until it is let through again."""
        if yes:
            self._open.clear()
        else:
            self._open.set()

    def close(self) -> None:
        self._open.set()
        for end in (self._listener, *self._ends):
            self._shut(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ends += [client, server]
                self._hand_on(client, server)
                self._hand_on(server, client)

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        """Two threads: one notes when a piece came, one sends it when it is due."""
        pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def take() -> None:
            with contextlib.suppress(OSError):
                while piece := source.recv(65536):
                    pieces.put((time.monotonic() + self.one_way_s, piece))
            pieces.put((0.0, b""))

        def give() -> None:
            with contextlib.suppress(OSError):
                while True:
                    due, piece = pieces.get()
                    if not piece:
                        break
                    time.sleep(max(0.0, due - time.monotonic()))
                    self._open.wait()
                    target.sendall(piece)
            self._shut(source)
            self._shut(target)

        for work in (take, give):
            threading.Thread(target=work, daemon=True).start()

    def _shut(self, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
