"""What a process uses, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable


def proportional_kb(pids: Iterable[int], kinds: Iterable[str] = ("Anon", "Shmem")) -> float:
    """Proportional set size: memory shared by n processes counts 1/n for each.

    Without pages of files unless asked for: libraries are the same with any number of sessions,
    and their share changes whenever an unrelated process that uses them comes or goes."""
    fields = {f"Pss_{kind}:" for kind in kinds}
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            words = (line.split() for line in file)
            total += sum(int(word[1]) for word in words if word[0] in fields)
    return float(total)


def memfd_kb(pids: Iterable[int]) -> float:
    """Memory in memfds these processes hold open, mapped or not, each counted once."""
    blocks: dict[int, int] = {}
    for pid in pids:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{fd}"
            try:
                if os.readlink(path).startswith("/memfd:"):
                    status = os.stat(path)
                    blocks[status.st_ino] = status.st_blocks
            except OSError:
                continue  # closed meanwhile
    return sum(blocks.values()) / 2  # blocks are of 512 bytes


def cpu_seconds(pids: Iterable[int]) -> float:
    """Time on a CPU so far, all threads, to the nanosecond."""
    nanoseconds = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9
