"""One daemon at a time touches the sessions of a host.

A supervisor that was killed leaves its daemon running for a moment, while the next supervisor
starts another one. That one waits here; a daemon that hangs (it was stopped, or waits for a dead
file server) is killed after a grace. The lock is the kernel's record lock: it ends with the
process, a forked child does not have it, and the kernel says who holds it.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import select
import signal
import struct
import time

log = logging.getLogger(__name__)

GRACE_S = 5.0  # for the daemon before this one to leave by itself
_LOOK_S = 0.02
_FLOCK = struct.Struct("hhqqi4x")


def hold(run: str, grace_s: float = GRACE_S) -> int:
    """Returns once this process has the lock, which it keeps until it exits. Never closed: closing
    any descriptor of the file would give the lock up."""
    fd = os.open(f"{run}/daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + grace_s
    while not _taken(fd):
        if time.monotonic() < deadline:
            time.sleep(_LOOK_S)  # the kernel gives no event for a lock with a deadline
            continue
        _kill(_holder(fd))
        deadline = time.monotonic() + grace_s
    return fd


def _taken(fd: int) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _holder(fd: int) -> int:
    """The process that has it now; 0: nobody."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else pid


def _kill(pid: int) -> None:
    if pid <= 0:
        return
    log.warning("daemon %d does not leave; it is killed, and its sessions are carried on", pid)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], GRACE_S)
    finally:
        os.close(handle)
