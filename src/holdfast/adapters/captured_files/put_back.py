"""Captured files and what is on disk now: how they differ, and making the disk as it was.

What is in the way is not lost: it is moved beside first, to a place that is said. All of it can be
undone, should the restore fail after all. Whether it is to be done at all is decided elsewhere
(core/continuity/changed_files.py), and with whose rights by the caller.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from io import RawIOBase
from typing import NamedTuple

from holdfast.adapters.captured_files import file_copy
from holdfast.adapters.captured_files.capture import KEPT, is_text
from holdfast.model.captured_files import CapturedFile, FileCapture, FileDifference
from holdfast.model.home import is_within

_NEW = ".holdfast-new"  # a file that is being put back, until it has its name
_READ_BYTES = 1 << 20


# -- comparing ------------------------------------------------------------------------------------


def differences(
    captured: FileCapture, data: int, skip: Sequence[str]
) -> tuple[FileDifference, ...]:
    """`data`: the directory with the captured bytes, open. `skip`: directories of ours. Blocking,
    with the rights of the thread that it runs in."""
    found = [each for file in captured.files if (each := _difference(file, data)) is not None]
    known = {file.path for file in captured.files}
    known |= {each.path for each in captured.left_out}
    for root in captured.roots:
        for path, seen in _files_below(root, (*skip, *known)):
            found.append(FileDifference(path, seen.st_ctime_ns, None, size=seen.st_size))
    return tuple(found)


def _difference(file: CapturedFile, data: int) -> FileDifference | None:
    try:
        seen = os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return FileDifference(file.path, _nearest_change(file.path), file, missing=True)
    except PermissionError:
        if file.open:  # as a process may have one open whose name its user cannot reach
            return None
        return FileDifference(file.path, _nearest_change(file.path), file)
    # Not its ctime: a restore that failed has moved it away and back, and so changed that.
    changed = FileDifference(file.path, seen.st_mtime_ns, file, size=seen.st_size)
    if file.link:
        same = stat.S_ISLNK(seen.st_mode) and os.readlink(file.path) == file.link
        return None if same else changed
    if not stat.S_ISREG(seen.st_mode) or seen.st_size != file.size:
        return changed
    untouched = (seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns) == (
        file.inode,
        file.modified_ns,
        file.changed_ns,
    )
    # What is mapped may be written to without a change of its times: its bytes are compared.
    if (untouched and not file.open) or _same_bytes(file, data):
        return None
    return changed


def _same_bytes(file: CapturedFile, data: int) -> bool:
    if not file.data:
        return True  # both are empty
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        seen = os.open(file.path, flags)
    except PermissionError:
        return False  # it was readable
    with (
        open(seen, "rb", buffering=0) as now,
        open(os.open(file.data, flags, dir_fd=data), "rb", buffering=0) as then,
    ):
        return _equal(now, then)


def _equal(now: RawIOBase, then: RawIOBase) -> bool:
    while True:
        piece = now.read(_READ_BYTES) or b""
        if piece != then.read(len(piece) or 1):
            return False
        if not piece:
            return True


def _nearest_change(path: str) -> int:
    """When the directory that it was in last changed, or the nearest above that is there."""
    while path != "/":
        path = os.path.dirname(path)
        with contextlib.suppress(OSError):
            return os.lstat(path).st_mtime_ns
    return 0


def _files_below(root: str, known: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files and links that were not there, without other file systems."""
    without = frozenset(known)
    try:
        own = os.lstat(root)
    except OSError:
        return
    if not stat.S_ISDIR(own.st_mode):
        return  # what a link leads to now was never declared
    device = own.st_dev
    for where, inner, names in os.walk(root):
        inner[:] = [
            name
            for name in inner
            if name != KEPT
            and (path := os.path.join(where, name)) not in without
            and _device(path) == device
        ]
        links = [name for name in inner if os.path.islink(os.path.join(where, name))]
        for name in (*names, *links):
            path = os.path.join(where, name)
            if path in without or not is_text(path):
                continue
            with contextlib.suppress(FileNotFoundError, PermissionError):
                seen = os.lstat(path)
                if stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode):
                    yield path, seen


def _device(path: str) -> int | None:
    try:
        return os.lstat(path).st_dev
    except OSError:  # it went in this moment, or nobody may look
        return None


# -- putting back ---------------------------------------------------------------------------------


class _Done(NamedTuple):
    """One step: the file at `path` was moved to `kept`; without that, it is new there."""

    path: str
    kept: str = ""
    directory: bool = False


class PuttingBack:
    """Of one restore. Blocking, with the rights of the thread that it runs in."""

    def __init__(self, captured: FileCapture, data: int, mark: str) -> None:
        """`data`: the directory with the captured bytes, open. `mark`: names where what is in the
        way is kept."""
        self._captured, self._data, self._mark = captured, data, mark
        self._done: list[_Done] = []
        self._kept: dict[str, str] = {}  # directory or file -> where what it had is kept
        self._times: dict[str, tuple[int, int]] = {}  # of directories, before anything was done

    @property
    def kept_in(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._kept.values()))

    def put_back(self, these: Sequence[FileDifference]) -> None:
        """Raises OSError; then all is undone."""
        modes = {each.path: each.mode for each in self._captured.directories}
        try:
            for each in these:
                self._note_times(os.path.dirname(each.path))
                new = "" if each.file is None else self._written(each.file, modes)
                if not each.missing:
                    kept = self._place_for(each.path)
                    os.rename(each.path, kept)
                    self._done.append(_Done(each.path, kept))
                if new:
                    os.rename(new, each.path)
                    self._done.append(_Done(each.path))
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """As far as that is possible: what was kept stays where it is otherwise."""
        while self._done:
            step = self._done.pop()
            with contextlib.suppress(OSError):
                if step.directory:
                    os.rmdir(step.path)
                elif step.kept:
                    os.rename(step.kept, step.path)
                else:
                    os.unlink(step.path)
        for directory, times in self._times.items():
            with contextlib.suppress(OSError):
                os.utime(directory, ns=times)

    def _note_times(self, directory: str) -> None:
        with contextlib.suppress(OSError):
            found = os.lstat(directory)
            self._times.setdefault(directory, (found.st_atime_ns, found.st_mtime_ns))

    def _written(self, file: CapturedFile, modes: dict[str, int]) -> str:
        """Its bytes under another name beside it."""
        directory = os.path.dirname(file.path)
        self._make(directory, modes)
        new = os.path.join(directory, f"{_NEW}-{self._mark}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        if file.link:
            os.symlink(file.link, new)
            return new
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            target = os.open(new, flags, 0o600)
            try:
                if file.data:
                    self._fill(target, file.data)
                with contextlib.suppress(PermissionError):  # it was not this user's own
                    os.fchown(target, file.uid, file.gid)
                os.fchmod(target, file.mode)
                os.utime(target, ns=(file.modified_ns, file.modified_ns))
            finally:
                os.close(target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        return new

    def _fill(self, target: int, data: str) -> None:
        source = os.open(data, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._data)
        try:
            file_copy.copy(source, target)
        finally:
            os.close(source)

    def _make(self, directory: str, modes: dict[str, int]) -> None:
        if directory == "/" or os.path.isdir(directory):
            return
        self._make(os.path.dirname(directory), modes)
        self._note_times(os.path.dirname(directory))
        os.mkdir(directory, 0o700)
        self._done.append(_Done(directory, directory=True))
        os.chmod(directory, modes.get(directory, 0o700))

    def _place_for(self, path: str) -> str:
        root = next((each for each in self._captured.roots if is_within(path, each)), "")
        if not root:
            self._kept[path] = _unused(f"{path}.kept-{self._mark}")
            return self._kept[path]
        if root not in self._kept:
            self._note_times(root)
            self._directory(os.path.join(root, KEPT))
            place = _unused(os.path.join(root, KEPT, self._mark))
            self._directory(place)
            self._kept[root] = place
        place = os.path.join(self._kept[root], os.path.relpath(path, root))
        above = os.path.dirname(place)
        missing = []
        while not os.path.isdir(above):
            missing.append(above)
            above = os.path.dirname(above)
        for each in reversed(missing):
            self._directory(each)
        return place

    def _directory(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            self._done.append(_Done(path, directory=True))


def _unused(path: str) -> str:
    """That, or with a number behind it."""
    number, chosen = 1, path
    while os.path.lexists(chosen):
        number += 1
        chosen = f"{path}.{number}"
    return chosen
