"""Where a process connects to or writes, and which control groups of a session listen there.

A server may do what it is sent, so whoever connects is behind what the server does next; and so is
whoever writes to a pipe or file that another process has open. Found by the kernel's tables of
sockets, and by the descriptors of the session's own processes: a server outside of the session does
not count.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.adapters.halt import cgroup
from holdfast.adapters.seccomp import filter as calls
from holdfast.adapters.seccomp.file_lookup import AT_FDCWD, FoundFile, look_up
from holdfast.adapters.seccomp.process_memory import ProcessMemory, Unreadable

_LISTENS, _ACCEPTS = "0A", 1 << 16
_DATAGRAM = "0002"


class Peer(NamedTuple):
    """What an address says."""

    family: int
    path: bytes = b""  # of a unix socket; one that is no file begins with @
    host: str = ""
    port: int = 0

    @property
    def destination(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.host else ""


def peer_of(address: bytes) -> Peer | None:
    """As the kernel reads it; None if it is neither of a network nor of a unix socket."""
    if len(address) < 2:
        return None
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_UNIX and len(address) > 2:
        path = address[2:]
        return Peer(family, b"@" + path[1:] if path[:1] == b"\0" else path.partition(b"\0")[0])
    if family == socket.AF_INET and len(address) >= 8:
        (port,) = struct.unpack_from("!H", address, 2)
        return Peer(family, host=socket.inet_ntop(family, address[4:8]), port=port)
    if family == socket.AF_INET6 and len(address) >= 24:
        (port,) = struct.unpack_from("!H", address, 2)
        return Peer(family, host=socket.inet_ntop(family, address[8:24]), port=port)
    return None


def listening_groups(pid: int, peer: Peer, file: FoundFile, directory: str) -> set[str]:
    """The control groups below that of the session whose processes listen there. `file`: of a unix
    socket; `pid`: the process that connects."""
    found = _unix_sockets(pid, peer.path, file) if peer.path else _tcp_sockets(pid, peer)
    inodes = set(found)
    return _groups_with(inodes, cgroup.processes(directory)) if inodes else set()


def reading_groups(file: FoundFile, directory: str) -> set[str]:
    """The control groups below that of the session whose processes have the file open, or wait for
    its other end to be opened."""
    found: set[str] = set()
    for pid in cgroup.processes(directory):
        with contextlib.suppress(OSError, Unreadable):  # it is gone
            if _has_open(pid, file) or _is_opening(pid, file):
                found.add(_membership(pid))
    return found


def _has_open(pid: int, file: FoundFile) -> bool:
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{pid}/fd/{fd}")
            if (found.st_dev, found.st_ino) == (file.device, file.inode):
                return True
    return False


def _is_opening(pid: int, file: FoundFile) -> bool:
    """A fifo has no reader until it has a writer."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as text:
        number, *words = text.read().split()
    if number not in (str(calls.OPENAT), str(calls.OPEN)):
        return False
    at = AT_FDCWD if number == str(calls.OPEN) else ctypes.c_int(int(words[0], 16)).value
    memory = ProcessMemory(pid)
    try:
        path = memory.string(int(words[0 if number == str(calls.OPEN) else 1], 16))
    finally:
        memory.close()
    found = look_up(pid, at, path)
    return (found.device, found.inode) == (file.device, file.inode)


def _table(pid: int, name: str) -> Iterator[list[str]]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{name}", "rb") as table:
        next(table, b"")
        for line in table:
            yield os.fsdecode(line.rstrip(b"\n")).split(None, 7 if name == "unix" else 10)


def _unix_sockets(pid: int, path: bytes, file: FoundFile) -> Iterator[int]:
    wanted = os.fsdecode(path)
    for fields in _table(pid, "unix"):
        if len(fields) < 8 or not (int(fields[3], 16) & _ACCEPTS or fields[4] == _DATAGRAM):
            continue
        bound = fields[7]
        if bound.startswith("@") or wanted.startswith("@"):
            if bound == wanted:
                yield int(fields[6])
        elif not bound.startswith("/"):  # where from, nobody knows
            if os.path.basename(bound) == os.path.basename(wanted):
                yield int(fields[6])
        else:
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/root{bound}")
                if (found.st_dev, found.st_ino) == (file.device, file.inode):
                    yield int(fields[6])


def _tcp_sockets(pid: int, peer: Peer) -> Iterator[int]:
    """Of this machine only: what listens elsewhere is no process here."""
    if not _is_here(peer):
        return
    for name in ("tcp", "tcp6"):
        for fields in _table(pid, name):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == peer.port:
                yield int(fields[9])


def _is_here(peer: Peer) -> bool:
    with contextlib.suppress(OSError), socket.socket(peer.family, socket.SOCK_STREAM) as probe:
        probe.bind((peer.host, 0))
        return True
    return False


def _groups_with(inodes: set[int], processes: Iterable[int]) -> set[str]:
    names = {f"socket:[{each}]" for each in inodes}
    found: set[str] = set()
    for pid in processes:
        with contextlib.suppress(OSError):  # it is gone
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}") in names:
                        found.add(_membership(pid))
                        break
    return found


def _membership(pid: int) -> str:
    with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        return next((line for line in file.read().splitlines() if line.startswith("0::")), "")
