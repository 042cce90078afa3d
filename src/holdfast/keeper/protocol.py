"""The messages between a daemon and the keeper of one session, as bytes. native/hold_keeper.c has
the other end, and the same numbers.

One message is one SEQPACKET datagram: a kind, fixed fields in the machine's own byte order, then
what is opaque. Descriptors travel along. Sockets are the caller's.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

# A state blob: its command line may be 64 KiB, with room for the rest.
MESSAGE_MAX_BYTES = 160 << 10
DESCRIPTORS_MAX = 16  # a session deposits up to 8; the kernel's own bound is 253

# What becomes of output while no daemon is connected: moved into the ring, read and forgotten, or
# left in the terminal.
KEEP_OUTPUT, DROP_OUTPUT, LEAVE_OUTPUT = 0, 1, 2

_DEPOSIT = struct.Struct("=cBBBB3xI4xQQQ")
_UPDATE = struct.Struct("=c7x")
_LEASE = struct.Struct("=c7xQ")
_OUTPUT = struct.Struct("=cB")
_DUMP = struct.Struct("=c?")
_NEWS = struct.Struct("=cBBxiiiI4x")

COLLECT = b"c"
GATE = b"g"  # look at the exec gate's page; when it has left the gate it says so
RELEASE = b"r"


class RingPlace(NamedTuple):
    """Where output goes while no daemon is connected: three of the deposited descriptors by name,
    and where the ring is in its memory."""

    master: str
    ring: str
    conduit: str
    data_at: int
    capacity: int
    head_at: int


class News(NamedTuple):
    """What a keeper says. `kind`: `D` a deposit, `N` that it has none, `E` the session ended, `F`
    it was frozen, `G` it has left the exec gate. `status`: of a session that ended, {"code": 7} or
    {"signal": 9}."""

    kind: str
    status: dict[str, int] | None
    keeper_pid: int
    names: list[str]
    blob: bytes
    fds: list[int]


def deposit(names: Iterable[str], blob: bytes, place: RingPlace, output: int) -> bytes:
    order = list(names)
    joined = "\0".join(order).encode()
    indices = (order.index(name) for name in (place.master, place.ring, place.conduit))
    head = _DEPOSIT.pack(
        b"d", output, *indices, len(joined), place.data_at, place.capacity, place.head_at
    )
    return _checked(head + joined + blob)


def update(blob: bytes) -> bytes:
    return _checked(_UPDATE.pack(b"u") + blob)


def lease(until: float | None) -> bytes:
    """In seconds of CLOCK_BOOTTIME; None: no deadline."""
    return _LEASE.pack(b"l", 0 if until is None else max(1, int(until * 1e9)))


def dump(under_way: bool) -> bytes:
    """CRIU is about to stop the session's processes, or has let go of them: while it has them, a
    deadline that passes does not freeze them."""
    return _DUMP.pack(b"k", under_way)


def output(mode: int) -> bytes:
    return _OUTPUT.pack(b"o", mode)


def _checked(message: bytes) -> bytes:
    if len(message) > MESSAGE_MAX_BYTES:
        raise ValueError("a message to a keeper is too large")
    return message


def send(sock: socket.socket, message: bytes, fds: Iterable[int] = ()) -> None:
    rights = array.array("i", fds)
    sock.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if rights else [])


def receive(sock: socket.socket) -> News | None:
    """The next message, or None when the keeper is gone. The caller owns the descriptors."""
    room = socket.CMSG_SPACE(DESCRIPTORS_MAX * 4)
    try:
        data, rights, flags, _ = sock.recvmsg(MESSAGE_MAX_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:  # it died with messages of ours unread
        return None
    fds = array.array("i")
    for level, kind, content in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if not data:
        return None
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(data) < _NEWS.size:
        for fd in fds:
            os.close(fd)
        raise OSError("a keeper's message was cut short (out of descriptors?)")
    kind, known, by_signal, value, _session, keeper, length = _NEWS.unpack_from(data)
    text, blob = data[_NEWS.size :][:length].decode(), data[_NEWS.size + length :]
    status = {"signal" if by_signal else "code": value} if known else None
    names = text.split("\0") if text else []
    return News(kind.decode(), status, keeper, names, blob, list(fds))
