"""What a checkpoint would meet in each process of a session, besides what the graph says. Reads
only; a process that ends meanwhile is left out."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.terminal import Tty
from holdfast.model.graph import Graph, Process
from holdfast.model.movability import DeletedFile, MoveFacts, NeededFile

_NESTABLE = ("pid", "user", "ipc")
# After unshare(CLONE_NEWPID) a program stays where it is; only its children are in the new one.
_LINKS = {"pid": ("pid", "pid_for_children"), "user": ("user",), "ipc": ("ipc",)}
_MQUEUE_MAGIC = 0x19800202
_STATFS_BYTES = 256  # more than any kernel's struct
_NEEDED_MAX = 2048  # files; a session of hundreds of programs maps a few hundred
_ELF_HEAD_BYTES = 64 << 10  # the notes are near the start


def gather(graph: Graph, root: int, tty: Tty | None) -> tuple[MoveFacts, ...]:
    """`root`: the session's first process. `tty`: the session's own terminal."""
    own = {kind: _namespaces(root, kind) for kind in _NESTABLE}
    found = []
    for process in graph.processes:
        with contextlib.suppress(OSError):
            found.append(_of(process, own, tty))
    return tuple(found)


def _of(process: Process, own: dict[str, set[int]], tty: Tty | None) -> MoveFacts:
    pid = process.pid
    status = _status(pid)
    special = list(_special_files(process))
    return MoveFacts(
        process=process,
        tracer=int(status.get("TracerPid", "0")),
        nested=tuple(kind for kind in _NESTABLE if not _namespaces(pid, kind) <= own[kind]),
        inner_terminal=tty is not None and _terminal(pid) not in (0, tty.number),
        maps_io_uring=b"anon_inode:[io_uring]" in _maps(pid),
        queues=tuple(each for each in special if isinstance(each, str)),
        deleted=tuple(each for each in special if isinstance(each, DeletedFile)),
        protocols={str(fd): name for fd, name in _odd_sockets(process)},
        anonymous_bytes=_kib(status, "RssAnon") + _kib(status, "RssShmem"),
    )


def _maps(pid: int) -> bytes:
    """Each read ends with a whole line, and so before the end of its page."""
    with open(f"/proc/{pid}/maps", "rb", buffering=0) as maps:
        return maps.readall()


def _status(pid: int) -> dict[str, str]:
    lines = procfs.read(f"/proc/{pid}/status").decode("utf-8", "replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _kib(status: dict[str, str], name: str) -> int:
    return int(status.get(name, "0").split()[0]) << 10


def _namespaces(pid: int, kind: str) -> set[int]:
    found = set()
    for link in _LINKS[kind]:
        with contextlib.suppress(OSError):
            found.add(os.stat(f"/proc/{pid}/ns/{link}").st_ino)
    return found


def _terminal(pid: int) -> int:
    """The device of the controlling terminal; 0: it has none."""
    number = int(procfs.read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()[4])
    minor = (number & 0xFF) | ((number >> 12) & 0xFFF00)  # as the kernel packs it there
    return os.makedev((number >> 8) & 0xFFF, minor) if number else 0


def _special_files(process: Process) -> Iterator[DeletedFile | str]:
    for file in process.files:
        path = f"/proc/{process.pid}/fd/{file.fd}"
        with contextlib.suppress(OSError):
            if file.kind == "deleted":
                # As CRIU counts: what it has on disk, and not how far it reaches.
                yield DeletedFile(file.fd, file.path, os.stat(path).st_blocks * 512)
            elif file.kind == "file" and _is_queue(path):
                yield f"fd {file.fd}: message queue {file.path}"


def _is_queue(path: str) -> bool:
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if ctypes.CDLL(None, use_errno=True).statfs(path.encode(), buffer) != 0:
        return False
    return ctypes.c_long.from_buffer(buffer).value == _MQUEUE_MAGIC


def _odd_sockets(process: Process) -> Iterator[tuple[int, str]]:
    for socket in process.sockets:
        if socket.family == "other":
            with contextlib.suppress(OSError):
                name = os.getxattr(f"/proc/{process.pid}/fd/{socket.fd}", "system.sockprotoname")
                yield socket.fd, name.rstrip(b"\0").decode("utf-8", "replace")


# -- programs and libraries in use ----------------------------------------------------------------


def needed_files(pids: Iterable[int]) -> tuple[NeededFile, ...]:
    """Every file that is mapped to be executed, as the process sees it."""
    found: dict[str, NeededFile] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for path in _mapped(pid) - found.keys():
                if (file := file_at(f"/proc/{pid}/root", path)) is not None:
                    found[path] = file
        if len(found) >= _NEEDED_MAX:
            break
    return tuple(found[path] for path in sorted(found)[:_NEEDED_MAX])


def _mapped(pid: int) -> set[str]:
    paths = set()
    for line in _maps(pid).decode("utf-8", "replace").splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
            paths.add(words[5])
    return {path for path in paths if not path.endswith(" (deleted)")}


def file_at(root: str, path: str) -> NeededFile | None:
    """What is at this path below a root; None when there is no such file."""
    try:
        with open(os.open(root + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            head = file.read(_ELF_HEAD_BYTES)
            return NeededFile(path, os.fstat(file.fileno()).st_size, _build_id(head))
    except (OSError, ValueError):  # there is no path with a zero byte either
        return None


def _build_id(head: bytes) -> str:
    """From the GNU note, whose name stands before it: 4 bytes each of name size, size and type."""
    if not head.startswith(b"\x7fELF"):
        return ""
    at = head.find(b"\x03\0\0\0GNU\0")
    if at < 8:
        return ""
    size = int.from_bytes(head[at - 4 : at], "little")
    return head[at + 8 : at + 8 + size].hex() if 8 <= size <= 64 else ""
