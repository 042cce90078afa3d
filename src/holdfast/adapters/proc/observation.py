"""The live session seen from outside, through /proc, the PTY master, cgroup and sock_diag.

Reads only, keeps nothing between looks, and never raises for a session that ends meanwhile: what
is gone is left out. What a state *means* is not decided here; the judge is handed in.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import procfs, sock_diag
from holdfast.adapters.proc.foreground import Foreground, front, shell_of
from holdfast.adapters.proc.open_files import RawSocket
from holdfast.adapters.proc.process import (
    HostFacts,
    ObservedProcess,
    booted_at,
    look_at,
    namespaces_of,
)
from holdfast.adapters.proc.terminal import Mode, Tty, identity, mode_of, no_terminal, terminal_of
from holdfast.model.graph import Evidence, Graph, Process, Socket, Terminal
from holdfast.model.spec import Place
from holdfast.model.state import SessionState

# A look must not hold its caller up: at the bounds a graph takes about 0.3 s, and its packed form
# stays near the size of one frame. Beyond them the graph says in `truncated` that there is more.
PROCESSES_MAX = 1024
DESCRIPTORS_MAX = 4096
# Settings that change while the processes are asked mean that a program is just taking over the
# terminal; after this many looks the last one is given, and the next look will be steadier.
STEADY_TRIES = 3

_NO_MODE = Mode(False, False, False, False, 0)
_NO_FRONT = Foreground(False, (), (), False)


class ProcObservation:
    """The Observation port. `judge` gives the graph its state from the same evidence."""

    def __init__(self, judge: Callable[[Evidence], SessionState]) -> None:
        self._judge = judge

    def evidence(
        self, place: Place, master: int, *, shell_is_shell: bool, shell_pid: int = 0
    ) -> Evidence:
        main = procfs.main_pid(place)
        try:
            stat = procfs.stat_of(main)
        except OSError:
            return _ended(main)
        if not stat.runs:
            return _ended(main)
        if shell_pid:
            with contextlib.suppress(OSError):  # it has just ended, and the first one reads again
                stat, main = procfs.stat_of(shell_pid), shell_pid
        shell = shell_of(main, stat.name)
        mode, ahead = _steady(place, master, main)
        return Evidence(
            alive=True,
            frozen=_frozen(place),
            canonical=mode.canonical,
            echo=mode.echo,
            shell_pid=main,
            shell_pgid=stat.pgid,
            foreground_pgid=mode.foreground_pgid,
            foreground_stopped=ahead.stopped,
            tty_waiters=ahead.waiters,
            shell_is_shell=shell_is_shell and shell.is_shell,
            line_editor=mode.line_editor,
            shell_edits_lines=shell.edits_lines,
            shell_reads_bytes=ahead.main_reads_bytes,
            unseen=ahead.unseen,
        )

    def graph(
        self, place: Place, master: int, *, shell_is_shell: bool, shell_pid: int = 0
    ) -> Graph:
        state = self._judge(
            self.evidence(place, master, shell_is_shell=shell_is_shell, shell_pid=shell_pid)
        )
        terminal, tty = _terminal(place, master)
        around = HostFacts(tty, terminal.foreground_pgid, booted_at(), namespaces_of(place.pid))
        pids = procfs.members(place, PROCESSES_MAX + 1)
        if not place.cgroup:
            pids += procfs.same_session(pids, PROCESSES_MAX + 1)
        seen, missing = _look(pids, around)
        processes, complaint = _with_sockets(seen)
        return Graph(
            root=place.pid,
            processes=processes,
            terminal=terminal,
            state=state,
            truncated="; ".join(part for part in (*missing, complaint) if part),
        )


def _ended(main: int) -> Evidence:
    return Evidence(
        alive=False,
        frozen=False,
        canonical=False,
        echo=False,
        shell_pid=main,
        shell_pgid=0,
        foreground_pgid=0,
        foreground_stopped=False,
        tty_waiters=(),
        shell_is_shell=False,
    )


def _steady(place: Place, master: int, main: int) -> tuple[Mode, Foreground]:
    """The terminal's settings and who waits for it, from one moment."""
    try:
        tty, mode = identity(place, master), mode_of(master)
        for _ in range(STEADY_TRIES):
            pids = procfs.members(place, PROCESSES_MAX)
            ahead = front(pids, main, mode.foreground_pgid, tty)
            before, mode = mode, mode_of(master)
            if mode == before:
                break
    except OSError:  # the terminal is gone
        return _NO_MODE, _NO_FRONT
    return mode, ahead


def _frozen(place: Place) -> bool:
    if not place.cgroup:
        return False
    try:
        return cgroup.frozen(place.cgroup)
    except OSError:
        return False


def _terminal(place: Place, master: int) -> tuple[Terminal, Tty | None]:
    try:
        return terminal_of(place, master), identity(place, master)
    except OSError:
        return no_terminal(place), None


def _look(pids: list[int], around: HostFacts) -> tuple[list[ObservedProcess], list[str]]:
    """Every process that is still there, and what could not be shown of them."""
    seen: list[ObservedProcess] = []
    hidden: list[str] = []
    left, cut = DESCRIPTORS_MAX, False
    for pid in sorted(set(pids[:PROCESSES_MAX])):
        try:
            one = look_at(pid, around, left)
        except OSError:
            continue
        seen.append(one)
        left -= one.descriptor_count
        cut = cut or one.cut
        if one.hidden:
            hidden.append(str(pid))
    missing = []
    if len(pids) > PROCESSES_MAX:
        missing.append(f"more than {PROCESSES_MAX} processes")
    if cut:
        missing.append(f"more than {DESCRIPTORS_MAX} descriptors")
    if hidden:
        missing.append(f"no permission to see the descriptors of {', '.join(hidden)}")
    return seen, missing


def _with_sockets(seen: list[ObservedProcess]) -> tuple[tuple[Process, ...], str]:
    """The processes complete, and why sockets were not looked up, if they were not."""
    raw = [socket for one in seen for socket in one.sockets]
    found: dict[int, sock_diag.SocketFound] = {}
    complaint = ""
    if raw:
        try:
            found = sock_diag.look_up(
                {socket.protocol for socket in raw}, {socket.inode for socket in raw}
            )
        except OSError as error:
            complaint = f"sockets not looked up: {error.strerror or error}"
    ours = _network(os.getpid())
    processes = tuple(
        one.finish(tuple(_socket(socket, found, known) for socket in one.sockets))
        for one in seen
        for known in [not complaint and (not one.sockets or _network(one.process.pid) == ours)]
    )
    return processes, complaint


def _network(pid: int) -> int:
    """The network namespace's number; 0 when it may not be asked."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


def _socket(raw: RawSocket, found: dict[int, sock_diag.SocketFound], known: bool) -> Socket:
    """`known`: a socket that is not found is in no table because it was never bound."""
    what = found.get(raw.inode) or sock_diag.by_name(raw.protocol)
    if raw.inode not in found and not known:
        what = what._replace(state="unknown")
    return Socket(raw.fd, raw.inode, *what)
