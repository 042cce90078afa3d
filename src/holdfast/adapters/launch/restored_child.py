"""What happens in new processes when a session is restored from a checkpoint.

    launcher -> helper -> CRIU, which makes the session's processes children of the helper

As at a launch, the helper becomes the session's keeper once all is well, and ends what it has
otherwise. When it reports the tree, that is whole and has not run yet: its control group is
frozen, and it is for the daemon to let it run, once everybody knows of the new incarnation.

CRIU runs in a mount namespace of its own. There the parts of the session's file tree that our
launcher made are laid out below /run, which is a new tmpfs; nothing of it is seen on the host.

Deliberately decides nothing: the images were checked, and a failure is reported, not worked around.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time

from holdfast.adapters import pty
from holdfast.adapters.criu import posix_locks, swrk
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import mounts as namespaces
from holdfast.adapters.launch import syscalls
from holdfast.adapters.launch.child import (
    REPORT_RESTORED,
    KeeperOrder,
    await_verdict,
    become_keeper,
    fail,
    give_up,
    receive_listener,
    report_started,
)
from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.foreign_connections import reset_foreign
from holdfast.adapters.seccomp import filter as seccomp
from holdfast.adapters.seccomp import notification
from holdfast.model.home import is_within
from holdfast.model.restore import MountKind, MountMark, PeerReset, RestorePhase
from holdfast.ports.launch import RestoreSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

LOG = "restore.log"
ROOT, _PARTS = "/run/root", "/run/parts"


class RestoreOrder(KeeperOrder):
    """One restore as the new processes need it."""

    spec: RestoreSpec
    criu: tuple[str, ...]
    facts: bytes  # what CRIU knows about this kernel
    images: int
    master: int
    slave: int
    devpts: int
    group: str  # the session's control group


class _Failure(Exception):
    """Why it cannot be restored."""


def help_restore(order: RestoreOrder, status: socket.socket, verdict: int) -> NoReturn:
    """The helper: let CRIU restore the tree, tell of it, wait for the verdict."""
    pid, listener = 0, -1
    try:
        syscalls.become_subreaper()
        work = _Restore(order, status, verdict)
        pid, listener = work.run()
    except (_Failure, OSError, ValueError) as error:
        fail(status, "restore", OSError(0, str(error)))
        status.close()
        give_up(order, 0)
    if await_verdict(status, verdict, listener):
        become_keeper(order, pid, listener)
    give_up(order, pid)


class _Restore:
    """The conversation with CRIU, and what is done in it."""

    def __init__(self, order: RestoreOrder, status: socket.socket, verdict: int) -> None:
        self._order, self._status, self._verdict = order, status, verdict
        self._rpc, self._rpc_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._gate, self._gate_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._filter = os.memfd_create("holdfast-filter")
        os.write(self._filter, seccomp.program())
        self._locks = os.memfd_create("holdfast-locks")
        self._to_lock = posix_locks.of_images(order.images)
        self._freezer = os.open(f"{order.group}/cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        self._listener = -1
        self._pid = self._criu = 0
        self._phases: list[RestorePhase] = []
        self._since = time.monotonic()

    def run(self) -> tuple[int, int]:
        """The first process of the restored tree, and the listener of its filter."""
        group = os.open(self._order.group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._criu, process = syscalls.clone3(0, group)
        if self._criu == 0:
            self._become_criu()
        os.close(process)
        os.close(group)
        for each in (self._rpc_theirs, self._gate_theirs):
            each.close()
        self._rpc.send(swrk.request(swrk.Kind.RESTORE, self._options()))
        done = self._converse()
        os.waitpid(self._criu, 0)
        if not done.success:
            log = swrk.log_in(self._order.images, LOG)
            raise _Failure(swrk.errors_in(log) or done.message or "CRIU gives no reason")
        if not self._pid:
            raise _Failure("CRIU did not say what it restored")
        if lost := posix_locks.not_taken(self._locks):
            raise _Failure(f"{lost} file locks could not be taken again: somebody else has them")
        if not cgroup.asked_to_freeze(self._order.group):
            raise _Failure("it does not stand still")
        self._passed("resume")
        report = {
            "phases": [phase.pack() for phase in self._phases],
            "reset": [each.pack() for each in self._reset],
        }
        text = json.dumps(report).encode()
        self._status.send(REPORT_RESTORED + struct.pack("i", 0) + text)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(LOG, dir_fd=self._order.images)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("stats-restore", dir_fd=self._order.images)
        return self._pid, self._listener

    _reset: tuple[PeerReset, ...] = ()

    def _passed(self, phase: str) -> None:
        at = time.monotonic()
        self._phases.append(RestorePhase(phase, round((at - self._since) * 1000, 3)))
        self._since = at

    def _options(self) -> dict[str, swrk.Option]:
        order, tree = self._order, self._order.spec.tree
        # CRIU closes each after use, so each has a number of its own.
        terminals = tuple(swrk.Inherited(key, _SLAVES + at) for at, key in enumerate(tree.tty_keys))
        return {
            "images_dir_fd": order.images,
            "log_level": 2,
            "log_file": LOG,
            "notify_scripts": True,
            "root": ROOT,
            "rst_sibling": True,
            "inherit_fd": terminals,
            "external": tuple(f"mnt[{mark.cookie}]:{part(mark)}" for mark in tree.mounts),
            "manage_cgroups_mode": swrk.CGROUPS_IGNORED,
            "tcp_established": True,
            "tcp_skip_in_flight": True,
            "network_lock": swrk.LOCK_NFTABLES,  # unless the images say that it was not locked
            "file_locks": True,
            "link_remap": True,
        }

    # -- the conversation -------------------------------------------------------------------------

    def _converse(self) -> swrk.CriuDone:
        """CRIU's questions, and until it is done the calls of what it restores: those are under
        the gate's filter already. The launcher gives up on us by closing its end."""
        ready = select.poll()
        for fd in (self._rpc, self._verdict):
            ready.register(fd, select.POLLIN)
        if self._order.gate_page >= 0:
            ready.register(self._gate, select.POLLIN)
        while True:
            for fd, events in ready.poll():
                if fd == self._rpc.fileno():
                    said = self._hear()
                    if said is not None:
                        return said
                elif fd == self._verdict:
                    raise _Failure("nobody waits for it any more")
                elif fd == self._listener:
                    if events & select.POLLIN:
                        notification.let_pass(fd)
                    else:
                        ready.unregister(fd)
                else:
                    ready.unregister(fd)
                    self._listener = receive_listener(self._gate)
                    if self._listener >= 0:
                        ready.register(self._listener, select.POLLIN)

    def _hear(self) -> swrk.CriuDone | None:
        try:
            data = self._rpc.recv(swrk.MESSAGE_MAX_BYTES)
        except ConnectionResetError:  # it ended before it read our answer: its log says why
            data = b""
        if not data:
            log = swrk.log_in(self._order.images, LOG)
            raise _Failure(swrk.errors_in(log) or "CRIU ended without a word")
        said = swrk.parse(data)
        if isinstance(said, swrk.CriuDone):
            return said
        if said.script == "setup-namespaces":
            self._passed("prepare")
            self._rpc.send(swrk.answer(True))
            # Out of the group that will stand still, to where the launcher is: now, when the first
            # process is born and CRIU has other things to do than to wait for it.
            self._move_criu_out()
            return None
        if said.script == "post-restore":
            self._passed("processes")
        elif said.script == "pre-resume":
            self._before_it_runs()
            self._passed("connections")
        self._rpc.send(swrk.answer(True))
        return None

    def _move_criu_out(self) -> None:
        cgroup.enter(os.path.dirname(os.path.dirname(self._order.group)), self._criu)

    def _before_it_runs(self) -> None:
        """All is restored, and nothing has run. From here on the group is frozen."""
        order = self._order
        if order.gate_page >= 0 and self._listener < 0:
            raise _Failure("the exec gate's filter could not be installed")
        self._move_criu_out()  # if it was not
        pids = cgroup.processes(order.group)
        inner = {procfs.inner_pid(each): each for each in pids}
        self._pid = inner[_FIRST]
        for number, group in order.spec.tree.groups.items():
            if int(number) in inner:
                path = f"{order.group}/{group}"
                os.makedirs(path, exist_ok=True)
                cgroup.enter(path, inner[int(number)])
        pty.put_unread(order.master, bytes.fromhex(order.spec.unread))
        self._reset = reset_foreign(pids)
        os.write(self._locks, posix_locks.table(self._to_lock, inner))
        if not self._to_lock:  # else our shim does, when these are taken
            cgroup.ask_to_freeze(order.group)
        report_started(self._status, self._pid, os.pidfd_open(self._pid), self._listener)

    # -- becoming CRIU ----------------------------------------------------------------------------

    def _become_criu(self) -> NoReturn:
        order = self._order
        try:
            self._rpc.close()
            self._gate.close()
            syscalls.unshare(syscalls.CLONE_NEWCGROUP)
            lay_out(order.spec.tree.mounts, order.devpts, order.facts)
            environment = {
                **os.environ,
                "HOLDFAST_CTTY": f"{order.spec.tree.shell}:{order.spec.tree.tty}",
            }
            gate = self._gate_theirs.fileno()
            if order.gate_page >= 0:
                environment["HOLDFAST_GATE"] = f"{self._filter}:{gate}"
            rpc = self._rpc_theirs.fileno()
            if self._to_lock:
                environment["HOLDFAST_LOCKS"] = f"{self._locks}:{self._freezer}"
            for fd in (rpc, gate, self._filter, self._locks, self._freezer):
                os.set_inheritable(fd, True)
            for at, _ in enumerate(order.spec.tree.tty_keys):
                os.dup2(order.slave, _SLAVES + at)
            os.execvpe(order.criu[0], [*order.criu, "swrk", str(rpc)], environment)
        except OSError as error:
            fail(self._status, "restore", error)
        os._exit(70)


_FIRST = 1  # in the session's numbering
_SLAVES = 700  # the first of the numbers at which CRIU inherits the terminal: nothing else is there


def part(mark: MountMark) -> str:
    return f"{_PARTS}/{mark.cookie}"


def lay_out(marks: tuple[MountMark, ...], devpts: int, facts: bytes) -> None:
    """The parts of the session's tree, each at a place of its own."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    nodes = namespaces.host_nodes()
    present = set(namespaces.current_mounts())
    root, binds = syscalls.bind_by_descriptor("/"), {}
    for mark in marks:
        if mark.kind is MountKind.HOST and mark.path not in present:
            if not os.path.isdir(mark.path):
                raise OSError(0, f"{mark.path}, a file system of the host, is not mounted now")
        elif mark.kind in (MountKind.HOST, MountKind.KEPT):
            binds[mark.cookie] = syscalls.bind_by_descriptor(mark.source or mark.path)
    enter_private_run(facts)
    os.mkdir(ROOT)
    syscalls.move_mount(root, ROOT)
    os.mkdir(_PARTS)
    for mark in marks:
        os.mkdir(part(mark))
        match mark.kind:
            case MountKind.HOST if mark.cookie not in binds:
                # It was unmounted since. Whoever has a file open there is not restored; to all
                # others it is an empty place, in which nothing can be written.
                flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_RDONLY
                syscalls.mount("tmpfs", part(mark), "tmpfs", flags)
            case MountKind.HOST | MountKind.KEPT:
                if not os.path.isdir(mark.source or mark.path):
                    os.rmdir(part(mark))
                    os.close(os.open(part(mark), os.O_CREAT | os.O_WRONLY))
                syscalls.move_mount(binds[mark.cookie], part(mark))
            case MountKind.DEV:
                namespaces.make_dev(part(mark), nodes)
            case MountKind.PTS:
                syscalls.move_mount(devpts, part(mark))
            case MountKind.SHM:
                namespaces.make_shm(part(mark))
            case MountKind.COVER:
                below = (other.path for other in marks if other.kind is MountKind.KEPT)
                namespaces.make_cover(
                    part(mark),
                    [
                        os.path.relpath(path, mark.path)
                        for path in below
                        if is_within(path, mark.path)
                    ],
                )
    syscalls.mount(None, "/run", None, syscalls.MS_REC | syscalls.MS_PRIVATE)


def enter_private_run(facts: bytes) -> None:
    """A new tmpfs over /run, in a mount namespace that is ours already, with what CRIU learnt about
    the kernel the last time."""
    syscalls.mount("tmpfs", "/run", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    if facts:
        with open("/run/criu.kdat", "wb") as file:
            file.write(facts)
