"""One process of a session, as a value of the graph, except for what its sockets lead to."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.blocked_on import UNSEEN, process_wait
from holdfast.adapters.proc.open_files import NOTHING, RawSocket, descriptors
from holdfast.adapters.proc.terminal import Tty
from holdfast.model.graph import Process, Socket

ARGV_MAX_BYTES = 4 << 10  # shown of one command line; a glob over a directory can be megabytes
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_CUT = "…"


class HostFacts(NamedTuple):
    """What is the same for every process of one look."""

    tty: Tty | None  # None when the terminal is gone
    foreground_pgid: int
    booted: float  # seconds since 1970
    namespaces: int  # how many pid namespaces the session's first process is in, from ours


class ObservedProcess(NamedTuple):
    """A process without its sockets, and what is needed to find these."""

    process: Process
    sockets: tuple[RawSocket, ...]
    hidden: bool  # its descriptors are not ours to see
    cut: bool  # it has more descriptors than we were to look at

    def finish(self, sockets: tuple[Socket, ...]) -> Process:
        return self.process.replace(sockets=sockets) if sockets else self.process

    @property
    def descriptor_count(self) -> int:
        return len(self.process.files) + len(self.process.pipes) + len(self.sockets)


def booted_at() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def look_at(pid: int, around: HostFacts, most_descriptors: int) -> ObservedProcess:
    """Raises OSError when the process is gone."""
    stat = procfs.stat_of(pid)
    numbers, uid = _status(pid)
    hidden, opened = False, NOTHING
    try:
        opened = descriptors(pid, most_descriptors)
    except PermissionError:
        hidden = stat.runs  # a zombie has nothing to hide
    except OSError:
        pass
    process = Process(
        pid=pid,
        pid_inside=numbers[min(around.namespaces, len(numbers)) - 1],
        ppid=stat.ppid,
        pgid=stat.pgid,
        sid=stat.sid,
        name=stat.name,
        argv=_argv(pid),
        cwd=_cwd(pid),
        uid=uid,
        state=stat.state,
        started=around.booted + stat.start_ticks / _TICKS_PER_S,
        cpu_seconds=stat.cpu_ticks / _TICKS_PER_S,
        rss_bytes=stat.rss_pages * _PAGE_BYTES,
        threads=stat.threads,
        foreground=stat.pgid == around.foreground_pgid,
        waits_for=_waits_for(pid, stat, around.tty),
        files=opened.files,
        pipes=opened.pipes,
    )
    return ObservedProcess(process, opened.sockets, hidden, opened.cut)


def namespaces_of(pid: int) -> int:
    """How many pid namespaces a process is in, counted from the reader's; 1 when it is gone."""
    try:
        return len(_status(pid)[0])
    except OSError:
        return 1


def _status(pid: int) -> tuple[list[int], int]:
    """The process's numbers, outermost namespace first, and its effective user."""
    numbers, uid = [pid], 0
    for line in procfs.read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            numbers = [int(number) for number in line.split()[1:]] or numbers
        elif line.startswith(b"Uid:"):
            uid = int(line.split()[2])
    return numbers, uid


def _argv(pid: int) -> tuple[str, ...]:
    try:
        raw = procfs.read(f"/proc/{pid}/cmdline")
    except OSError:
        return ()
    text = raw[:ARGV_MAX_BYTES].removesuffix(b"\0").decode("utf-8", "replace")
    if len(raw) > ARGV_MAX_BYTES:
        text += _CUT
    return tuple(text.split("\0")) if raw else ()


def _cwd(pid: int) -> str:
    try:
        return procfs.link(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def _waits_for(pid: int, stat: procfs.Stat, tty: Tty | None) -> str:
    # A stopped task keeps the call it was stopped in; it does not wait in it.
    if tty is None or stat.state not in "SDI":
        return ""
    try:
        on = process_wait(pid, stat.threads, tty).on
    except OSError:
        return ""
    return "" if on == UNSEEN else on
