"""One control group for each command that leaves something behind: so every process of a contained
session belongs, for as long as it lives, to the command and the actors that started it.

The shell is in the group of the command that it is about to run, `actor-A/with-B/run-N` below the
session's: the kernel itself remembers the actors, and N leads to the command in a table here. To
move the shell takes some 10 ms when the machine is idle, so it is moved only when it must be: when
others write, or when a look at the prompt finds something besides the shell in its group. A command
that left nothing leaves its group to the next one. Groups that are empty are removed.

A line that was typed ahead begins before anybody can look; then two commands share a group, and the
table says so: `commands_of` gives the first and the last that it may be.

Deliberately absent: what is done to a group (halt_control.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence

from holdfast.adapters.halt import cgroup
from holdfast.model.record import Record
from holdfast.model.spec import Place

_LOOK_AGAIN_S = 0.02  # what reports a prompt (fish's dd), or is just ending, is gone by then
_SWEPT_AT_ONCE = 16  # groups looked at after one command: each costs 10 us
_KEPT_MAX = 256  # groups in the table; of older ones the actors are known, not the command


class KeptGroup(Record):
    """A group that the shell has left, with something in it."""

    path: str
    first: int  # the commands that may have started it
    last: int


class SavedLeaves(Record):
    """For the next daemon."""

    number: int = 0  # of the latest group
    first: int = 0  # the first command that may have something in the shell's group
    coming: int = 0  # the command that it runs, or runs next
    groups: dict[str, KeptGroup] = {}  # noqa: RUF012 - by number


class CommandLeaves:
    """Of one session."""

    def __init__(self, place: Place, kept: SavedLeaves | None, joined: Callable[[], None]) -> None:
        """An earlier daemon may have moved the shell: the kernel says where it is. `joined`: there
        is a group for these writers, and the shell is not in it yet."""
        self._joined = joined
        kept = kept or SavedLeaves()
        self._directory, self._shell = place.cgroup, place.shell_pid
        self._own_shell = place.shell_pid
        self._loop = asyncio.get_running_loop()
        self._number, self._first, self._coming = kept.number, kept.first, kept.coming
        self._groups = {int(number): group for number, group in kept.groups.items()}
        self._looks: asyncio.TimerHandle | None = None
        self._unsure = False  # whether the shell's group may hold something of an earlier command
        self.writers: tuple[str, ...] = ()
        self._group = 0  # the number of the shell's group
        if place.cgroup:
            self.writers = cgroup.actors_of(place.cgroup, place.shell_pid)
            self._group = cgroup.run_of(place.cgroup, place.shell_pid)
            self._number = max(self._number, self._group)

    def kept(self) -> SavedLeaves | None:
        if not self._directory:
            return None
        groups = {str(number): group for number, group in self._groups.items()}
        return SavedLeaves(self._number, self._first, self._coming, groups)

    def commands_of(self, pid: int) -> tuple[int, int] | None:
        """The first and the last of the commands that may have started this process: mostly one.
        None if that is not known."""
        if not self._directory:
            return None
        return self._commands_of(cgroup.run_of(self._directory, pid))

    def commands_in(self, membership: str) -> tuple[int, int] | None:
        """The same, of a process whose /proc/PID/cgroup has this text."""
        return self._commands_of(cgroup.run_in(membership, self._directory))

    def _commands_of(self, number: int) -> tuple[int, int] | None:
        if number and number == self._group:
            return (min(self._first, self._coming), self._coming) if self._coming else None
        group = self._groups.get(number)
        return (group.first, group.last) if group is not None else None

    # -- where the shell is -----------------------------------------------------------------------

    def prompted(self, coming: int, *, typed_ahead: bool) -> None:
        """The shell is at its prompt; `coming` is its next command."""
        self._coming = coming
        if not self._directory:
            return
        self._sweep()
        if typed_ahead or not self._group:
            return  # what is in the group may be the next command's already
        if self._is_empty():
            self._first = coming
            return
        self._unsure = True
        if self._looks is None:
            self._looks = self._loop.call_later(_LOOK_AGAIN_S, self._look)

    def began(self) -> None:
        """The command that was to come."""
        self._unsure = False  # too late: both are in there

    def move(self, writers: tuple[str, ...], *, running: bool = False) -> None:
        """The shell is in the group of these from here on. `running`: it has begun their command
        already, and what that started may be in the group before."""
        if writers == self.writers and not self._unsure:
            return
        if not self._directory:
            return
        if writers == self.writers:
            self._look()
        else:
            self._enter(writers, running=running)

    def go_home(self) -> None:
        """The shell is in nobody's group; nor is the session's own, which may wait for this one."""
        before = self._group, self.writers
        self.writers, self._group, self._unsure = (), 0, False
        with contextlib.suppress(OSError):  # the tree may be ending
            for pid in {self._own_shell, self._shell}:
                cgroup.enter(self._directory, pid)
            self._left(*before, self._coming)

    def shell_is(self, pid: int) -> None:
        """Command lines are read by this process from here on: by a shell that was started in the
        session's own, or by that one again."""
        self._shell = pid
        if not self._directory:
            return
        before = self._group
        self.writers = cgroup.actors_of(self._directory, pid)
        self._group = cgroup.run_of(self._directory, pid)
        if self._group != before:
            found = self._groups.pop(self._group, None)
            self._first = found.first if found is not None else self._coming

    def close(self) -> None:
        if self._looks is not None:
            self._looks.cancel()

    def _look(self) -> None:
        if self._looks is not None:
            self._looks.cancel()
            self._looks = None
        if not self._unsure:
            return
        self._unsure = False
        if self._is_empty():
            self._first = self._coming
        else:
            self._enter(self.writers, running=False)

    def _is_empty(self) -> bool:
        with contextlib.suppress(OSError):  # the tree may be ending
            return cgroup.is_alone(self._path(self._group, self.writers), self._shell)
        return False

    def _path(self, number: int, writers: Sequence[str]) -> str:
        return cgroup.leaf_path(self._directory, writers[0], writers[1:], number)

    def _enter(self, writers: tuple[str, ...], *, running: bool) -> None:
        before = self._group, self.writers
        last = self._coming if running else max(self._first, self._coming - 1)
        self._number += 1
        self.writers, self._group, self._unsure = writers, self._number, False
        with contextlib.suppress(OSError):  # the tree may be ending
            path = cgroup.leaf(self._directory, writers[0], writers[1:], self._number)
            self._joined()
            cgroup.enter(path, self._shell)
            self._left(*before, last)
        self._first = self._coming

    def _left(self, number: int, writers: tuple[str, ...], last: int) -> None:
        """The shell is in another group now."""
        if not number:
            return
        path = self._path(number, writers)
        if not _removed(path):
            self._groups[number] = KeptGroup(path, min(self._first, last), last)
        while len(self._groups) > _KEPT_MAX:
            del self._groups[next(iter(self._groups))]

    def _sweep(self) -> None:
        """Remove groups that are empty by now, some at a time."""
        for number in list(self._groups)[:_SWEPT_AT_ONCE]:
            group = self._groups.pop(number)
            if not _removed(group.path):
                self._groups[number] = group  # behind the others, which are looked at next time


def _removed(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
