"""Who in the foreground waits for the terminal: the part of the evidence that costs.

Cheap by asking in order of price: group and kernel session of every process (two system calls,
under a microsecond), and only of those in front their `stat` and the call they are in.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.blocked_on import UNSEEN, process_wait
from holdfast.adapters.proc.terminal import Tty

ANCESTORS_MAX = 32  # steps up from a process to one in front; su and friends are one or two

# Executables that are shells, by name. The ones that leave editing to the kernel are known by it;
# "sh" is the file itself only where it is such a one.
_KERNEL_EDITED = frozenset(("dash", "posh", "sh"))
_OWN_EDITORS = frozenset(
    ("ash", "bash", "busybox", "csh", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh")
).union(("osh", "pwsh", "rbash", "tcsh", "xonsh", "yash", "zsh"))
_SHELLS = _KERNEL_EDITED | _OWN_EDITORS
_VERSION = re.compile(r"[-.\d]+$")  # zsh-5.9, bash-5.2


class Foreground(NamedTuple):
    stopped: bool
    waiters: tuple[int, ...]
    unseen: tuple[int, ...]
    main_reads_bytes: bool


class Shell(NamedTuple):
    is_shell: bool
    edits_lines: bool


def front(pids: list[int], main: int, foreground_pgid: int, tty: Tty) -> Foreground:
    """Looks at the foreground group, and at what left its kernel session below it (su -c)."""
    known = frozenset(pids)
    waiters, unseen, states = [], [], []
    reads_bytes = False
    for pid in pids:
        try:
            in_front = os.getpgid(pid) == foreground_pgid
            if not in_front and not _counts_too(pid, foreground_pgid, tty, known):
                continue
            stat = procfs.stat_of(pid)
            if in_front and stat.runs:
                states.append(stat.state)
            if stat.state in "Tt" or not stat.runs:
                continue  # it keeps the call it was stopped in, and waits for a signal
            wait = process_wait(pid, stat.threads, tty)
        except OSError:  # it went away
            continue
        if wait.on == "tty":
            waiters.append(pid)
            reads_bytes = reads_bytes or (pid == main and wait.asked == 1)
        elif wait.on == UNSEEN and stat.state == "S":
            unseen.append(pid)
    stopped = bool(states) and all(state == "T" for state in states)
    return Foreground(stopped, tuple(waiters), tuple(unseen), reads_bytes)


def _counts_too(pid: int, foreground_pgid: int, tty: Tty, known: frozenset[int]) -> bool:
    """Whether a process outside the foreground group may still be the one that asks.

    In the terminal's own kernel session it may not: it is a background job, and reading would
    stop it. Outside of it (setsid) the kernel lets it read; it speaks for the foreground if an
    ancestor is there, else it is a daemon that happens to watch the terminal.
    """
    if not foreground_pgid or not tty.sid:
        return True  # nobody is in front: job control decides nothing
    if os.getsid(pid) == tty.sid:
        return False
    for _ in range(ANCESTORS_MAX):
        pid = procfs.stat_of(pid).ppid
        if pid not in known:
            return False
        if os.getpgid(pid) == foreground_pgid:
            return True
    return False


def shell_of(pid: int, comm: str) -> Shell:
    """What the main process runs now, which after an `exec` is not what it was started as."""
    try:
        name = _executable(pid)
    except OSError:
        name = comm
    if name not in _SHELLS:
        name = _VERSION.sub("", name)
    return Shell(name in _SHELLS, name not in _KERNEL_EDITED)


def program_of(pid: int) -> str:
    """The name of the file that a process runs; of one that may not be looked into, its own name.
    Raises OSError when it is gone."""
    try:
        return _executable(pid)
    except PermissionError:
        return procfs.stat_of(pid).name


def _executable(pid: int) -> str:
    return procfs.link(f"/proc/{pid}/exe").removesuffix(" (deleted)").rpartition("/")[2]
