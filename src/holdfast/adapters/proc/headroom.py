"""How much memory may still be used: by the machine, and within the limits on a session's control
groups. A limit of the older hierarchy (cgroup v1) is not seen here.
"""

from __future__ import annotations

import contextlib
import os

from holdfast.adapters.proc import procfs


def available_bytes(group: str) -> int:
    """For the processes of this control group, without swapping."""
    room = machine_bytes()
    while os.path.exists(f"{group}/cgroup.procs"):
        with contextlib.suppress(OSError, ValueError):  # no limit says "max", or nothing
            limit = int(procfs.read(f"{group}/memory.max"))
            used = int(procfs.read(f"{group}/memory.current"))
            cached = _number(procfs.read(f"{group}/memory.stat"), b"inactive_file ")
            room = min(room, limit - used + cached)
        group = os.path.dirname(group)
    return max(room, 0)


def machine_bytes() -> int:
    """Of the machine as a whole."""
    return _number(procfs.read("/proc/meminfo"), b"MemAvailable:") << 10


def _number(text: bytes, key: bytes) -> int:
    line = next((line for line in text.splitlines() if line.startswith(key)), key + b" 0")
    return int(line[len(key) :].split()[0])
