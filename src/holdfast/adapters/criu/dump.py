"""Dumping the tree of a live session, driven from the daemon's loop.

CRIU itself is started by the launcher, in a mount namespace of its own. If this process dies in the
middle, CRIU sees the end of its socket when it asks whether to go on, and lets the tree run.

Deliberately knows nothing of terminals, journals and where images are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable

from holdfast.adapters import pty
from holdfast.adapters.criu import mount_marks, own_filter, swrk
from holdfast.adapters.criu.protobuf import decode, read_image
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.syscalls import pidfd_getfd
from holdfast.adapters.proc import foreign_connections, procfs
from holdfast.model.errors import CheckpointFailed
from holdfast.model.limits import DELETED_FILE_MAX_BYTES
from holdfast.model.record import Record
from holdfast.model.restore import DumpedTree
from holdfast.model.spec import Place

LOG = "dump.log"
# For the whole dump: a memory of gigabytes takes seconds. Past it CRIU is killed, which may take
# the session with it: only for a CRIU that hangs.
TIMEOUT_S = 300.0
_TIOCGDEV = 0x80045432
_FROZEN_US = 2  # in `dump_stats_entry`
FREEZE_TIMEOUT_S = 10  # for CRIU to stop all tasks; one that is deep in the kernel may not stop


class DumpTimes(Record):
    """What a dump took, by CRIU's own clock."""

    frozen_ms: float


async def dump(
    start: Callable[[int], Awaitable[int]],
    place: Place,
    tree: DumpedTree,
    images: int,
    frozen: Callable[[], Awaitable[None]],
    *,
    leave_running: bool,
) -> DumpTimes:
    """Into the directory that is open as `images`. `start`: CRIU with this end of its socket; gives
    its pidfd. `frozen`: called while everything stands still and all is written; if it raises, the
    tree runs on. Without `leave_running` nothing of the tree is left afterwards.
    Raises CheckpointFailed; then the tree runs on.

    CRIU locks the network while it writes both ends of a connection. That waits several times for
    the whole kernel, some 100 ms in which the tree stands still, and again when it is restored. So
    it is done only where there is a connection."""
    words = start, place, tree, images, frozen
    if not _is_connected(place):
        with contextlib.suppress(_ConnectedMeanwhile):
            return await _dump(*words, leave_running=leave_running, locks=False)
        for name in os.listdir(images):
            os.unlink(name, dir_fd=images)
    return await _dump(*words, leave_running=leave_running, locks=True)


class _ConnectedMeanwhile(Exception):
    """What stands still has a connection, and had none before."""


def _is_connected(place: Place) -> bool:
    return foreign_connections.any_connection(cgroup.processes(place.cgroup))


async def _dump(
    start: Callable[[int], Awaitable[int]],
    place: Place,
    tree: DumpedTree,
    images: int,
    frozen: Callable[[], Awaitable[None]],
    *,
    leave_running: bool,
    locks: bool,
) -> DumpTimes:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.setblocking(False)
        with theirs:
            process = await start(theirs.fileno())
        try:
            async with asyncio.timeout(TIMEOUT_S):
                options = _options(place, tree, images, leave_running=leave_running, locks=locks)
                done = await _converse(ours, place, options, frozen, locks=locks)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
            raise CheckpointFailed(f"CRIU did not finish within {TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise CheckpointFailed(f"CRIU is gone: {error.strerror or error}") from error
        finally:
            os.close(process)
    if not done.success:
        why = swrk.errors_in(swrk.log_in(images, LOG)) or done.message
        raise CheckpointFailed(f"CRIU refuses it: {why or 'it gives no reason'}")
    return DumpTimes(frozen_ms(images))


async def _converse(
    sock: socket.socket,
    place: Place,
    options: dict[str, swrk.Option],
    frozen: Callable[[], Awaitable[None]],
    *,
    locks: bool,
) -> swrk.CriuDone:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, swrk.request(swrk.Kind.DUMP, options))
    failure: BaseException | None = None
    while True:
        data = await loop.sock_recv(sock, swrk.MESSAGE_MAX_BYTES)
        if not data:
            raise failure or OSError(0, "it closed its socket")
        said = swrk.parse(data)
        if isinstance(said, swrk.CriuDone):
            if failure is not None:
                raise failure
            return said
        if said.script == "pre-dump" and cgroup.asked_to_freeze(place.cgroup):
            # By its keeper, when a lease ran out. CRIU would wait for what is frozen.
            failure = failure or CheckpointFailed("it was frozen before CRIU had stopped it")
        if said.script == "post-dump" and failure is None:
            try:
                if not locks and _is_connected(place):
                    raise _ConnectedMeanwhile
                await frozen()
            except BaseException as error:  # whatever it is, the tree must run on first
                failure = error
        await loop.sock_sendall(sock, swrk.answer(failure is None))


def _options(
    place: Place, tree: DumpedTree, images: int, *, leave_running: bool, locks: bool
) -> dict[str, swrk.Option]:
    return {
        "images_dir_fd": images,
        "pid": place.pid,
        "leave_running": leave_running,
        "log_level": 2,
        "log_file": LOG,
        "notify_scripts": True,
        "tcp_established": True,
        "tcp_skip_in_flight": True,
        "network_lock": swrk.LOCK_NFTABLES if locks else swrk.LOCK_SKIP,
        "file_locks": True,
        "link_remap": True,
        "force_irmap": True,
        "manage_cgroups_mode": swrk.CGROUPS_IGNORED,
        "ghost_limit": DELETED_FILE_MAX_BYTES,
        "timeout": FREEZE_TIMEOUT_S,
        "external": (*tree.tty_keys, *mount_marks.for_dump(tree.mounts)),
    }


def look(place: Place, slave: int, *, gate: bool) -> DumpedTree:
    """What the images will not say. `slave`: the terminal's other end."""
    return DumpedTree(
        shell=procfs.inner_pid(place.shell_pid),
        tty=place.tty,
        tty_keys=(_tty_key(os.fstat(slave)), *_controlling_key(place)),
        mounts=mount_marks.of_session(place),
        groups={},
        gate=gate,
    )


def groups(directory: str) -> dict[str, str]:
    """Which group below the session's own each process is in, by its pid in the session."""
    found = {}
    for where, _, _ in os.walk(directory):
        if where == directory:
            continue
        with contextlib.suppress(OSError):
            with open(f"{where}/cgroup.procs", encoding="ascii") as file:
                pids = [int(pid) for pid in file.read().split()]
            for pid in pids:
                found[str(procfs.inner_pid(pid))] = os.path.relpath(where, directory)
    return found


def _tty_key(facts: os.stat_result) -> str:
    return f"tty[{facts.st_rdev:x}:{facts.st_dev:x}]"


def _controlling_key(place: Place) -> tuple[str, ...]:
    """Whoever holds /dev/tty open gets the session's terminal for it. So it is left to CRIU, which
    refuses it, when one of them means another: a program on a terminal that was made inside."""
    facts = os.stat(f"/proc/{place.pid}/root/dev/tty")
    outer = os.stat(f"/proc/{place.pid}/root{place.tty}").st_rdev
    for pid in cgroup.processes(place.cgroup):
        with contextlib.suppress(OSError):  # a zombie has no descriptors
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(f"/proc/{pid}/fd/{fd}")
                    if found.st_rdev == facts.st_rdev and _means(pid, int(fd)) != outer:
                        return ()
    return (_tty_key(facts),)


def _means(pid: int, fd: int) -> int:
    """The device of the terminal behind an open /dev/tty: that of the moment it was opened."""
    process = os.pidfd_open(pid)
    try:
        copy = pidfd_getfd(process, fd)
    finally:
        os.close(process)
    try:
        return pty.ask(copy, _TIOCGDEV)
    finally:
        os.close(copy)


def finish_images(images: int, *, gate: bool) -> None:
    """When all are written. Slow: in a thread. `gate`: the tree is under the exec gate's filter."""
    if gate:
        own_filter.remove(images)
    for name in (LOG, "stats-dump"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=images)


def frozen_ms(images: int) -> float:
    """By CRIU's own clock; 0 when it did not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        fd = os.open("stats-dump", os.O_RDONLY | os.O_CLOEXEC, dir_fd=images)
        with open(fd, "rb") as file:
            _, messages = read_image(file.read())
        numbers = decode(messages[0][0].data)
        return next(int(each.value) for each in numbers if each.number == _FROZEN_US) / 1000
    return 0.0


def processes(place: Place) -> int:
    return len(cgroup.processes(place.cgroup))


def runs(place: Place) -> bool:
    """Whether its first process, with which all the others end, is not ending."""
    try:
        lines = procfs.read(f"/proc/{place.pid}/status").splitlines()
    except OSError:
        return False
    return any(line.startswith(b"VmSize:") for line in lines)  # its memory goes first


def is_traced(place: Place) -> bool:
    """Whether CRIU works on the tree at this moment. False too when there is none any more."""
    try:
        lines = procfs.read(f"/proc/{place.pid}/status").splitlines()
    except OSError:
        return False
    return any(line.startswith(b"TracerPid:") and line.split()[1] != b"0" for line in lines)
