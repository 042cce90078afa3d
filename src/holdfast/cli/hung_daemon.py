"""A daemon that does not answer (it was stopped, or loops): which process it is, and its end.

The kernel says which process has the daemon's lock (host/daemon_lock.py), so nothing is asked of
the daemon itself, and no other process can be taken for it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct

from holdfast.model.errors import HostDown, NotPermitted, TimedOut
from holdfast.model.home import Home

_FLOCK = struct.Struct("hhqqi4x")
_END_S = 5.0  # for a killed process to be gone


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
    try:
        handle = os.pidfd_open(pid) if pid is not None else None
    except ProcessLookupError:
        handle = None
    if pid is None or handle is None:
        raise HostDown("no daemon is running here", hint=f"the host's log is {home.log}")
    try:
        if daemon_pid(home) == pid:  # still: the handle is the daemon's and not a successor's
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not select.select([handle], [], [], _END_S)[0]:
            raise TimedOut(f"daemon {pid} was killed and is still there; the kernel waits for it")
    except PermissionError as error:
        raise NotPermitted(
            f"daemon {pid} does not answer, and is not yours to kill", hint="ask its user, or root"
        ) from error
    finally:
        os.close(handle)
    return pid
