"""The true end of a child.

The first process of a session is a tiny init which, being pid 1 of a pid namespace, cannot die by
a signal itself; the wait status would only say 128+9. So it renames itself to `hold:sig9` or
`hold:exit` before it exits, and we read a zombie's name before reaping it: no descriptor needed,
nothing a checkpoint would have to save, and only the init itself can set it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.keeper.custody import Status


def ended_children() -> Iterator[tuple[int, Status]]:
    """Reap every child that has ended, each with its true status."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        name = _name(found.si_pid)
        _, wait_status = os.waitpid(found.si_pid, 0)
        yield found.si_pid, _status(name, wait_status)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _status(name: str, wait_status: int) -> Status:
    if name.startswith("hold:sig") and name[8:].isdecimal():
        return {"signal": int(name[8:])}
    if os.WIFSIGNALED(wait_status):
        return {"signal": os.WTERMSIG(wait_status)}
    return {"code": os.WEXITSTATUS(wait_status)}
