"""The files of a session that a checkpoint keeps: what its processes have open for writing, and the
directories that were declared for it.

Taken twice: once while the session runs, and again while it stands still, when only what changed in
between is copied. All in one go is bounded in bytes and in files; a directory is captured whole or
not at all.

A daemon that runs as root looks on behalf of a session that may not be root's: it follows no links,
and takes what the session's user may read by mode bits. Left out besides, and named: other file
systems mounted below a directory. Not named: pipes, sockets and devices, and names that are not
UTF-8. A file that is only appended to is left alone unless it is in a declared directory: a log
keeps what it has.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.adapters.captured_files import file_copy
from holdfast.adapters.file_tree import ScanReader
from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import procfs
from holdfast.model.captured_files import CapturedDirectory, CapturedFile, FileCapture, LeftOut
from holdfast.model.errors import why_not
from holdfast.model.home import is_within
from holdfast.model.limits import CAPTURE_FILES_MAX
from holdfast.model.spec import Place

KEPT = ".holdfast-kept"  # in a declared directory: what earlier restores moved out of the way
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A file changed twice within one tick of the kernel's clock may show one time for both.
_TICK_NS = 50_000_000
_O_PATH = 0o10000000
# What the kernel or we provide under these is no file that could be put back.
_NO_FILES = ("/proc", "/sys", "/dev")


class _Open(NamedTuple):
    """A file that a process may write to."""

    path: str
    via: str  # below /proc: the file itself, whatever its name leads to by now
    found: os.stat_result


class _Copied(NamedTuple):
    identity: tuple[int, ...]
    data: str


class _TooMuch(Exception):
    """Why a directory is left out."""


class Capture:
    """Of one checkpoint. Blocking."""

    def __init__(
        self, place: Place, roots: Sequence[str], skip: Sequence[str], most: int, into: str = ""
    ) -> None:
        """`skip`: directories of ours. `most`: bytes; 0: nothing is captured. `into`: where the
        bytes go; without it nothing is copied, and it is only found out what would be."""
        self._place, self._roots, self._most, self._into = place, roots, most, into
        self._skip = (*_NO_FILES, *skip)
        self._copied: dict[str, _Copied] = {}
        self._refused: dict[str, str] = {}  # directories that were too large before
        self._numbers = 0

    def take(self) -> FileCapture:
        """As things are now. What an earlier call copied and nobody touched is not copied again."""
        if not self._most:
            return FileCapture()
        self._left = self._most
        self._reader = ScanReader.of(self._place.shell_pid or self._place.pid)
        self._files: dict[str, CapturedFile] = {}
        self._directories: list[CapturedDirectory] = []
        self._left_out: list[LeftOut] = []
        self._open = self._open_files()
        self._inodes = {(each.found.st_dev, each.found.st_ino) for each in self._open.values()}
        for each in self._open.values():
            self._take_open(each)
        roots = tuple(path for path in self._roots if self._take_root(path))
        captured = FileCapture(
            roots,
            tuple(self._files[path] for path in sorted(self._files)),
            tuple(self._directories),
            tuple(self._left_out),
        )
        self._forget_unused()
        return captured

    # -- open files -------------------------------------------------------------------------------

    def _open_files(self) -> dict[str, _Open]:
        found: dict[str, _Open] = {}
        for pid in cgroup.processes(self._place.cgroup):
            with contextlib.suppress(OSError):  # it ends, or is a zombie
                for path, via in (*_written(pid), *_mapped(pid)):
                    if path not in found and (one := self._opened(path, via)) is not None:
                        found[path] = one
        return dict(sorted(found.items()))

    def _opened(self, path: str, via: str) -> _Open | None:
        if not path.startswith("/") or any(is_within(path, each) for each in self._skip):
            return None
        try:
            found = os.stat(via)
            named = os.stat(path, follow_symlinks=False)
        except OSError:
            return None  # it has no name now: CRIU saves it with the memory
        if not stat.S_ISREG(found.st_mode) or _same(found) != _same(named):
            return None  # nor is it one of the host's: of a file system of the session's own
        return _Open(path, via, found)

    def _take_open(self, each: _Open) -> None:
        if not (self._reader.may_read(each.found) and self._reader.may_write(each.found)):
            self._leave_out(each.path, "the session's user may not read and write it")
        elif each.found.st_size > self._left:
            self._leave_out(each.path, _over(each.found.st_size, self._most))
        else:
            try:
                file = os.open(each.via, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    self._add(each.path, os.fstat(file), self._copy(each.path, file), is_open=True)
                finally:
                    os.close(file)
            except OSError as error:
                self._leave_out(each.path, why_not(error))

    # -- declared directories ---------------------------------------------------------------------

    def _take_root(self, root: str) -> bool:
        """Whether it is captured: all of it."""
        before = dict(self._files), list(self._directories), list(self._left_out), self._left
        try:
            if why := self._refused.get(root):
                raise _TooMuch(why)
            self._count = 0
            fd = self._reach(root)
            try:
                self._take_directory(fd, root, os.fstat(fd).st_dev)
            finally:
                os.close(fd)
        except (_TooMuch, OSError) as error:
            self._files, self._directories, self._left_out, self._left = before
            why = why_not(error) if isinstance(error, OSError) else str(error)
            if isinstance(error, _TooMuch):
                self._refused[root] = why
            self._leave_out(root, why)
            return False
        return True

    def _reach(self, path: str) -> int:
        """The directory as the session has it, which must be the host's too."""
        fd = os.open(f"/proc/{self._place.pid}/root/.", _DIRECTORY)
        for name in filter(None, path.split("/")):
            try:
                if not self._reader.may_pass(os.fstat(fd)):
                    raise PermissionError(0, "the session's user may not go there")
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        if _same(os.fstat(fd)) != _same(os.stat(path)):
            os.close(fd)
            raise OSError(0, "the session has another directory there than the host")
        return fd

    def _take_directory(self, fd: int, path: str, device: int) -> None:
        own = os.fstat(fd)
        if not self._reader.may_list(own):
            self._leave_out(path, "the session's user may not list it")
            return
        self._directories.append(CapturedDirectory(path, stat.S_IMODE(own.st_mode)))
        with os.scandir(fd) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            self._count += 1
            if self._count > CAPTURE_FILES_MAX:
                raise _TooMuch(f"there are more than {CAPTURE_FILES_MAX} files in it")
            below = f"{path.rstrip('/')}/{name}"
            if not is_text(name) or name == KEPT or any(is_within(below, s) for s in self._skip):
                continue
            with contextlib.suppress(FileNotFoundError):  # it went in this moment
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    self._take_inner(fd, name, below, device, found)
                elif stat.S_ISLNK(found.st_mode):
                    link = os.readlink(name, dir_fd=fd)
                    if is_text(link):
                        self._add(below, found, "", link=link)
                elif stat.S_ISREG(found.st_mode):
                    self._take_file(fd, name, below)

    def _take_inner(
        self, fd: int, name: str, path: str, device: int, found: os.stat_result
    ) -> None:
        if found.st_dev != device:
            self._leave_out(path, "another file system is mounted there")
            return
        inner = os.open(name, _DIRECTORY, dir_fd=fd)
        try:
            self._take_directory(inner, path, device)
        finally:
            os.close(inner)

    def _take_file(self, directory: int, name: str, path: str) -> None:
        if path in self._files:  # it is open
            return
        file = os.open(name, _FILE, dir_fd=directory)
        try:
            found = os.fstat(file)
            if not self._reader.may_read(found):
                self._leave_out(path, "the session's user may not read it")
                return
            if found.st_size > self._left:
                raise _TooMuch(f"its files are over {_limit(self._most)}")
            self._add(path, found, self._copy(path, file))
        finally:
            os.close(file)

    # -- one file ---------------------------------------------------------------------------------

    def _copy(self, path: str, file: int) -> str:
        """Its bytes; gives the name that they have in the checkpoint."""
        found = os.fstat(file)
        if not self._into or not found.st_size:
            return ""
        before = self._copied.get(path)
        identity = (*_same(found), found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if before is not None and before.identity == identity:
            return before.data
        began = time.time_ns()
        if before is None:
            self._numbers += 1
        data = before.data if before is not None else str(self._numbers)
        target = os.open(
            f"{self._into}/{data}", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        try:
            file_copy.copy(file, target)
        finally:
            os.close(target)
        # What is open for writing may be written to without a change of its times, when mapped.
        settled = began - found.st_ctime_ns > _TICK_NS and _same(found) not in self._inodes
        self._copied[path] = _Copied(identity if settled else (), data)
        return data

    def _add(
        self, path: str, found: os.stat_result, data: str, *, link: str = "", is_open: bool = False
    ) -> None:
        size = found.st_size
        if data:  # it may have grown since
            size = os.stat(f"{self._into}/{data}").st_size
        if not link:
            self._left -= size
        self._files[path] = CapturedFile(
            path,
            stat.S_IMODE(found.st_mode),
            found.st_uid,
            found.st_gid,
            0 if link else size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_ino,
            link,
            data,
            is_open,
        )

    def _leave_out(self, path: str, why: str) -> None:
        self._left_out.append(LeftOut(path, why))

    def _forget_unused(self) -> None:
        """Copies of what is no more."""
        used = {file.data for file in self._files.values()}
        for path, copied in list(self._copied.items()):
            if copied.data not in used:
                del self._copied[path]
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self._into}/{copied.data}")


def is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _same(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _limit(most: int) -> str:
    return f"the limit of {most >> 20} MiB (`capture_max_bytes` in config.toml)"


def _over(size: int, most: int) -> str:
    return f"it has {size >> 20} MiB; with it the files are over {_limit(most)}"


def _written(pid: int) -> Iterator[tuple[str, str]]:
    """Files that the process has open for writing, other than only to append."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError, ValueError):
            via = f"/proc/{pid}/fd/{fd}"
            path = procfs.link(via)
            if path.startswith("/") and _is_written(pid, fd):
                yield path, via


def _is_written(pid: int, fd: str) -> bool:
    for line in procfs.read(f"/proc/{pid}/fdinfo/{fd}").splitlines():
        if line.startswith(b"flags:"):
            flags = int(line[6:], 8)
            access = flags & os.O_ACCMODE
            if flags & _O_PATH or access == os.O_RDONLY:
                return False
            return not (access == os.O_WRONLY and flags & os.O_APPEND)
    return False


def _mapped(pid: int) -> Iterator[tuple[str, str]]:
    """Files that are mapped to be written, also when their descriptor is closed."""
    with open(f"/proc/{pid}/maps", "rb", buffering=0) as maps:
        text = maps.readall()
    for line in text.decode("utf-8", "replace").splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and "w" in words[1] and "s" in words[1] and words[5].startswith("/"):
            start, _, end = words[0].partition("-")
            yield words[5], f"/proc/{pid}/map_files/{int(start, 16):x}-{int(end, 16):x}"
