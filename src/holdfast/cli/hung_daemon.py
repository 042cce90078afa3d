"""A daemon that does not answer (it was stopped, or loops): which process it is, and its end. The
same of its supervisor, which would start the next one.

The kernel says which process has the daemon's lock (host/daemon_lock.py), so nothing is asked of
the daemon itself, and no other process can be taken for it. A supervisor writes its pid into the
lock that it has."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import time

from holdfast.model.errors import HostDown, NotPermitted, TimedOut
from holdfast.model.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FLOCK = struct.Struct("hhqqi4x")
_END_S = 5.0  # for a killed process to be gone
_NEXT_S = 5.0  # for a supervisor to start a daemon: it tries again every 2 s, or more often
_LOOK_S = 0.02


def daemon_pid(home: Home) -> int | None:
    """The daemon of this home, whether it answers or not; None: there is none."""
    try:
        fd = os.open(f"{home.run}/daemon.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK or pid <= 0 else int(pid)


def kill_daemon(home: Home) -> int:
    """Kill it; its supervisor starts another, which carries the sessions on. Returns its pid."""
    pid = daemon_pid(home)
    if pid is None or not _killed("daemon", pid, lambda: daemon_pid(home)):
        raise HostDown("no daemon is running here", hint=f"the host's log is {home.log}")
    return pid


def supervisor_pid(home: Home) -> int | None:
    """The supervisor of this home, whether it runs or is stopped; None: there is none."""
    try:
        fd = os.open(f"{home.run}/supervisor.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None  # nobody has it
    except OSError:
        return int(os.read(fd, 20) or 0) or None
    finally:
        os.close(fd)


def is_supervisor_stopped(home: Home) -> bool:
    """Whether a signal or a debugger stopped it."""
    try:
        with open(f"/proc/{supervisor_pid(home)}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except OSError:
        return False


def starts_no_daemon(home: Home) -> bool:
    """Whether there is a supervisor, and it starts none although none runs."""
    until = time.monotonic() + _NEXT_S
    while supervisor_pid(home) is not None and daemon_pid(home) is None:
        if is_supervisor_stopped(home) or time.monotonic() > until:
            return True
        time.sleep(_LOOK_S)
    return False


def kill_supervisor(home: Home) -> None:
    """A daemon that runs starts another one and leaves; otherwise whoever starts the host does."""
    if (pid := supervisor_pid(home)) is not None:
        _killed("supervisor", pid, lambda: supervisor_pid(home))


def _killed(what: str, pid: int, still: Callable[[], int | None]) -> bool:
    """Whether it was there to be killed. `still`: the pid of the process that is meant, now."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if still() == pid:  # so the handle is that process's and not a successor's
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not select.select([handle], [], [], _END_S)[0]:
            raise TimedOut(f"{what} {pid} was killed and is still there; the kernel waits for it")
    except PermissionError as error:
        raise NotPermitted(
            f"{what} {pid} does not answer, and is not yours to kill", hint="ask its user, or root"
        ) from error
    finally:
        os.close(handle)
    return True
