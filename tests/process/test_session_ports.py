"""S6: which TCP ports a session's own processes listen on, and at which address nobody else is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.adapters.proc import listening_ports, port_dial
from holdfast.model.errors import PortNotListening
from holdfast.model.spec import Place
from process.forwarding import SERVERS

_MPTCP = 262


@contextlib.contextmanager
def listening(code: str) -> Iterator[tuple[Place, int]]:
    """A process of its own that listens as this code says, and is all of a session."""
    program = f"import socket, sys\n{code}\nprint(s.getsockname()[1], flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield Place(process.pid, 0, "", ""), port
        finally:
            process.kill()


def server(address: str, port: int = 0, more: str = "") -> str:
    family = "AF_INET6" if ":" in address else "AF_INET"
    return f"s = socket.socket(socket.{family}); {more}\ns.bind(({address!r}, {port})); s.listen()"


@pytest.mark.parametrize(
    ("bound", "dialled"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("0.0.0.0", "127.0.0.1"),
        ("::1", "::1"),
        ("::", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_listening_socket_is_found_and_dialled(bound: str, dialled: str) -> None:
    with listening(server(bound)) as (place, port):
        way = listening_ports.find(place, port)
        assert (way.port.pid, way.port.number, way.address) == (place.pid, port, dialled)
        assert way.port.process.startswith("python")
        asyncio.run(port_dial.dial(way)).close()


def test_a_socket_that_does_not_listen_is_no_port() -> None:
    with (
        listening("s = socket.socket(); s.bind(('127.0.0.1', 0))") as (place, port),
        pytest.raises(PortNotListening, match="nothing in it listens on any"),
    ):
        listening_ports.find(place, port)


def test_a_port_of_another_process_is_refused_and_those_of_the_session_are_named() -> None:
    with (
        listening(server("127.0.0.1")) as (place, port),
        socket.create_server(("127.0.0.1", 0)) as stranger,
        pytest.raises(PortNotListening, match=rf"it listens on {port} \(python"),
    ):
        listening_ports.find(place, stranger.getsockname()[1])


def test_a_child_of_the_session_is_of_it() -> None:
    child = f"import subprocess; subprocess.Popen([sys.executable, {SERVERS!r}, 'echo'])"
    with subprocess.Popen(
        [sys.executable, "-c", f"import sys\n{child}.wait()"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1])
        way = listening_ports.find(Place(process.pid, 0, "", ""), port)
        assert way.port.pid != process.pid
        os.kill(way.port.pid, 9)
        process.wait(20)
    assert not listening_ports.still(way.port)


def test_an_address_that_a_stranger_shares_is_not_used() -> None:
    """Both listen on one port (SO_REUSEPORT): the kernel would lead us to either."""
    reuse = "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)"
    with (
        listening(server("127.0.0.1", more=reuse)) as (place, port),
        socket.socket() as stranger,
    ):
        listening_ports.find(place, port)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        with pytest.raises(PortNotListening):
            listening_ports.find(place, port)


def test_an_address_where_a_stranger_is_met_first_is_not_used() -> None:
    """The session listens everywhere, a stranger at the nearer address, which comes before."""
    reuse = "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)"
    with (
        listening(server("0.0.0.0", more=reuse)) as (place, port),
        socket.socket() as stranger,
    ):
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        with pytest.raises(PortNotListening):
            listening_ports.find(place, port)


def test_a_stranger_at_another_address_of_the_same_port_is_no_obstacle() -> None:
    with listening(server("127.0.0.1")) as (place, port), socket.socket() as stranger:
        stranger.bind(("127.0.0.2", port))
        stranger.listen()
        assert listening_ports.find(place, port).address == "127.0.0.1"


def test_a_program_that_listens_with_mptcp_is_found() -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP).close()
    except OSError:
        pytest.skip("this kernel has no MPTCP")
    code = (
        f"s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, {_MPTCP})\n"
        "s.bind(('0.0.0.0', 0)); s.listen()"
    )
    with listening(code) as (place, port):
        way = listening_ports.find(place, port)
        asyncio.run(port_dial.dial(way)).close()


def test_a_listener_that_went_after_the_look_is_not_dialled_as_another() -> None:
    """Whoever has its port by then is somebody else."""
    with listening(server("127.0.0.1")) as (place, port):
        way = listening_ports.find(place, port)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        with pytest.raises(PortNotListening, match="has just gone"):
            asyncio.run(port_dial.dial(way))


def test_a_port_in_a_network_of_the_sessions_own_is_dialled_there() -> None:
    command = ["unshare", "--net", *(sys.executable, "-u", SERVERS, "echo", "inside:127.0.0.1")]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.skip("no network namespace can be made here")
        try:
            port = int(line.split()[1])
            way = listening_ports.find(Place(process.pid, 0, "", ""), port)
            assert way.port.own_network
            asyncio.run(_talks(way))
        finally:
            process.kill()


async def _talks(way: listening_ports.PortRoute) -> None:
    sock = await port_dial.dial(way)
    loop = asyncio.get_running_loop()
    with sock, socket.socket() as outside:
        await loop.sock_sendall(sock, b"from outside")
        assert await asyncio.wait_for(loop.sock_recv(sock, 100), 20) == b"from outside"
        outside.setblocking(False)
        with pytest.raises(ConnectionRefusedError):  # here nobody listens on it
            await loop.sock_connect(outside, ("127.0.0.1", way.port.number))
