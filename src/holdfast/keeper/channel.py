"""One message between supervisor and daemon: JSON, sent whole (SEQPACKET). Both ends use it."""

from __future__ import annotations

import json
import socket
from typing import Any

MESSAGE_MAX_BYTES = 64 << 10  # the longest is the order for a relay: a few paths and ports


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Raises BlockingIOError when a non-blocking socket is full; then nothing was sent."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MESSAGE_MAX_BYTES:
        raise ValueError("a message to the supervisor or daemon is too large")
    sock.send(text)


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """The next message, or None when the other end is gone."""
    data = sock.recv(MESSAGE_MAX_BYTES)
    found: dict[str, Any] | None = json.loads(data) if data else None
    return found
