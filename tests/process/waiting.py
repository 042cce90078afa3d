"""Waiting in tests: always for an event, always with an end."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 15.0  # far beyond what anything here takes; reached only when it never comes
_LOOKS_S = 40.0  # the same for looks that may each be a command, on a busy machine
_LOOK_AGAIN_S = 0.01

T = TypeVar("T")


class HungUpError(AssertionError):
    """The terminal hung up before what was waited for was seen."""


def until(what: str, look: Callable[[], T | None], timeout_s: float = _LOOKS_S) -> T:
    """The first true thing `look` gives. For what the kernel has no event for."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(_LOOK_AGAIN_S)
    return found


def read_until(master: int, wanted: bytes, timeout_s: float = PATIENCE_S) -> bytes:
    """Output of the terminal up to and including the first read that has `wanted` in it."""
    seen = b""
    while wanted not in seen:
        piece = _read(master, timeout_s, seen)
        if not piece:
            raise HungUpError(f"{wanted!r} was not in {seen!r}")
        seen += piece
    return seen


def read_all(master: int, timeout_s: float = PATIENCE_S) -> bytes:
    """Output of the terminal until it hangs up."""
    seen = b""
    while piece := _read(master, timeout_s, seen):
        seen += piece
    return seen


def _read(master: int, timeout_s: float, seen: bytes) -> bytes:
    poll = select.poll()
    poll.register(master, select.POLLIN)
    if not poll.poll(timeout_s * 1000):
        raise AssertionError(f"nothing more within {timeout_s} s after {seen!r}")
    try:
        return os.read(master, 65536)
    except OSError:  # EIO: no process has the other end open
        return b""


def wait_ended(pidfd: int, timeout_s: float = PATIENCE_S) -> None:
    """Until the process has ended; it is not reaped."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(timeout_s * 1000), f"the process had not ended within {timeout_s} s"


def wait_child(pid: int, timeout_s: float = PATIENCE_S) -> int:
    """The process's newest child, once it has one. The kernel has no event for it to us: looked
    at until it is so."""
    deadline = time.monotonic() + timeout_s
    while not (found := children_of(pid)):
        assert time.monotonic() < deadline, f"{pid} has no child"
        os.sched_yield()
    return found[-1]


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])
