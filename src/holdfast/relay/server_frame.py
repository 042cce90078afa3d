"""A message as one WebSocket frame, made once for all recipients. A server does not mask its frames
(RFC 6455, 5.1), so the same bytes serve every connection; a frame per connection would copy each
broadcast once per subscriber, and long ones would take two system calls."""

from __future__ import annotations

import struct

from holdfast.wire.messages.base import Message
from holdfast.wire.relay_messages import encode

_BINARY = 0x82  # the whole message in one frame
_SHORT, _MEDIUM = 126, 1 << 16


def framed(message: Message) -> bytes:
    body = encode(message)
    size = len(body)
    if size < _SHORT:
        return struct.pack(">BB", _BINARY, size) + body
    if size < _MEDIUM:
        return struct.pack(">BBH", _BINARY, 126, size) + body
    return struct.pack(">BBQ", _BINARY, 127, size) + body


def body_of(frame: bytes) -> memoryview:
    """The message in a frame made here, for a peer link, which has no WebSocket."""
    size = frame[1]
    return memoryview(frame)[2 if size < _SHORT else 4 if size == 126 else 10 :]
