"""What happens between the fork and the program: the steps of a launch that run in new processes.

    launcher -> helper -> first process of the session -> exec init -> exec program

The helper is the parent of the session's first process. Once the launch is known good it becomes
the session's keeper, by exec: the kernel leaves it its child. When the launch fails, or the
launcher dies meanwhile, it ends the first process and reaps it.

A session with an exec gate is under its system call filter from before its init is executed, so
somebody has to answer: the helper does, until the keeper that it becomes goes on with it.

Reports go over a SEQPACKET socket: one byte of kind, then fields; the init's own reports are ints
(see native/hold_init.c). End of file without a failure means that the program runs.

Deliberately decides nothing: the spec is complete, and a failure is reported, not worked around.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import struct

from holdfast.adapters.launch import mounts as namespaces
from holdfast.adapters.launch import syscalls
from holdfast.adapters.seccomp import filter as seccomp
from holdfast.adapters.seccomp import notification
from holdfast.model.record import Record
from holdfast.model.spec import LaunchSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Kinds of report. The init's are exactly four bytes long, these never are.
REPORT_STARTED = b"s"  # pid of the first process; its pidfd travels along, and the gate's listener
REPORT_SKIPPED = b"k"  # a host mount that could not be bound
REPORT_FAILED = b"f"  # errno, stage, what failed
REPORT_RESTORED = b"r"  # 0, then as JSON: phases and what was reset; the tree does not run yet

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REPORT_TEXT_MAX_BYTES = 4096
_DESCRIPTORS_END = 1 << 20  # the kernel's own default bound; one call, or a loop before 5.9


class KeeperOrder(Record):
    """What the helper needs to become the session's keeper."""

    keeper: str
    keeper_path: str  # of its socket
    listener: int  # that socket ...
    connection: int  # ... and the keeper's end of its first connection
    gate_page: int  # -1 without an exec gate


class LaunchOrder(KeeperOrder):
    """One launch as the new processes need it: everything is open, nothing is left to look up."""

    spec: LaunchSpec
    init: str
    slave: int
    devpts: int  # -1 at level plain
    cgroup: int  # -1 at level plain
    mounts: tuple[str, ...]
    inside: tuple[int, ...]  # numbers inside the session ...
    outside: tuple[int, ...]  # ... and the descriptors that go there


def help_launch(order: LaunchOrder, status: socket.socket, verdict: int) -> NoReturn:
    """The helper: start the first process, tell of it, wait for the verdict."""
    gate = (
        socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) if order.gate_page >= 0 else None
    )
    try:
        syscalls.become_subreaper()  # what the first process leaves is ours to end
        if order.devpts >= 0:
            pid, pidfd = syscalls.clone3(namespaces.SESSION_NAMESPACES, order.cgroup)
        else:
            pid = os.fork()
            pidfd = os.pidfd_open(pid) if pid else -1
    except OSError as error:
        fail(status, "process", error)
        os._exit(71)
    if pid == 0:
        os.close(verdict)
        _first_process(order, status, gate[1] if gate else None)
    listener = _receive_listener(*gate) if gate else -1
    if _approved(pid, pidfd, listener, status, verdict):
        become_keeper(order, pid, listener)  # returns if there is no such program any more
    give_up(order, pid)


def give_up(order: KeeperOrder, pid: int) -> NoReturn:
    """Leave nothing of what was started."""
    with contextlib.suppress(FileNotFoundError):  # the launcher, if it lives, does so too
        os.unlink(order.keeper_path)
    _end_and_reap(pid)
    os._exit(0)


def _receive_listener(ours: socket.socket, theirs: socket.socket) -> int:
    """From the first process; -1: it failed before, and says so itself."""
    theirs.close()
    return receive_listener(ours)


def receive_listener(ours: socket.socket) -> int:
    with ours:
        _, fds, _, _ = socket.recv_fds(ours, 1, 1, socket.MSG_CMSG_CLOEXEC)
    return fds[0] if fds else -1


def become_keeper(order: KeeperOrder, pid: int, listener: int) -> None:
    gate = (listener, order.gate_page) if listener >= 0 else ()
    with contextlib.suppress(OSError):
        for fd in (order.connection, order.listener, *gate):
            os.set_inheritable(fd, True)
        words = [str(fd) for fd in (pid, order.connection, order.listener)]
        words += [order.keeper_path, *map(str, gate)]
        os.execve(order.keeper, ["hold-keeper", *words], {})


def _end_and_reap(pid: int) -> None:
    """End the first process, then what it leaves to us, until nothing is left."""
    left = [pid] if pid else _children()
    while left:
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        left = _children()


def _children() -> list[int]:
    with open("/proc/thread-self/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def _approved(pid: int, pidfd: int, listener: int, status: socket.socket, verdict: int) -> bool:
    """Tell of the new process and wait; a launcher that is gone approves of nothing."""
    try:
        report_started(status, pid, pidfd, listener)
        return await_verdict(status, verdict, listener)
    except OSError:
        return False


def report_started(status: socket.socket, pid: int, pidfd: int, listener: int) -> None:
    fds = [fd for fd in (pidfd, listener) if fd >= 0]
    socket.send_fds(status, [REPORT_STARTED + struct.pack("i", pid)], fds)


def await_verdict(status: socket.socket, verdict: int, listener: int) -> bool:
    """Nothing more is reported; the launcher decides. One that is gone approves of nothing."""
    try:
        status.close()
        if listener >= 0:
            _answer_until(verdict, listener)
        return os.read(verdict, 1) != b""
    except OSError:
        return False


def _answer_until(verdict: int, listener: int) -> None:
    """Let what the launch itself executes go on, until there is a verdict."""
    ready = select.poll()
    ready.register(verdict, select.POLLIN)
    ready.register(listener, select.POLLIN)
    while True:
        for fd, events in ready.poll():
            if fd == verdict:
                return
            if events & select.POLLIN:
                notification.let_pass(listener)
            else:  # the first process has ended
                ready.unregister(listener)


def fail(status: socket.socket, stage: str, error: OSError) -> None:
    text = f"{stage}\0{error.strerror or error}".encode(errors="surrogateescape")
    report = REPORT_FAILED + struct.pack("i", error.errno or 0) + text[:_REPORT_TEXT_MAX_BYTES]
    try:
        status.send(report)
    except OSError:
        os._exit(70)  # the launcher is gone


def _first_process(
    order: LaunchOrder, status: socket.socket, gate: socket.socket | None
) -> NoReturn:
    stage = "namespaces"
    spec = order.spec
    try:
        if order.devpts >= 0:
            _enter_own_tree(order, status)
        stage = "init"
        init = os.open(order.init, os.O_RDONLY | os.O_CLOEXEC)
        if gate is not None:
            stage = "gate"
            _install_filter(gate)
        stage = "descriptors"
        os.setsid()
        status, init = _arrange_descriptors(order, status, init)
        # Ignored until here: a report to a launcher that died must be an error, not the end.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        stage = "identity"
        _become(spec)
        stage = "cwd"
        os.chdir(spec.cwd)
        stage = "command"
        program = find_program(spec.argv[0], spec.env.get("PATH", DEFAULT_PATH))
        stage = "init"
        _exec_init(order, status, init, program)
    except OSError as error:
        fail(status, stage, error)
    except BaseException as error:  # a bug must not look like a session that started
        fail(status, stage, OSError(0, f"{type(error).__name__}: {error}"))
    os._exit(127)


def _install_filter(gate: socket.socket) -> None:
    """While root is still ours. In a session of another host there is such a filter already, and
    the kernel has room for one: this session then runs under that one's only."""
    with gate:
        try:
            listener = seccomp.install()
        except OSError as error:
            if error.errno == errno.EBUSY:
                return
            raise
        socket.send_fds(gate, [b"g"], [listener])
        os.close(listener)


def _enter_own_tree(order: LaunchOrder, status: socket.socket) -> None:
    def skipped(path: str, error: OSError) -> None:
        text = f"{path}\0{error.strerror}".encode(errors="surrogateescape")
        status.send(REPORT_SKIPPED + struct.pack("i", error.errno or 0) + text)

    # Here and not at the clone, where the kernel would take the group of our parent for its root.
    # So a cgroupfs mounted inside shows the session's own groups, and none to move away to.
    syscalls.unshare(syscalls.CLONE_NEWCGROUP)
    namespaces.build_root(order.devpts, order.mounts, skipped)
    namespaces.hide(order.spec.hidden, order.spec.kept, order.spec.uid, order.spec.gid)
    if order.spec.hostname:
        socket.sethostname(order.spec.hostname)


def _arrange_descriptors(
    order: LaunchOrder, status: socket.socket, init: int
) -> tuple[socket.socket, int]:
    """Terminal at 0-2, the inherited ones at their numbers, everything else closed.

    All are first copied above every number that will be written to, so none is overwritten
    before it was read."""
    above = max([2, *order.inside]) + 1

    def copy(fd: int) -> int:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)

    slave, new_status, new_init = copy(order.slave), copy(status.detach()), copy(init)
    sources = [copy(fd) for fd in order.outside]
    for number in (0, 1, 2):
        os.dup2(slave, number)
    for number, source in zip(order.inside, sources, strict=True):
        os.dup2(source, number)
    kept = sorted({0, 1, 2, *order.inside, new_status, new_init})
    for below, following in zip(kept, [*kept[1:], _DESCRIPTORS_END], strict=True):
        os.closerange(below + 1, following)
    return socket.socket(fileno=new_status), new_init


def _become(spec: LaunchSpec) -> None:
    if os.geteuid() == 0:
        os.setgroups(spec.groups)
        os.setresgid(spec.gid, spec.gid, spec.gid)
        os.setresuid(spec.uid, spec.uid, spec.uid)


def find_program(name: str, search: str) -> str:
    """The absolute path of a command, as this process's user would find it."""
    if "/" in name:
        _executable(name)
        return os.path.abspath(name)
    refused: OSError | None = None
    for directory in search.split(":"):
        candidate = os.path.join(directory or ".", name)
        try:
            _executable(candidate)
            return os.path.abspath(candidate)
        except PermissionError as error:
            refused = refused or error  # found but not ours to run: said only if no other is
        except OSError:
            continue
    raise refused or FileNotFoundError(errno.ENOENT, "command not found")


def _executable(path: str) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise PermissionError(errno.EACCES, "not a program")
    if not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _exec_init(order: LaunchOrder, status: socket.socket, init: int, program: str) -> None:
    """Started by descriptor: the user need not be able to reach the directory it is in."""
    spec = order.spec
    words = ["hold-init", "--status-fd", str(status.fileno())]
    if order.devpts < 0:
        words.append("--subreaper")
    status.set_inheritable(True)
    os.execve(init, [*words, "--", program, *spec.argv], spec.env)
