"""Sockets by inode, from the kernel's sock_diag over netlink.

Asks about the network namespace of this process, which is also the sessions'. A dump lists every
socket of a family on the host, so only the families a session has are asked for, and only the
sockets it has are kept. Nothing is parsed from /proc/net, whose text form costs far more.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY, _SOCK_DESTROY = 20, 21
_NLM_F_REQUEST_DUMP, _NLM_F_REQUEST_ACK = 0x301, 0x005
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_ALL_STATES, _LISTEN = 0xFFFFFFFF, 1 << 10
# Every state in which there is a peer that may still hear of it: syn-sent, syn-recv, established,
# the fin-waits, close-wait, last-ack, closing.
_CONNECTED = sum(1 << state for state in (1, 2, 3, 4, 5, 8, 9, 11))
_TIMEOUT_S = 1.0  # the kernel answers a dump at once; this only keeps a fault from hanging us
_RECEIVE_BYTES = 64 << 10

_HEADER = struct.Struct("=IHHII")
_INET_REQUEST = struct.Struct("=BBBBI48x")
_INET_ANSWER = struct.Struct("=BBBB2s2s16s16s4x8x4x4x4x4xI")
_UNIX_REQUEST = struct.Struct("=BBHIII8x")
_UNIX_ANSWER = struct.Struct("=BBBxI8x")
_IPPROTO_MPTCP = 262
_INET_WIDE_PROTOCOL = struct.Struct("=HHI")  # attribute for what does not fit the request's byte
_INET_REQ_PROTOCOL = 3
_UNIX_SHOW_NAME_AND_PEER = 1 | 4
_UNIX_NAME, _UNIX_PEER = 0, 2

_TCP_STATES = {
    1: "established",
    2: "syn-sent",
    3: "syn-recv",
    4: "fin-wait-1",
    5: "fin-wait-2",
    6: "time-wait",
    7: "close",
    8: "close-wait",
    9: "last-ack",
    10: "listen",
    11: "closing",
    12: "syn-recv",
    13: "bound",
}
_KINDS = {1: "stream", 2: "dgram", 5: "seqpacket"}


class SocketFound(NamedTuple):
    """What the kernel reports of one socket."""

    family: str
    kind: str
    state: str
    local: str = ""
    remote: str = ""
    peer: int = 0


# The kernel's protocol name (the sockprotoname attribute of a socket's descriptor) -> what it is,
# and the protocol to ask about. ICMP and raw sockets are named, not looked up.
_INET = {
    "TCP": (socket.AF_INET, socket.IPPROTO_TCP, "inet", "tcp"),
    "TCPv6": (socket.AF_INET6, socket.IPPROTO_TCP, "inet6", "tcp"),
    "UDP": (socket.AF_INET, socket.IPPROTO_UDP, "inet", "udp"),
    "UDPv6": (socket.AF_INET6, socket.IPPROTO_UDP, "inet6", "udp"),
    # Go programs listen with MPTCP by default; to its user it is a TCP port.
    "MPTCP": (socket.AF_INET, _IPPROTO_MPTCP, "inet", "tcp"),
    "MPTCPv6": (socket.AF_INET6, _IPPROTO_MPTCP, "inet6", "tcp"),
}


def by_name(protocol: str) -> SocketFound:
    """What the protocol's name alone tells; "unknown" is a state nobody could look up."""
    if protocol in _INET:
        _, _, family, kind = _INET[protocol]
        return SocketFound(family, kind, "unconnected")
    if protocol.startswith("UNIX"):
        return SocketFound(
            "unix", "stream" if protocol == "UNIX-STREAM" else "other", "unconnected"
        )
    if protocol == "NETLINK":
        return SocketFound("netlink", "raw", "unconnected")
    if protocol.startswith(("RAW", "PING")):
        return SocketFound("inet6" if protocol.endswith("v6") else "inet", "raw", "unconnected")
    return SocketFound("other", "other", "unknown")


def look_up(protocols: Collection[str], inodes: Collection[int]) -> dict[int, SocketFound]:
    """The sockets with these inodes, of these protocols. Raises OSError when netlink refuses."""
    wanted = set(inodes)
    found: dict[int, SocketFound] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        for key in sorted({_INET[name] for name in protocols if name in _INET}):
            found.update(_inet(netlink, *key, wanted))
        if any(name.startswith("UNIX") for name in protocols):
            found.update(_unix(netlink, wanted))
    return found


class ListeningSocket(NamedTuple):
    """A TCP port that somebody listens on. `below`: not by itself, but for an MPTCP socket, which
    is listed too."""

    inode: int
    address: str
    port: int
    below: bool = False


def listening() -> list[ListeningSocket]:
    """Every one of this network namespace, whosever it is. Raises OSError as `look_up` does."""
    found: list[ListeningSocket] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            above: set[tuple[str, int]] = set()
            for protocol in (_IPPROTO_MPTCP, socket.IPPROTO_TCP):
                for body in _dump_inet(netlink, family, protocol, _LISTEN):
                    _, _, _, _, port, _, source, _, inode = _INET_ANSWER.unpack_from(body)
                    place = _host(family, source), int.from_bytes(port, "big")
                    if protocol == _IPPROTO_MPTCP:
                        above.add(place)
                    below = protocol == socket.IPPROTO_TCP and place in above
                    found.append(ListeningSocket(inode, *place, below))
    return found


class TcpConnection(NamedTuple):
    """A TCP connection, one end of it. An IPv4 address is the same however the socket writes it."""

    inode: int
    local: tuple[str, int]
    remote: tuple[str, int]
    family: int
    id: bytes  # by which the kernel knows it

    @property
    def shown(self) -> tuple[str, str]:
        """Both ends, for people."""
        first, second = (
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in (self.local, self.remote)
        )
        return first, second


_ID_AT, _ID_BYTES = 4, 48


def connections() -> list[TcpConnection]:
    """Every one of this network namespace. Raises OSError as `look_up` does."""
    found = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            for body in _dump_inet(netlink, family, socket.IPPROTO_TCP, _CONNECTED):
                _, _, _, _, sport, dport, source, target, inode = _INET_ANSWER.unpack_from(body)
                local, remote = _end(family, source, sport), _end(family, target, dport)
                id = bytes(body[_ID_AT : _ID_AT + _ID_BYTES])
                found.append(TcpConnection(inode, local, remote, family, id))
    return found


def destroy(connection: TcpConnection) -> None:
    """Reset it: its program gets ECONNABORTED. Needs root."""
    head = struct.pack("=BBBBI", connection.family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
    request = head + connection.id
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_TIMEOUT_S)
        size = _HEADER.size + len(request)
        netlink.send(_HEADER.pack(size, _SOCK_DESTROY, _NLM_F_REQUEST_ACK, 1, 0) + request)
        answer = netlink.recv(_RECEIVE_BYTES)
    error = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if error and error != errno.ENOENT:  # it may have ended by itself
        raise OSError(error, f"a connection cannot be reset: {os.strerror(error)}")


def _end(family: int, address: bytes, port: bytes) -> tuple[str, int]:
    host = _host(family, address).removeprefix("::ffff:")
    return host, int.from_bytes(port, "big")


def _dump_inet(netlink: socket.socket, family: int, protocol: int, states: int) -> Iterator[bytes]:
    request = _INET_REQUEST.pack(family, protocol & 0xFF, 0, 0, states)
    if protocol > 0xFF:
        request += _INET_WIDE_PROTOCOL.pack(8, _INET_REQ_PROTOCOL, protocol)
    return _dump(netlink, request)


def _inet(
    netlink: socket.socket, family: int, protocol: int, name: str, kind: str, wanted: set[int]
) -> Iterator[tuple[int, SocketFound]]:
    for body in _dump_inet(netlink, family, protocol, _ALL_STATES):
        _, state, _, _, sport, dport, source, target, inode = _INET_ANSWER.unpack_from(body)
        if inode not in wanted:
            continue
        named = _TCP_STATES.get(state, "unknown")
        if named == "close":
            named = "unconnected"
        remote = "" if dport == b"\0\0" else _address(family, target, dport)
        yield inode, SocketFound(name, kind, named, _address(family, source, sport), remote)


def _unix(netlink: socket.socket, wanted: set[int]) -> Iterator[tuple[int, SocketFound]]:
    request = _UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _UNIX_SHOW_NAME_AND_PEER)
    names: dict[int, str] = {}
    ours: dict[int, tuple[str, str, int]] = {}
    for body in _dump(netlink, request):
        _, kind, state, inode = _UNIX_ANSWER.unpack_from(body)
        name, peer = "", 0
        for attribute, value in _attributes(body[_UNIX_ANSWER.size :]):
            if attribute == _UNIX_NAME:
                name = _unix_name(value)
            elif attribute == _UNIX_PEER:
                peer = int.from_bytes(value[:4], "little")
        if name:
            names[inode] = name
        if inode in wanted:
            shown = _TCP_STATES.get(state, "unknown")
            ours[inode] = (_KINDS.get(kind, "other"), shown, peer)
    for inode, (kind_name, shown, peer) in ours.items():
        if shown == "close":
            shown = "established" if peer else "unconnected"
        yield (
            inode,
            SocketFound("unix", kind_name, shown, names.get(inode, ""), names.get(peer, ""), peer),
        )


def _dump(netlink: socket.socket, request: bytes) -> Iterator[bytes]:
    """The bodies of the answers to one dump request."""
    size = _HEADER.size + len(request)
    netlink.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + request)
    while True:
        data = netlink.recv(_RECEIVE_BYTES)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, _, _, _ = _HEADER.unpack_from(data, at)
            body = data[at + _HEADER.size : at + length]
            if kind == _NLMSG_DONE:
                return
            if kind == _NLMSG_ERROR:
                error = -struct.unpack_from("=i", body)[0]
                raise OSError(error, "sock_diag refused")
            yield body
            at += max(_HEADER.size, (length + 3) & ~3)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind, data[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)


def _address(family: int, address: bytes, port: bytes) -> str:
    number, host = int.from_bytes(port, "big"), _host(family, address)
    return f"{host}:{number}" if family == socket.AF_INET else f"[{host}]:{number}"


def _host(family: int, address: bytes) -> str:
    return socket.inet_ntop(family, address[:4] if family == socket.AF_INET else address)


def _unix_name(raw: bytes) -> str:
    """A path, or an abstract name, which begins with a zero byte and is written with `@`."""
    if raw.startswith(b"\0"):
        raw = b"@" + raw[1:]
    return raw.rstrip(b"\0").decode("utf-8", "replace")
