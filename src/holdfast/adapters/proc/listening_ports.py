"""TCP ports that processes of a session listen on, by the kernel's word: a listening socket counts
when a process of the session's own tree has it open, in whatever network namespace that is.

And the way to one of them: an address at which nobody else can be met. Another process may listen
on the same port, at another address or beside ours (SO_REUSEPORT); then that address is not used.
`still` checks that nothing changed between a look and a connection.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from typing import Literal, NamedTuple

from holdfast.adapters.proc import procfs, sock_diag
from holdfast.adapters.proc.sock_diag import ListeningSocket
from holdfast.model.errors import PortNotListening
from holdfast.model.spec import Place

_PROCESSES_MAX = 4096  # looked at; a port of one beyond them is not found
_NAMED_MAX = 8  # ports named in a refusal
_TCP_LISTEN = "0A"
_WILD4, _WILD6, _LOOP4, _LOOP6, _MAPPED = "0.0.0.0", "::", "127.0.0.1", "::1", "::ffff:"


class Port(NamedTuple):
    """One listening socket of the session."""

    number: int
    address: str  # it is bound to
    pid: int
    fd: int
    inode: int
    own_network: bool  # not the network of this process but one of the session's own

    @property
    def process(self) -> str:
        try:
            return procfs.stat_of(self.pid).name
        except OSError:
            return ""


class PortRoute(NamedTuple):
    """Where to dial for a port."""

    port: Port
    address: str


def find(place: Place, number: int) -> PortRoute:
    """The way to this port of the session. Raises PortNotListening, naming those there are."""
    ours, others = _look(place)
    for port in sorted(ours, key=lambda port: port.own_network):
        if port.number == number:
            for address, rivals in _ways(port.address):
                if not any(_rivals(other, port, rivals) for other in others):
                    return PortRoute(port, address)
    raise PortNotListening(
        f"no process of this session listens on port {number}; {_named(ours)}",
        hint="start the server in the session; `hold graph` shows what listens there",
    )


def ports(place: Place) -> list[Port]:
    return _look(place)[0]


def still(port: Port) -> bool:
    """Whether the same process still has the same socket open."""
    try:
        return os.readlink(f"/proc/{port.pid}/fd/{port.fd}") == f"socket:[{port.inode}]"
    except OSError:
        return False


# -- looking -----------------------------------------------------------------------------------


def _look(place: Place) -> tuple[list[Port], list[tuple[bool, ListeningSocket]]]:
    """What the session listens on; and what others do, each with whether that is in a network of
    the session's own."""
    pids = procfs.members(place, _PROCESSES_MAX)
    if not place.cgroup:
        pids += procfs.same_session(pids, _PROCESSES_MAX)
    held: dict[int, dict[int, tuple[int, int]]] = {}  # network -> inode -> who has it, and where
    seen_from: dict[int, int] = {}  # network -> a process in it
    for pid in pids:
        with contextlib.suppress(OSError):
            network = os.stat(f"/proc/{pid}/ns/net").st_ino
            seen_from.setdefault(network, pid)
            held.setdefault(network, {}).update(_sockets(pid))
    here = os.stat("/proc/self/ns/net").st_ino
    ours: list[Port] = []
    others: list[tuple[bool, ListeningSocket]] = []
    for network, sockets in held.items():
        own = network != here
        for each in _in_network(seen_from[network]) if own else sock_diag.listening():
            if each.inode in sockets:
                ours.append(Port(each.port, each.address, *sockets[each.inode], each.inode, own))
            elif not each.below:
                others.append((own, each))
    return ours, others


def _sockets(pid: int) -> Iterator[tuple[int, tuple[int, int]]]:
    directory = f"/proc/{pid}/fd"
    for name in os.listdir(directory):
        try:
            target = os.readlink(f"{directory}/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            yield int(target[8:-1]), (pid, int(name))


def _in_network(pid: int) -> list[ListeningSocket]:
    """In the network namespace of this process: its /proc says, without entering it."""
    found = []
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        with contextlib.suppress(OSError):
            for line in procfs.read(f"/proc/{pid}/net/{name}").decode().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _TCP_LISTEN:
                    packed, port = fields[1].split(":")
                    found.append(
                        ListeningSocket(int(fields[9]), _host(family, packed), int(port, 16))
                    )
    return found


def _host(family: int, packed: str) -> str:
    """The kernel writes each word of an address as a number in this machine's order."""
    words = [int(packed[at : at + 8], 16) for at in range(0, len(packed), 8)]
    return socket.inet_ntop(family, b"".join(word.to_bytes(4, _ORDER) for word in words))


# -- the way there -----------------------------------------------------------------------------


def _ways(bound: str) -> Iterator[tuple[str, set[str]]]:
    """Addresses by which a socket bound so is reached, each with those at which another socket
    would be met instead of it, or by turns with it."""
    if bound == _WILD4:
        yield _LOOP4, {_LOOP4, _WILD4}
    elif bound == _WILD6:
        yield _LOOP6, {_LOOP6, _WILD6}
        yield _LOOP4, {_LOOP4, _WILD4, _WILD6}
    else:
        plain = bound.removeprefix(_MAPPED)
        yield plain, {plain, bound}


def _rivals(other: tuple[bool, ListeningSocket], port: Port, addresses: set[str]) -> bool:
    own_network, each = other
    alike = each.port == port.number and each.address in addresses
    return alike and own_network == port.own_network


def _named(ours: list[Port]) -> str:
    by_number = {port.number: port.process for port in ours}
    if not by_number:
        return "nothing in it listens on any"
    named = [f"{number} ({by_number[number]})" for number in sorted(by_number)[:_NAMED_MAX]]
    more = len(by_number) - len(named)
    return f"it listens on {', '.join(named)}" + (f" and {more} more" if more else "")


_ORDER: Literal["little", "big"] = sys.byteorder
