"""What a session's processes cost: memory, processes, open descriptors, counted by the kernel."""

from __future__ import annotations

import contextlib
import os

from holdfast.adapters.proc import procfs
from holdfast.model.info import Residency
from holdfast.model.spec import Place

_PROCESSES_MAX = 4096  # looked at; those beyond them are not counted
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def residency(place: Place) -> Residency:
    """Now, without what it uses on disk. Some tens of microseconds for each process."""
    pids = procfs.members(place, _PROCESSES_MAX)
    memory = _of_cgroup(place.cgroup) if place.cgroup else None
    if memory is None:
        memory = sum(_resident(pid) for pid in pids)
    return Residency(memory, len(pids), sum(_descriptors(pid) for pid in pids))


def _of_cgroup(directory: str) -> int | None:
    """None: the memory controller is not on here."""
    try:
        return int(procfs.read(f"{directory}/memory.current"))
    except OSError:
        return None


def _resident(pid: int) -> int:
    try:
        return int(procfs.read(f"/proc/{pid}/statm").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):  # it is gone
        return 0


def _descriptors(pid: int) -> int:
    path = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        # The kernel gives their number as the directory's size, from 6.2 on.
        return os.stat(path).st_size or len(os.listdir(path))
    return 0
