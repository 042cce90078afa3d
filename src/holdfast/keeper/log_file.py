"""host.log, bounded: supervisor, daemon and relay share one descriptor for it, their stderr.

All of them append, so the file can be copied and cut to nothing under them: nobody has to reopen
it or be told. Lines written between the copy and the cut are lost; there are few.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat

MAX_BYTES = 4 << 20  # then it becomes host.log.1, which replaces the one before
_STDERR = 2


def bound(fd: int = _STDERR, max_bytes: int = MAX_BYTES) -> None:
    """Start the log again if it has grown too large. Does nothing where stderr is no file."""
    with contextlib.suppress(OSError):
        facts = os.fstat(fd)
        if facts.st_size > max_bytes and stat.S_ISREG(facts.st_mode):
            _start_again(os.readlink(f"/proc/self/fd/{fd}"), facts, max_bytes)


def _start_again(path: str, facts: os.stat_result, max_bytes: int) -> None:
    with open(path, "r+b") as log:
        if not os.path.samestat(os.fstat(log.fileno()), facts):
            return  # moved away by somebody else, who then takes care of it
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)  # another process of ours may be at it
        size = os.fstat(log.fileno()).st_size
        if size <= max_bytes:
            return
        try:
            _keep(log.fileno(), path, size, max_bytes)
        finally:  # also on a full disk: the log must not be what fills it
            os.ftruncate(log.fileno(), 0)


def _keep(log: int, path: str, size: int, max_bytes: int) -> None:
    """The last part of it, if more was written before anybody looked."""
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as kept, open(log, "rb", closefd=False) as old:
            old.seek(max(0, size - 2 * max_bytes))
            shutil.copyfileobj(old, kept)
        os.replace(fresh, f"{path}.1")
    except OSError:
        os.unlink(fresh)
        raise
