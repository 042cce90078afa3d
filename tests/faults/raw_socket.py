"""A client that need not speak the protocol."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Any

import msgpack

from holdfast.sdk.connection import new_operator
from holdfast.wire.frames import Decoder, encode
from holdfast.wire.messages.session import PROTOCOL_VERSION, Hello, Message

_LIMIT_BYTES = 16 << 20


class RawSocket:
    """A connection of bytes. `hear` gives what the host says until it stops or closes."""

    def __init__(self, path: str, *, greet: bool = True) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)
        self.operator = new_operator()
        self.closed = False
        self._decoder = Decoder(_LIMIT_BYTES)
        self._heard: list[Message] = []
        if greet:
            self.say(Hello((PROTOCOL_VERSION,), self.operator))
            assert self.hear().tag == "welcome"

    def __enter__(self) -> RawSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def say(self, message: Message) -> None:
        self.throw(encode(message))

    def throw(self, data: bytes) -> None:
        """Send as much as the host takes; it may close while we send."""
        try:
            self.sock.settimeout(10)
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def hear(self, timeout_s: float = 10.0) -> Message:
        """The next message. AssertionError when the host closed or is silent."""
        deadline = time.monotonic() + timeout_s
        while not self._heard:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self.sock], [], [], left)[0], "the host says nothing"
            try:
                data = self.sock.recv(256 << 10)
            except ConnectionResetError:
                data = b""
            if not data:
                self.closed = True
                raise AssertionError("the host closed the connection")
            self._heard += self._decoder.feed(data)
        return self._heard.pop(0)

    def hear_all(self, timeout_s: float = 10.0) -> list[Message]:
        """Everything until the host closes."""
        heard = []
        while True:
            try:
                heard.append(self.hear(timeout_s))
            except AssertionError:
                assert self.closed, f"the host neither answered nor closed; it said {heard}"
                return heard


def frame(value: Any) -> bytes:
    """Any msgpack value as a well-formed frame."""
    body: bytes = msgpack.packb(value)
    return struct.pack(">I", len(body)) + body


def frame_of(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body
