"""A TCP connection to a port that a session's process listens on, by the way `proc_ports` found.

In a network namespace of the session's own it is made by a process of its own, which enters the
namespace and hands the connected socket back: a daemon with threads cannot enter a user namespace,
and must not be somewhere else for a moment. That costs a start of Python; most sessions share the
host's network and do not pay it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys

from holdfast.adapters.launch import syscalls
from holdfast.adapters.proc.listening_ports import PortRoute, still
from holdfast.model.errors import PortNotListening
from holdfast.model.limits import FORWARD_DIAL_S


async def dial(way: PortRoute) -> socket.socket:
    """Connected, non-blocking. Raises PortNotListening when it is no longer the session's."""
    where = (way.address, way.port.number)
    try:
        async with asyncio.timeout(FORWARD_DIAL_S):
            sock = await (_inside(way) if way.port.own_network else _here(where))
    except TimeoutError:
        raise PortNotListening(
            f"the process that listens on port {way.port.number} lets nobody in",
            hint="it may be stopped, or have too many connections waiting",
        ) from None
    except OSError as error:
        why = f"port {way.port.number} cannot be dialled: {error.strerror or error}"
        raise PortNotListening(why, hint="try again") from error
    if not still(way.port):
        sock.close()
        why = f"what listened on port {way.port.number} has just gone"
        raise PortNotListening(why, hint="try again")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def _here(where: tuple[str, int]) -> socket.socket:
    sock = socket.socket(_family(where[0]), socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


# -- in another network -------------------------------------------------------------------------


async def _inside(way: PortRoute) -> socket.socket:
    ours, theirs = socket.socketpair()
    words = [str(theirs.fileno()), str(way.port.pid), way.address, str(way.port.number)]
    try:
        with theirs:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__, *words),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        try:
            await child.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            raise
        ours.setblocking(False)
        try:
            said, handed, _, _ = socket.recv_fds(ours, 4, 1)
        except BlockingIOError:
            said, handed = b"", []
    finally:
        ours.close()
    if not handed:
        raise OSError(int.from_bytes(said), os.strerror(int.from_bytes(said)))
    sock = socket.socket(fileno=handed[0])
    sock.setblocking(False)
    return sock


def main(words: list[str]) -> None:
    """In a separate process: enter the namespace, connect, pass the socket back."""
    back, pid, address, port = int(words[0]), words[1], words[2], int(words[3])
    answer = socket.socket(fileno=back)
    try:
        _enter(pid)
        sock = socket.create_connection((address, port), FORWARD_DIAL_S)
    except OSError as error:
        answer.send((error.errno or 0).to_bytes(4))
        return
    socket.send_fds(answer, [b"\0"], [sock.fileno()])


def _enter(pid: str) -> None:
    """Its network; by its user namespace, if that is what gives us the right to."""
    spaces = {
        kind: os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        for kind in ("user", "net")
    }
    if os.fstat(spaces["user"]).st_ino != os.stat("/proc/self/ns/user").st_ino:
        syscalls.setns(spaces["user"], syscalls.CLONE_NEWUSER)
    syscalls.setns(spaces["net"], syscalls.CLONE_NEWNET)


if __name__ == "__main__":
    main(sys.argv[1:])
