"""Copy-on-write copies of a session's large processes, taken in the freeze of a dump: *ghosts*.

    criu_ghost.c  in CRIU: clones each large process while all stand still
    hold-ghosts   keeps the clones' memory when the clones are gone; one for each dump
    this file     starts that, and has the descriptors by which the memory is read

With them a dump need not copy large memory before the session runs on: it is read afterwards, as it
was. Meanwhile each page that the session writes is copied by the kernel, at most all of them once:
so there are ghosts only where so much memory is available. If the machine runs out of it all the
same, the kernel ends hold-ghosts first; the ghosts are gone then, and the session runs on.

A process that cannot have a ghost is copied by CRIU in the freeze, as without any of this.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import subprocess
from typing import NamedTuple

from holdfast.adapters import compiled
from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import headroom, procfs
from holdfast.model.spec import Place
from holdfast.ports.launch import NOTHING_MORE, CriuExtra

# Anonymous memory of a process that is worth a ghost: CRIU writes less in the time of a clone.
MIN_BYTES = 8 << 20
# Of the memory that is available, one part in so many may be needed for pages that the session
# writes meanwhile.
_SHARE = 2
_MESSAGE_BYTES = 64


class Ghost(NamedTuple):
    """The memory of one process."""

    pid: int  # in the session
    memory: int  # its /proc/PID/mem, open
    pagemap: int  # its /proc/PID/pagemap


class Ghosts:
    """Of one dump. Everything here may block."""

    def __init__(self, place: Place) -> None:
        self.found: list[Ghost] = []
        self._place = place
        self._large: list[LargeProcess] = []
        self._why_not: dict[int, str] = {}  # by pid in the session
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: socket.socket | None = None
        self._shim: socket.socket | None = None
        self._report = -1

    def prepare(self) -> None:
        """Before the freeze."""
        self._large = large_processes(self._place)
        if not self._large:
            return
        try:
            why = self._refusal() or self._start()
        except OSError as error:
            why = f"hold-ghosts cannot be started: {error.strerror or error}"
        if why:
            self._why_not = dict.fromkeys((each.pid for each in self._large), why)

    def _refusal(self) -> str:
        if self.fits():
            return ""
        return (
            f"a copy on write could need {self._needed >> 20} MiB, more than half of the "
            f"{self._available() >> 20} MiB that are available"
        )

    def fits(self) -> bool:
        """Whether there is memory enough to make them, or to keep them."""
        return self._needed * _SHARE <= self._available()

    @property
    def _needed(self) -> int:
        return sum(each.bytes for each in self._large)

    def _available(self) -> int:
        return headroom.available_bytes(self._place.cgroup)

    def _start(self) -> str:
        program = compiled.build(compiled.GHOSTS)
        if isinstance(program, str):
            return f"hold-ghosts cannot be built: {program}"
        self._report = os.memfd_create("holdfast-ghosts", os.MFD_CLOEXEC)
        self._owner, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._shim, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, served:
            self._process = subprocess.Popen(
                [program, str(served.fileno()), str(theirs.fileno())],
                pass_fds=[served.fileno(), theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        return ""

    @property
    def extra(self) -> CriuExtra:
        """What CRIU gets so that it takes them."""
        if self._shim is None or self._process is None:
            return NOTHING_MORE
        wish = f"{{0}}:{{1}}:{MIN_BYTES >> 10}"
        return CriuExtra((self._shim.fileno(), self._report), {"HOLDFAST_GHOST": wish})

    def collect(self) -> None:
        """What was taken; once CRIU is done, or stands still with all of it written."""
        if self._owner is None or self._shim is None:
            return
        self._shim.close()  # CRIU has its own
        self._owner.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while ghost := self._receive():
                self.found.append(ghost)
        with open(self._report, "rb", closefd=False) as file:
            file.seek(0)
            for line in file:
                pid, _, why = line.decode().strip().partition(" ")
                self._why_not[int(pid)] = why
        taken = {ghost.pid for ghost in self.found}
        for each in self._large:
            if each.pid not in taken:
                self._why_not.setdefault(each.pid, "CRIU came by no moment to clone it")

    def _receive(self) -> Ghost | None:
        assert self._owner is not None
        fds = array.array("i")
        data, control, _, _ = self._owner.recvmsg(
            _MESSAGE_BYTES, socket.CMSG_SPACE(2 * fds.itemsize), socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            return None
        fds.frombytes(control[0][2])
        return Ghost(int(data), *fds)

    def copied_at_once(self) -> tuple[str, ...]:
        """Large processes that have no ghost, each with the reason."""
        return tuple(
            f"{each.name} ({each.pid}): {self._why_not[each.pid]}"
            for each in self._large
            if self._why_not.get(each.pid)
        )

    def close(self) -> None:
        """The memory is free again."""
        for ghost in self.found:
            os.close(ghost.memory)
            os.close(ghost.pagemap)
        self.found.clear()
        for sock in (self._owner, self._shim):
            if sock is not None:
                sock.close()  # it sees the end, and ends
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        if self._process is not None:
            self._process.kill()  # it would end by itself, but how soon is not for us to wait
            self._process.wait()
            self._process = None


class LargeProcess(NamedTuple):
    """One that is worth a ghost."""

    pid: int  # in the session
    name: str
    bytes: int  # anonymous


def large_processes(place: Place) -> list[LargeProcess]:
    found = []
    for pid in cgroup.processes(place.cgroup):
        with contextlib.suppress(OSError):  # it is gone
            status = procfs.read(f"/proc/{pid}/status").splitlines()
            facts = dict(line.partition(b":")[::2] for line in status)
            size = int(facts.get(b"RssAnon", b"0").split()[0]) << 10
            if size >= MIN_BYTES:
                name = procfs.stat_of(pid).name
                found.append(LargeProcess(procfs.inner_pid(pid), name, size))
    return found
