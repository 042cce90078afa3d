"""One message: a JSON head, an opaque blob, some descriptors. Sent atomically (SEQPACKET)."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any, NamedTuple

_HEAD_LENGTH = struct.Struct("=I")
MESSAGE_MAX_BYTES = (
    160 << 10
)  # a state blob: its command line may be 64 KiB, with room for the rest
DESCRIPTORS_MAX = 16  # a session deposits 7; the kernel's own bound is 253


class Parcel(NamedTuple):
    """What one message carries. The receiver owns the descriptors."""

    head: dict[str, Any]
    blob: bytes
    fds: list[int]


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MESSAGE_MAX_BYTES)
    return ours, theirs


def send(sock: socket.socket, head: dict[str, Any], blob: bytes = b"", *fds: int) -> None:
    """Raises BlockingIOError when a non-blocking socket is full; then nothing was sent."""
    text = json.dumps(head, separators=(",", ":")).encode()
    parts = [_HEAD_LENGTH.pack(len(text)), text, blob]
    if sum(map(len, parts)) > MESSAGE_MAX_BYTES:
        raise ValueError("a custody message is too large")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg(parts, rights)


def receive(sock: socket.socket) -> Parcel | None:
    """The next message, or None when the other end is gone."""
    room = socket.CMSG_SPACE(DESCRIPTORS_MAX * 4)
    data, rights, flags, _ = sock.recvmsg(MESSAGE_MAX_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if not data:
        return None
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        for fd in fds:
            os.close(fd)
        raise OSError("a custody message was cut short (out of descriptors?)")
    (size,) = _HEAD_LENGTH.unpack_from(data)
    body = data[_HEAD_LENGTH.size :]
    return Parcel(json.loads(body[:size]), body[size:], list(fds))
