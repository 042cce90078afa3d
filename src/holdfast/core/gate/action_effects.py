"""What an action did: two looks at a session, before and after, and the difference; then that
against what the action declared.

A look sees what is there, not who did it: what something else changed in the same directories
meanwhile counts as well. Processes are distinguished: one that descends from a process that was
there before belongs to that one. What a look could not see is said in `partial`, and nothing is
concluded from it: a directory counts only where both looks listed all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from holdfast.core.gate.file_globs import Glob
from holdfast.core.shell_changes import changes
from holdfast.model.action import Expected
from holdfast.model.file_marks import FileMark, TreeScan
from holdfast.model.graph import Process
from holdfast.model.limits import ACTION_NAME_BYTES, ACTION_NAMED
from holdfast.model.measured import Deviation, Effects, FileEffects, LeftProcess, PortEffects
from holdfast.model.shell_state import Change, ChangeKind, ShellState

_COMMAND_CHARS = 200
_SAME_START_S = 1.0  # a start is counted from the machine's, which is known to a fraction of this
_ELSEWHERE = (ChangeKind.JOB, ChangeKind.CWD)  # they are said as processes, and as `cwd`


class Look(NamedTuple):
    """A session at one moment."""

    files: TreeScan
    processes: tuple[Process, ...]
    shell: ShellState | None  # None: it did not say
    cwd: str  # of the shell
    partial: tuple[str, ...] = ()  # what could not be seen besides files


class Difference(NamedTuple):
    """Between two looks, all of it."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    left: tuple[Process, ...]
    opened: tuple[int, ...]
    closed: tuple[int, ...]
    shell: tuple[Change, ...]
    cwd: str
    peers: tuple[str, ...]
    partial: tuple[str, ...]


def difference(
    before: Look,
    after: Look,
    own: frozenset[int],
    roots: Sequence[str],
    globs: Sequence[Glob] = (),
) -> Difference:
    """`own`: pids of the session's shell and of what it runs under; `roots`: directories in which
    every file counts; `globs`: files that were declared, which count anywhere."""

    def counting(paths: list[str]) -> tuple[str, ...]:
        return tuple(
            path
            for path in paths
            if _within(path, roots) or any(glob.matches(path) for glob in globs)
        )

    created, changed, deleted = map(counting, _file_changes(before.files, after.files))
    left = _left(before.processes, after.processes, own)
    opened, closed = listening(after.processes), listening(before.processes)
    known = before.shell is not None and after.shell is not None
    unknown = () if known else ("the shell did not say what changed in it",)
    shell = changes(before.shell, after.shell) if after.shell is not None else ()
    return Difference(
        created,
        changed,
        deleted,
        left,
        tuple(sorted(opened - closed)),
        tuple(sorted(closed - opened)),
        tuple(change for change in shell if change.kind not in _ELSEWHERE),
        after.cwd if after.cwd != before.cwd else "",
        tuple(sorted(_peers(after.processes) - _peers(before.processes))),
        tuple(
            dict.fromkeys(
                (
                    *before.files.partial,
                    *after.files.partial,
                    *before.partial,
                    *after.partial,
                    *unknown,
                )
            )
        ),
    )


# -- files ------------------------------------------------------------------------------------


def _file_changes(before: TreeScan, after: TreeScan) -> tuple[list[str], list[str], list[str]]:
    created, changed, deleted = [], [], []
    old, new = before.directories, after.directories
    for directory in sorted(old.keys() | new.keys()):
        was = old.get(directory, {} if _is_new(directory, old, new) else None)
        now = new.get(directory, {} if _is_new(directory, new, old) else None)
        if was is None or now is None:
            continue  # one of the looks did not list it
        for name in sorted(was.keys() | now.keys()):
            path = f"{directory.rstrip('/')}/{name}"
            one, other = was.get(name), now.get(name)
            kept = one is not None and other is not None
            if kept and _is_directory(one) and _is_directory(other):
                continue  # what is in it is compared by itself
            if kept and not _is_directory(one) and not _is_directory(other):
                if one != other:
                    changed.append(path)
                continue
            if other is not None and (shown := _shown(path, other, new)):
                created.append(shown)
            if one is not None and (shown := _shown(path, one, old)):
                deleted.append(shown)
    return created, changed, deleted


def _is_directory(mark: FileMark | None) -> bool:
    return mark is not None and mark.is_directory


def _shown(path: str, mark: FileMark, listed: dict[str, dict[str, FileMark]]) -> str:
    """A directory is named by itself only when nothing in it is."""
    if not mark.is_directory:
        return path
    return "" if listed.get(path) else f"{path}/"


def _is_new(
    directory: str,
    before: dict[str, dict[str, FileMark]],
    after: dict[str, dict[str, FileMark]],
) -> bool:
    """Whether the first look would have found this directory if it had been there then."""
    while directory not in before:
        parent, _, name = directory.rpartition("/")
        parent = parent or "/"
        if parent == directory or parent not in after:
            return False
        if parent in before:
            return name not in before[parent] or not before[parent][name].is_directory
        directory = parent
    return False


def _within(path: str, roots: Sequence[str]) -> bool:
    return any(root == "/" or path.startswith(f"{root}/") for root in roots)


# -- processes and sockets --------------------------------------------------------------------


def _left(
    before: Sequence[Process], after: Sequence[Process], own: frozenset[int]
) -> tuple[Process, ...]:
    known = {process.pid: process.started for process in before}
    by_pid = {process.pid: process for process in after}

    def was_there(process: Process) -> bool:
        return abs(known.get(process.pid, -_SAME_START_S) - process.started) < _SAME_START_S

    def is_anothers(process: Process) -> bool:
        """Whether a process that was there before, and is not the shell, started it."""
        seen = set()
        parent = by_pid.get(process.ppid)
        while parent is not None and parent.pid not in own and parent.pid not in seen:
            if was_there(parent):
                return True
            seen.add(parent.pid)
            parent = by_pid.get(parent.ppid)
        return False

    return tuple(
        process
        for process in after
        if process.state not in "ZX"
        and process.pid not in own
        and not was_there(process)
        and not is_anothers(process)
    )


def listening(processes: Sequence[Process]) -> set[int]:
    return {
        _port(socket.local)
        for process in processes
        for socket in process.sockets
        if socket.kind == "tcp" and socket.state == "listen"
    }


def _peers(processes: Sequence[Process]) -> set[str]:
    return {
        socket.remote
        for process in processes
        for socket in process.sockets
        if socket.kind in ("tcp", "udp") and socket.remote and socket.state != "listen"
    }


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


# -- against what was declared ----------------------------------------------------------------


def missing(
    expect: Expected, globs: Sequence[Glob], found: Difference, after: Look, status: int | None
) -> tuple[Deviation, ...]:
    """Declared, and not found. `globs`: those of `expect.files`, made absolute; `status` None: the
    shell did not say one."""
    return tuple(_missing(expect, globs, found, after, status))


def _missing(
    expect: Expected, globs: Sequence[Glob], found: Difference, after: Look, status: int | None
) -> Iterator[Deviation]:
    if status != expect.status:
        was = "unknown" if status is None else f"{status}"
        yield Deviation("status", f"expected {expect.status}, was {was}")
    touched = (*found.created, *found.changed, *found.deleted)
    for said, glob in zip(expect.files, globs, strict=True):
        if not any(map(glob.matches, touched)) and not any(map(glob.matches, _paths(after.files))):
            yield Deviation("file", said)
    there = listening(after.processes)
    yield from (Deviation("port", str(port)) for port in expect.ports if port not in there)
    left = {process.name for process in found.left}
    yield from (Deviation("process", name) for name in expect.processes if name not in left)
    changed = {change.name for change in found.shell}
    yield from (Deviation("env", name) for name in expect.env if name not in changed)
    if expect.cwd and after.cwd != expect.cwd:
        yield Deviation("cwd", f"expected {expect.cwd}, was {after.cwd}")


def _paths(files: TreeScan) -> Iterator[str]:
    for directory, names in files.directories.items():
        yield from (f"{directory.rstrip('/')}/{name}" for name in names)


def unexpected(expect: Expected, globs: Sequence[Glob], found: Difference) -> tuple[Deviation, ...]:
    """Found, and not declared."""
    return tuple(_unexpected(expect, globs, found))


def _unexpected(expect: Expected, globs: Sequence[Glob], found: Difference) -> Iterator[Deviation]:
    kinds = {
        "file_created": found.created,
        "file_changed": found.changed,
        "file_deleted": found.deleted,
    }
    for kind, paths in kinds.items():
        for path in paths:
            if not any(glob.matches(path) for glob in globs):
                yield Deviation(kind, path)
    declared = _declared(expect, found.left)
    undeclared = [process for process in found.left if process.pid not in declared]
    yield from (Deviation("process", f"{each.name} ({each.pid})") for each in undeclared)
    for port in found.opened:
        if port not in expect.ports:
            yield Deviation("port_opened", str(port))
    yield from (Deviation("port_closed", str(port)) for port in found.closed)
    for change in found.shell:
        if change.name not in expect.env:
            yield Deviation("env", change_text(change))
    if found.cwd and found.cwd != expect.cwd:
        yield Deviation("cwd", found.cwd)
    yield from (Deviation("peer", peer) for peer in sorted(_peers(undeclared) & {*found.peers}))


def _declared(expect: Expected, left: Sequence[Process]) -> set[int]:
    """Those that were declared by name, or listen on a declared port, and the families of these: a
    server has workers, and a shell around it."""
    declared = {
        process.pid
        for process in left
        if process.name in expect.processes or listening([process]) & {*expect.ports}
    }
    grown = True
    while grown:
        family = {
            process.pid
            for process in left
            if process.ppid in declared
            or any(each.pid in declared and each.ppid == process.pid for each in left)
        }
        grown = not family <= declared
        declared |= family
    return declared


# -- as it is shown ---------------------------------------------------------------------------


def change_text(change: Change) -> str:
    return " ".join(part for part in (change.kind, change.name, change.what) if part)


def shown(found: Difference) -> Effects:
    """The difference with so much of each kind as is named, and the rest counted."""
    kinds = (
        *(found.created, found.changed, found.deleted, found.left, found.opened),
        *(found.closed, found.shell, found.peers),
    )
    return Effects(
        FileEffects(*(_cut(paths) for paths in (found.created, found.changed, found.deleted))),
        tuple(
            LeftProcess(each.pid, each.name, " ".join(each.argv)[:_COMMAND_CHARS])
            for each in found.left[:ACTION_NAMED]
        ),
        PortEffects(found.opened[:ACTION_NAMED], found.closed[:ACTION_NAMED]),
        _cut(map(change_text, found.shell)),
        cut(found.cwd),
        _cut(found.peers),
        sum(max(0, len(kind) - ACTION_NAMED) for kind in kinds),
        _cut(found.partial),
    )


def named(deviations: Sequence[Deviation]) -> tuple[Deviation, ...]:
    """So many of them as are named."""
    return tuple(Deviation(each.kind, cut(each.what)) for each in deviations[:ACTION_NAMED])


def _cut(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(cut(text) for text in islice(texts, ACTION_NAMED))


def cut(text: str) -> str:
    """The end of a path distinguishes it from others, so that is what is kept."""
    data = text.encode()
    if len(data) <= ACTION_NAME_BYTES:
        return text
    return "…" + data[-ACTION_NAME_BYTES:].decode(errors="ignore")
