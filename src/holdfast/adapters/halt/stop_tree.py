"""Stopping a process tree by SIGSTOP, where there is no cgroup to freeze, and proving it stopped.

Everything of the session is looked up, stopped from the top down, and looked up again, until two
looks in a row find the same processes, none of them running, and the session's init saw nothing
end in between. The first look alone would prove nothing: what was running then may have forked.

- From the top down, each parent seen to be stopped before its children are: a parent that still
  runs would be told that its child stopped, and a shell would then take its own job for suspended.
  For the same reason the tree is continued from the bottom up: when the shell runs again, its
  children do, and a wait shows only what is so now.
- A process that was stopped before is left alone, by the stop and by the continuing.
- A process is known by number and start time, and signalled through a descriptor of it.
- The init (`place.pid`) is never stopped: it runs nothing of the session's, and without it neither
  an end nor a kill of the session would come through.

Deliberately does not use ptrace, nor process groups: a group of the session may hold others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Sequence
from itertools import count

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.procfs import Stat
from holdfast.ports.halt import Stopped

STOP_TIMEOUT_S = 5.0  # a tree stops within milliseconds; one in a long system call, after it
# A parent that has not stopped by then is in a system call: its children are stopped regardless.
PARENT_STOP_TIMEOUT_S = 0.05
# Quick looks after processes that end as fast as they are found. Each takes 30 us; all together as
# long as a look at everything.
CHASES = 200
_POLL_S = 0.0002

_STILL = "TtZXx"
_STOP_BIT = 1 << (signal.SIGSTOP - 1)
# Where the parent of a vfork waits for its child, by kernel version.
_IN_VFORK = ("kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done")

Found = dict[int, Stat]


class Tree:
    """The processes of one plain session, looked up again and again, and what was done to them."""

    def __init__(self, init: int, session: str = "") -> None:
        self._init = init
        # A host started inside of the session has its mark, and so do its own helpers.
        known_by_mark = session and os.environ.get("HOLDFAST_SESSION") != session
        self._mark = f"HOLDFAST_SESSION={session}".encode() if known_by_mark else b""
        self._unmarked: set[Stopped] = set()
        self._sids: set[int] = set()
        parent = os.getppid()
        self._spared = {0, init, os.getpid(), parent}
        self._spared_sids = {0, os.getsid(0), procfs.sid_of(parent)}
        self.stopped: dict[Stopped, None] = {}  # in the order in which they were stopped
        self.refused: set[Stopped] = set()  # not ours to signal

    def levels(self) -> list[Found]:
        """Everything that belongs to the session but its init: parents before their children."""
        seen = _all_processes()
        born: dict[int, list[int]] = {}
        for pid, stat in seen.items():
            born.setdefault(stat.ppid, []).append(pid)
        taken: set[int] = set()
        levels = self._descent(born.get(self._init, []), born, taken)
        self._sids |= {seen[pid].sid for level in levels for pid in level} - self._spared_sids
        strays = [
            pid
            for pid, stat in seen.items()
            if pid not in taken and (stat.sid in self._sids or self._is_marked(pid, stat))
        ]
        below = self._descent(strays, born, taken)
        merged: list[Found] = []
        for depth in range(max(len(levels), len(below))):
            pids = [*levels[depth : depth + 1], *below[depth : depth + 1]]
            merged.append({pid: seen[pid] for level in pids for pid in level})
        return merged

    def _descent(
        self, roots: Sequence[int], born: dict[int, list[int]], taken: set[int]
    ) -> list[list[int]]:
        levels = []
        level = list(roots)
        while level := [pid for pid in level if pid not in taken and pid not in self._spared]:
            taken.update(level)
            levels.append(level)
            level = [child for pid in level for child in born.get(pid, [])]
        return levels

    def _is_marked(self, pid: int, stat: Stat) -> bool:
        who = Stopped(pid, stat.start_ticks)
        if not self._mark or who in self._unmarked:
            return False
        try:
            marked = self._mark in procfs.read(f"/proc/{pid}/environ").split(b"\0")
        except OSError:
            marked = False
        if not marked:
            self._unmarked.add(who)
        return marked

    def turns_of_init(self) -> int | None:
        """How often the init was given the CPU; None while it wants it.

        Whatever ends in the session without a parent there wakes the init. A process that forks
        and ends between two looks, over and over, is seen by neither, but it is seen here."""
        try:
            lines = procfs.read(f"/proc/{self._init}/status").splitlines()
        except OSError:
            return 0  # gone: nothing runs in its care
        fields = dict(line.split(b":", 1) for line in lines if b":" in line)
        if fields[b"State"].split()[0] == b"R":
            return None
        return int(fields[b"voluntary_ctxt_switches"]) + int(fields[b"nonvoluntary_ctxt_switches"])

    def stop(self, levels: Iterable[Found]) -> None:
        """SIGSTOP to all that run, level by level."""
        for level in levels:
            sent = []
            for pid, stat in level.items():
                who = Stopped(pid, stat.start_ticks)
                # Also one that was stopped before: another may have continued it since.
                if not is_still(pid, stat) and self._send_stop(who):
                    sent.append(who)
            _wait_still(sent, PARENT_STOP_TIMEOUT_S)

    def _send_stop(self, who: Stopped) -> bool:
        try:
            if not send(who, signal.SIGSTOP):
                return False
        except PermissionError:
            self.refused.add(who)
            return False
        self.stopped[who] = None
        return True

    def chase(self) -> None:
        """Stop what forks and ends faster than all can be looked up.

        Such a process is the init's child as soon as it has forked away from its own parent; so
        only the init's children are read, and stopped before anything else is asked of them."""
        known = {who.pid for who in (*self.stopped, *self.refused)}
        for _ in range(CHASES):
            try:
                children = procfs.read(f"/proc/{self._init}/task/{self._init}/children").split()
            except OSError:
                return
            for pid in map(int, children):
                if pid not in known and pid not in self._spared:
                    known.add(pid)
                    self._stop_unseen(pid)

    def _stop_unseen(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            try:
                if procfs.task_state(pid, pid) in "TtZX":
                    return  # stopped by its own shell, or ended
                signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
                # Read while the descriptor holds it: the signal arrived, so it is the same.
                stat = procfs.stat_of(pid)
                if stat.ppid == self._init:
                    self.stopped[Stopped(pid, stat.start_ticks)] = None
                else:  # the number was another's by then
                    signal.pidfd_send_signal(pidfd, signal.SIGCONT)
            finally:
                os.close(pidfd)


def stop_tree(tree: Tree, timeout_s: float = STOP_TIMEOUT_S) -> tuple[bool, Found]:
    """Stop it all. Gives whether that is proven, and the processes of the last look."""
    deadline = time.monotonic() + timeout_s
    still_before: set[Stopped] | None = None
    turns_before: int | None = None
    for looks in count(1):
        turns = tree.turns_of_init()
        levels = tree.levels()
        found = {pid: stat for level in levels for pid, stat in level.items()}
        who = {Stopped(pid, stat.start_ticks) for pid, stat in found.items()}
        still = all(is_still(pid, stat) for pid, stat in found.items())
        quiet = turns_before is not None and tree.turns_of_init() == turns_before
        if still and quiet and still_before is not None and who <= still_before:
            return True, found
        if looks > 1 and time.monotonic() >= deadline:  # tried at least once, however short
            break
        if not still:
            tree.stop(levels)
        if looks > 1 and not (still and still_before is None):
            tree.chase()
        still_before, turns_before = (who, turns) if still else (None, None)
    return False, found


def continue_tree(stopped: Sequence[Stopped]) -> bool:
    """SIGCONT to these, children before their parents. False when one may not be signalled.

    Nothing has to be waited for: the kernel ends a stop while the signal is being sent."""
    allowed = True
    for who in bottom_up(stopped):
        try:
            send(who, signal.SIGCONT)
        except PermissionError:
            allowed = False
    return allowed


def bottom_up(processes: Iterable[Stopped]) -> list[Stopped]:
    """The same, every process before its parent; those that are gone are left out."""
    stats: Found = {}
    for who in processes:
        with contextlib.suppress(OSError):
            stat = procfs.stat_of(who.pid)
            if stat.start_ticks == who.start_ticks:
                stats[who.pid] = stat
    depth: dict[int, int] = {}

    def depth_of(pid: int) -> int:
        path = []
        while pid in stats and pid not in depth:
            path.append(pid)
            pid = stats[pid].ppid
        deep = depth.get(pid, 0)
        for each in reversed(path):
            deep += 1
            depth[each] = deep
        return deep

    order = sorted(stats, key=depth_of, reverse=True)
    return [Stopped(pid, stats[pid].start_ticks) for pid in order]


def send(who: Stopped, number: signal.Signals) -> bool:
    """A signal to exactly this process; False when it has ended."""
    try:
        pidfd = os.pidfd_open(who.pid)
    except OSError:  # gone; or a thread by that number, which is not the process either
        return False
    try:
        # With the descriptor open first, a signal that arrives proves that this was its stat.
        if procfs.stat_of(who.pid).start_ticks != who.start_ticks:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except (ProcessLookupError, FileNotFoundError):
        return False
    finally:
        os.close(pidfd)
    return True


def is_still(pid: int, stat: Stat) -> bool:
    """No task of the process can run: stopped, ended, or held by a stopped child."""
    if stat.threads <= 1:
        return stat.state in _STILL or (stat.state == "D" and _held_by_vfork(pid, pid))
    try:
        return all(_task_is_still(pid, tid) for tid in procfs.tasks(pid))
    except OSError:
        return True  # gone


def _task_is_still(pid: int, tid: int) -> bool:
    try:
        state = procfs.task_state(pid, tid)
    except OSError:
        return True
    return state in _STILL or (state == "D" and _held_by_vfork(pid, tid))


def _held_by_vfork(pid: int, tid: int) -> bool:
    """In vfork until its child executes or ends, and with SIGSTOP to take when it returns.

    The kernel shows it as uninterruptible. Its child is one of ours and has to be still as well."""
    try:
        if procfs.read(f"/proc/{pid}/task/{tid}/wchan").decode() not in _IN_VFORK:
            return False
        lines = procfs.read(f"/proc/{pid}/task/{tid}/status").splitlines()
    except OSError:
        return False
    pending = [
        int(line.split()[1], 16) for line in lines if line.startswith((b"SigPnd", b"ShdPnd"))
    ]
    return any(mask & _STOP_BIT for mask in pending)


def _wait_still(processes: Sequence[Stopped], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    left = list(processes)
    while True:
        left = [who for who in left if not _is_still_now(who)]
        if not left or time.monotonic() >= deadline:
            return
        time.sleep(_POLL_S)


def _is_still_now(who: Stopped) -> bool:
    try:
        stat = procfs.stat_of(who.pid)
    except OSError:
        return True
    return stat.start_ticks != who.start_ticks or is_still(who.pid, stat)


def _all_processes() -> Found:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                found[int(name)] = procfs.stat_of(int(name))
    return found
