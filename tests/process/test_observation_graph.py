"""S6: the graph of real programs on a real PTY."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from holdfast.core.activity import judge
from holdfast.model.state import SessionState
from process.observed import BASH, DEADLINE_S, PYTHON, Start, named, only, start

__all__ = ["start"]  # the fixture

WORKING, PROMPT, INPUT = SessionState.WORKING, SessionState.PROMPT, SessionState.INPUT
ENDED = SessionState.ENDED


def test_who_listens_on_a_port_is_answered_with_the_process_and_its_parent(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    serve = 'import socket as s; l = s.create_server(("127.0.0.1", 0)); c = l.accept(); l.accept()'
    session.type(f"{sys.executable} -c '{serve}' &\r")
    graph = session.until_graph(
        lambda graph: any(s.state == "listen" for p in graph.processes for s in p.sockets)
    )
    owner = next(process for process in graph.processes if process.sockets)
    listener = owner.sockets[0]
    assert (listener.family, listener.kind) == ("inet", "tcp")
    assert owner.ppid == session.pid
    assert owner.argv[-1] == serve
    host, port = listener.local.split(":")
    with socket.create_connection((host, int(port))) as peer:
        address = "{}:{}".format(*peer.getsockname())
        graph = session.until_graph(
            lambda graph: any(s.remote == address for p in graph.processes for s in p.sockets)
        )
    connected = next(s for p in graph.processes for s in p.sockets if s.remote)
    assert (connected.state, connected.local) == ("established", listener.local)


def test_sockets_of_every_family_are_named(start: Start, tmp_path: Path) -> None:
    program = f"""
import socket as s, time
held = [s.create_server(("::1", 0), family=s.AF_INET6), s.socket(s.AF_INET, s.SOCK_DGRAM)]
held[1].bind(("127.0.0.1", 0))
held += [s.socket(), *s.socketpair(), s.socket(s.AF_UNIX, s.SOCK_SEQPACKET)]
held[-1].bind("{tmp_path}/door"); held[-1].listen()
held += [s.socket(s.AF_UNIX, s.SOCK_SEQPACKET)]; held[-1].connect("{tmp_path}/door")
held += [held[-2].accept()[0]]
held += [s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)]
print("ready"); time.sleep(99)
"""
    session = start(*PYTHON, program)
    session.until_printed("ready")
    graph = session.graph()
    six, udp, unbound, left, right, door, through, met, netlink = graph.processes[0].sockets
    assert (six.family, six.kind, six.state) == ("inet6", "tcp", "listen")
    assert six.local.startswith("[::1]:")
    assert (udp.kind, udp.state, udp.remote) == ("udp", "unconnected", "")
    assert udp.local.startswith("127.0.0.1:")
    assert (unbound.family, unbound.state, unbound.local) == ("inet", "unconnected", "")
    assert (left.family, left.kind, left.state) == ("unix", "stream", "established")
    assert (left.peer, right.peer) == (right.inode, left.inode)
    assert (door.kind, door.state, door.local) == ("seqpacket", "listen", f"{tmp_path}/door")
    assert (through.state, through.remote) == ("established", f"{tmp_path}/door")
    assert (met.peer, met.local) == (through.inode, f"{tmp_path}/door")
    assert netlink.family == "netlink"
    assert graph.truncated == ""


def test_open_files_carry_mode_offset_and_locks(start: Start, tmp_path: Path) -> None:
    for name in ("flocked", "posix", "gone"):
        (tmp_path / name).write_bytes(b"0123456789")
    program = """
import fcntl, os, time
a = os.open("flocked", os.O_RDWR); os.lseek(a, 7, 0); fcntl.flock(a, fcntl.LOCK_EX)
b = os.open("posix", os.O_RDWR); fcntl.lockf(b, fcntl.LOCK_SH, 4, 2)
c = os.open("gone", os.O_RDONLY); os.unlink("gone"); os.memfd_create("note"); os.open(".", 0)
os.mkfifo("named"); os.open("named", os.O_RDWR)
print("ready"); time.sleep(99)
"""
    session = start(*PYTHON, program)
    session.until_printed("ready")
    process = session.graph().processes[0]
    files = {file.path.rpartition("/")[2]: file for file in process.files}
    assert (files["flocked"].mode, files["flocked"].offset) == ("rw", 7)
    flock, posix = files["flocked"].locks[0], files["posix"].locks[0]
    assert (flock.kind, flock.mode, flock.start, flock.end) == ("flock", "write", 0, None)
    assert (posix.kind, posix.mode, posix.start, posix.end) == ("posix", "read", 2, 5)
    assert (files["gone"].kind, files["gone"].mode) == ("deleted", "r")
    assert any(file.kind == "memfd" for file in process.files)
    assert any(file.kind == "dir" and file.path == str(tmp_path) for file in process.files)
    assert [file.fd for file in process.files if file.kind == "tty"] == [0, 1, 2]
    assert [(p.end, p.path) for p in process.pipes] == [("both", f"{tmp_path}/named")]


def test_the_ends_of_a_pipe_are_the_same_pipe(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.type("yes | cat >/dev/null\r")
    graph = session.until_graph(
        lambda graph: (
            only("bash", "yes", "cat")(graph) and named(graph, "bash").waits_for == "child"
        )
    )
    writes, reads = named(graph, "yes").pipes, named(graph, "cat").pipes
    assert [pipe.end for pipe in writes] == ["write"]
    assert [pipe.end for pipe in reads] == ["read"]
    assert writes[0].inode == reads[0].inode
    assert named(graph, "yes").foreground
    assert not named(graph, "bash").foreground


def test_the_terminal_and_the_lineage_are_the_kernels(start: Start, tmp_path: Path) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.type("cat\r")
    session.until_state(INPUT)
    session.type("half a line")
    graph = session.graph()
    shell, cat = named(graph, "bash"), named(graph, "cat")
    assert graph.root == shell.pid == session.pid
    assert (cat.ppid, cat.sid, cat.pgid) == (shell.pid, shell.pid, graph.terminal.foreground_pgid)
    assert (cat.argv, cat.cwd, cat.uid, cat.state) == (("cat",), str(tmp_path), os.getuid(), "S")
    assert (cat.pid_inside, cat.threads, cat.waits_for) == (cat.pid, 1, "tty")
    assert abs(cat.started - time.time()) < DEADLINE_S
    assert cat.rss_bytes > 0
    terminal = graph.terminal
    assert (terminal.canonical, terminal.echo, terminal.signals) == (True, True, True)
    assert terminal.name == session.place.tty


def test_an_orphan_that_keeps_the_kernel_session_stays_in_the_graph(start: Start) -> None:
    session = start(*BASH, shell=True)
    session.until_state(PROMPT)
    session.type("(sleep 100 &)\r")
    graph = session.until_graph(only("bash", "sleep"))
    assert named(graph, "sleep").ppid != session.pid


def test_processes_that_end_while_looked_at_are_left_out(start: Start) -> None:
    session = start("bash", "-c", "while :; do /bin/true | /bin/true & /bin/true; done")
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        assert session.graph().state is WORKING
        assert judge(session.evidence()) is WORKING
    os.kill(session.pid, signal.SIGKILL)
    session.until_state(ENDED)
