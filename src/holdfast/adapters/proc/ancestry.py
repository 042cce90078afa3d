"""Which processes one descends from, while they all live. A process whose parent has ended descends
from whoever took it on: what is asked here is "was it started by that one, and is that one there
still", and a "no" is no proof."""

from __future__ import annotations

from typing import NamedTuple

_GENERATIONS_MAX = 64


class Ancestor(NamedTuple):
    """One that keeps its identity when its number is used again."""

    pid: int
    started: int  # in the kernel's ticks


def process(pid: int) -> Ancestor | None:
    """None: it is gone. `pid` may be a thread's."""
    found = _status(pid)
    return found[0] if found is not None else None


def of(pid: int) -> list[Ancestor]:
    """The process itself, its parent, and so on."""
    found: list[Ancestor] = []
    while pid > 0 and len(found) < _GENERATIONS_MAX and (status := _status(pid)) is not None:
        found.append(status[0])
        pid = status[1]
    return found


def _status(pid: int) -> tuple[Ancestor, int] | None:
    """The process, and its parent's number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Ancestor(pid, int(words[19])), int(words[1])
