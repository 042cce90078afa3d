"""What files there are under some directories, as a session sees them: names, inodes, times, sizes.

Bounded in files and in time; what was left out is said, and a directory is given only if all of it
was listed. The nearest directories come first, each in the order of its names, so two looks at a
tree that is too large leave out about the same.

A daemon that runs as root looks on behalf of a session that may not be root's. So it looks through
the session's own root directory, follows no links, and lists only what the session's user may
list, by mode bits: a directory that only an access control list opens is left out. Deliberately
absent: the content of files.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.adapters.proc import procfs
from holdfast.model.file_marks import FileMark, TreeScan

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOKS = 256  # files between two looks at the clock
_REASONS_MAX = 20  # directories named that could not be listed


class ScanRoot(NamedTuple):
    """A directory to look at."""

    path: str  # absolute, as the session has it
    deep: bool = True  # also what is below it
    is_cwd: bool = False  # it is the working directory of the session's shell


class ScanReader(NamedTuple):
    """On whose behalf."""

    pid: int  # a process of the session: its root directory and its working directory are used
    uid: int
    groups: frozenset[int]

    @classmethod
    def of(cls, pid: int) -> ScanReader:
        """Raises OSError when the process is gone."""
        ids: dict[str, list[int]] = {}
        for line in procfs.read(f"/proc/{pid}/status").decode().splitlines():
            name, _, rest = line.partition(":")
            if name in ("Uid", "Gid", "Groups"):
                ids[name] = [int(word) for word in rest.split()]
        return cls(pid, ids["Uid"][1], frozenset((ids["Gid"][1], *ids["Groups"])))

    def may_list(self, found: os.stat_result) -> bool:
        return self._has(found, 5)

    def may_read(self, found: os.stat_result) -> bool:
        return self._has(found, 4)

    def may_write(self, found: os.stat_result) -> bool:
        return self._has(found, 2)

    def may_pass(self, found: os.stat_result) -> bool:
        return self._has(found, 1)

    def _has(self, found: os.stat_result, bits: int) -> bool:
        if self.uid == 0:
            return True
        mode = found.st_mode
        if found.st_uid == self.uid:
            mode >>= 6
        elif found.st_gid in self.groups:
            mode >>= 3
        return mode & bits == bits


class _Directory(NamedTuple):
    path: str  # as the session has it
    opened: str  # as we reach it
    identity: tuple[int, int] | None  # device and inode that must be found there
    deep: bool


def scan(
    roots: Sequence[ScanRoot], reader: ScanReader, skip: Sequence[str], *, most: int, seconds: float
) -> TreeScan:
    """`skip`: directories of ours that are not looked into, wherever they are; `most`: files."""
    looking = _Looking(reader, skip, most, seconds)
    for root in roots:
        looking.begin_at(root)
    looking.run()
    return TreeScan(looking.directories, tuple(dict.fromkeys(looking.partial)))


class _Looking:
    """One scan."""

    def __init__(self, reader: ScanReader, skip: Sequence[str], most: int, seconds: float) -> None:
        self.directories: dict[str, dict[str, FileMark]] = {}
        self.partial: list[str] = []
        self._reader, self._most, self._left, self._seconds = reader, most, most, seconds
        self._until = time.monotonic() + seconds
        self._todo: deque[_Directory] = deque()
        self._seen: set[tuple[int, int]] = set()
        for path in skip:
            with contextlib.suppress(OSError):
                found = os.stat(path)
                self._seen.add((found.st_dev, found.st_ino))

    def begin_at(self, root: ScanRoot) -> None:
        if root.is_cwd:
            opened = f"/proc/{self._reader.pid}/cwd/."
            self._todo.append(_Directory(root.path, opened, None, root.deep))
            return
        try:
            found, opened = self._reached(root.path)
        except FileNotFoundError:
            self.directories.setdefault(root.path, {})  # then nothing is in it
            return
        except OSError as error:
            self.partial.append(f"{root.path}: {error.strerror or error}")
            return
        identity = (found.st_dev, found.st_ino)
        self._todo.append(_Directory(root.path, opened, identity, root.deep))

    def _reached(self, path: str) -> tuple[os.stat_result, str]:
        """A directory by its name, if the session's user can get there."""
        at = f"/proc/{self._reader.pid}/root/."
        found = os.stat(at)
        for name in os.path.realpath(path).split("/")[1:]:
            if not self._reader.may_pass(found):
                raise PermissionError(0, "the session's user may not go there")
            at = f"{at}/{name}"
            found = os.lstat(at)
            if stat.S_ISLNK(found.st_mode):
                raise OSError(0, "the session sees a link there that we do not")
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(0, "not a directory")
        return found, at

    def run(self) -> None:
        while self._todo:
            directory = self._todo.popleft()
            try:
                marks, inner = self._listed(directory)
            except _Enough as enough:
                self.partial.append(str(enough))
                return
            except FileNotFoundError:
                continue  # it went in this moment: its parent's next listing says so
            except OSError as error:
                if len(self.partial) < _REASONS_MAX:
                    self.partial.append(f"{directory.path}: {error.strerror or error}")
                continue
            if marks is not None:
                self.directories[directory.path] = marks
                self._todo.extend(inner)

    def _listed(self, directory: _Directory) -> tuple[dict[str, FileMark] | None, list[_Directory]]:
        """None: it was listed already, or is none of the session's."""
        fd = os.open(directory.opened, _FLAGS)
        try:
            own = os.fstat(fd)
            identity = (own.st_dev, own.st_ino)
            if directory.identity not in (None, identity):
                raise OSError(0, "it was replaced while it was looked at")
            if identity in self._seen:
                return None, []
            if not self._reader.may_list(own):
                raise PermissionError(0, "the session's user may not list it")
            self._seen.add(identity)
            marks: dict[str, FileMark] = {}
            inner = []
            for name, found in self._entries(fd):
                is_directory = stat.S_ISDIR(found.st_mode)
                shown = os.fsencode(name).decode(errors="backslashreplace")
                marks[shown] = FileMark(
                    found.st_ino, found.st_ctime_ns, found.st_size, is_directory
                )
                below = f"{directory.path.rstrip('/')}/{shown}"
                there = f"{directory.opened}/{name}"
                # Other file systems are left out: /proc, what is mounted over the network.
                if is_directory and directory.deep and found.st_dev == own.st_dev:
                    inner.append(
                        _Directory(below, there, (found.st_dev, found.st_ino), directory.deep)
                    )
            return marks, sorted(inner)
        finally:
            os.close(fd)

    def _entries(self, fd: int) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(fd) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    raise _Enough(f"more than {self._most} files")
                if self._left % _LOOKS == 0 and time.monotonic() > self._until:
                    raise _Enough(f"looking at files took longer than {self._seconds:g} s")
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)


class _Enough(Exception):
    """A bound is reached."""
