"""A tiny HTTP proxy that knows one method, CONNECT, and names that nobody else knows."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class ConnectProxy:
    """On a port of its own. `names`: host:port as asked for -> port on this machine; what is not
    named is refused."""

    def __init__(self, names: dict[str, int]) -> None:
        self.names = names
        self.asked: list[str] = []  # each first line
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shut(self._listener)
        for end in self._ends:
            self._shut(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._ends.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(4096)
                if not piece:
                    return
                head += piece
            self.asked.append(head.split(b"\r\n", 1)[0].decode())
            method, target, _ = self.asked[-1].split(" ")
            if method != "CONNECT" or target not in self.names:
                client.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                client.close()
                return
            server = socket.create_connection(("127.0.0.1", self.names[target]))
            self._ends.append(server)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
            self._copy(client, server)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        self._shut(source)
        self._shut(target)

    def _shut(self, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
