"""File locks, from the `lock:` lines of a descriptor's fdinfo.

Preferred over /proc/locks because they name the descriptor that holds the lock, and because they
show the whole of it whatever the pid namespace of the reader.
"""

from __future__ import annotations

from holdfast.model.graph import Lock

_KINDS = {"POSIX": "posix", "FLOCK": "flock", "OFDLCK": "ofd", "LEASE": "lease", "DELEG": "lease"}


def parse_lock(line: str) -> Lock | None:
    """`lock:\\t1: POSIX  ADVISORY  WRITE 4242 00:2f:77 0 EOF`, or None if unknown."""
    words = line.split()
    if len(words) < 8 or words[2] not in _KINDS:
        return None
    start, end = words[-2:]
    return Lock(
        kind=_KINDS[words[2]],
        mode="write" if words[4] == "WRITE" else "read",
        start=int(start),
        end=None if end == "EOF" else int(end),
    )
