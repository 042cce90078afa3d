"""The launcher: `python -m holdfast.adapters.launch.process FD SETTINGS`, one small process that
forks, so that the daemon, threaded and large, never does.

Serves one request after another from the socket FD (SEQPACKET) and exits when the daemon's end
closes. A request's text is in a memfd, because arguments and environment may be larger than any
socket message; the caller's descriptors to inherit come with it.

Deliberately keeps nothing between requests, and imports little: its size is copied at each fork.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import time

from holdfast.adapters import pty
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import mounts as namespaces
from holdfast.adapters.launch import syscalls, unread_reader
from holdfast.adapters.launch.child import (
    REPORT_FAILED,
    REPORT_RESTORED,
    REPORT_SKIPPED,
    REPORT_STARTED,
    LaunchOrder,
    help_launch,
)
from holdfast.adapters.launch.restored_child import (
    RestoreOrder,
    enter_private_run,
    help_restore,
)
from holdfast.adapters.proc import procfs
from holdfast.adapters.seccomp import gate_page
from holdfast.model.errors import (
    CommandNotFound,
    HoldfastError,
    LaunchFailed,
    LevelUnavailable,
    NotPermitted,
    RestoreFailed,
)
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.spec import LaunchSpec, Place
from holdfast.model.state import Level
from holdfast.ports.launch import RestoreSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

LAUNCH_TIMEOUT_S = 10.0  # from fork to exec; a home directory on a dead server must not hold us
# From reading the first image to a tree that is whole: a memory of gigabytes takes seconds.
RESTORE_TIMEOUT_S = 300.0
REPLY_MAX_BYTES = 128 << 10  # place and mounts as JSON; a host with thousands of mounts fits
UMASK = 0o022  # files of a session are readable by others unless it changes its umask
INHERIT_MAX = 32  # descriptors one launch may hand into the session
_REPORT_MAX_BYTES = 8192
_KEEPER_LEAVES_S, _KEEPER_LOOK_S = 2.0, 0.002
_KEEPER_BACKLOG = 8  # daemons that connect at once: one, and one that it replaces
_CLOEXEC = socket.MSG_CMSG_CLOEXEC

if TYPE_CHECKING:
    Answered = tuple[dict[str, object], list[int]]

_children: set[int] = set()  # keepers, and those that work for a dump, until they exit


class Settings(Record):
    """The launcher's settings, sent once at its start."""

    init: str
    keeper: str
    keepers: str  # directory of the keepers' sockets
    instance: str
    nofile: int


class _Progress:
    """What the new processes have reported so far."""

    def __init__(self) -> None:
        self.pid = 0
        self.pidfd = -1
        self.gate = -1
        self.program_pid = 0
        self.keeper_pid = 0
        self.skipped: dict[str, str] = {}
        self.failure: tuple[int, str, str] | None = None
        self.restored: dict[str, Any] = {}


def settle(nofile: int) -> None:
    """Make this process's inheritable state what a program from a login would find. Done once and
    here, since every system call made between fork and exec is paid at each launch."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the new processes undo this one
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)
    if nofile > 0:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft = nofile if hard == resource.RLIM_INFINITY else min(nofile, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def serve(daemon: socket.socket, settings: Settings) -> None:
    # A collection in a child would unshare every page it looks at, only to exec right after.
    gc.collect()
    gc.freeze()
    gc.disable()
    signal.signal(signal.SIGCHLD, _reap_children)
    while True:
        data, fds, _, _ = socket.recv_fds(daemon, 64, INHERIT_MAX + 1, _CLOEXEC)
        if not data:
            return
        sent: list[int] = []
        try:
            reply, sent = _ANSWERS[data](settings, fds)
        except HoldfastError as error:
            reply = {"error": error.code, "message": error.message, "hint": error.hint}
        finally:
            for fd in fds:
                os.close(fd)
        try:
            socket.send_fds(daemon, [json.dumps(reply).encode()], sent)
        except OSError:
            return  # the daemon is gone; the keeper sees its connection end, and ends the session
        finally:
            for fd in sent:
                os.close(fd)
        gc.collect()  # now, while nobody waits


def _request(fds: list[int], more: int | None = None) -> dict[str, Any]:
    """Its text; with it come so many descriptors of the caller's."""
    if not fds:
        raise LaunchFailed("the launcher has no descriptors left")
    if more is not None and len(fds) != 1 + more:
        raise LaunchFailed("descriptors were lost on the way to the launcher")
    with open(fds[0], encoding="ascii", closefd=False) as file:
        found: dict[str, Any] = json.load(file)
    return found


def _answer_launch(settings: Settings, fds: list[int]) -> Answered:
    request = _request(fds)
    spec = LaunchSpec.unpack(request["spec"])
    inside = tuple(int(number) for number in request["inherit"])
    if len(inside) != len(fds) - 1:
        raise LaunchFailed("descriptors were lost on the way to the launcher")
    _check_permitted(spec)
    try:
        return _launch(settings, spec, inside, tuple(fds[1:]))
    except OSError as error:
        raise LaunchFailed(f"cannot start a session: {error.strerror or error}") from error


def _check_permitted(spec: LaunchSpec) -> None:
    mine = os.geteuid()
    if mine not in (0, spec.uid):
        raise NotPermitted(
            f"only root starts sessions for others: this is uid {mine}, not {spec.uid}"
        )
    if spec.level is not Level.PLAIN:
        why = "needs root" if mine != 0 else cgroup.unavailable()
        if why:
            raise LevelUnavailable(
                f"level {spec.level} is not available: {why}", hint="use level plain"
            )


def _answer_criu(settings: Settings, fds: list[int]) -> Answered:
    """Start CRIU with the caller's socket; what is done with it is the caller's matter."""
    request = _request(fds)
    pid = os.fork()
    if pid == 0:
        try:
            _become_criu(request["criu"], bytes.fromhex(request["facts"]), request["env"], fds[1:])
        finally:
            os._exit(70)
    _children.add(pid)
    return {}, [os.pidfd_open(pid)]


def _answer_unread(settings: Settings, fds: list[int]) -> Answered:
    """Start a process that reads a terminal's unread input when it is asked (unread_reader.py)."""
    _request(fds, 2)
    pid = os.fork()
    if pid == 0:
        try:
            unread_reader.serve(fds[1], fds[2])
        finally:
            os._exit(0)
    _children.add(pid)
    return {}, []


def _become_criu(criu: list[str], facts: bytes, more: dict[str, str], fds: list[int]) -> None:
    """`fds`: its socket, and those that its environment names as {0}, {1}…"""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    enter_private_run(facts)
    for fd in fds:
        os.set_inheritable(fd, True)
    sock, *named = fds
    environment = {name: value.format(*named) for name, value in more.items()}
    os.execvpe(criu[0], [*criu, "swrk", str(sock)], {**os.environ, **environment})


def _answer_restore(settings: Settings, fds: list[int]) -> Answered:
    request = _request(fds, 1)
    spec = RestoreSpec.unpack(request["spec"])
    if os.geteuid() != 0 or cgroup.unavailable():
        raise LevelUnavailable("a session can be restored by root only", hint="`hold doctor`")
    criu = tuple(request["criu"])
    try:
        return _restore(settings, spec, criu, bytes.fromhex(request["facts"]), fds[1])
    except OSError as error:
        raise RestoreFailed(f"cannot restore it: {error.strerror or error}") from error


def _restore(
    settings: Settings, spec: RestoreSpec, criu: tuple[str, ...], facts: bytes, images: int
) -> Answered:
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as temporary:
        terminal = pty.open_private(spec.size, spec.uid)
        undo.callback(os.close, terminal.master)
        for fd in (terminal.slave, terminal.devpts):
            temporary.callback(os.close, fd)
        directory = _make_group(settings.instance, spec.session)
        undo.callback(_end_group, directory)
        page = -1
        if spec.tree.gate:
            page = gate_page.make()
            undo.callback(os.close, page)
        path = f"{settings.keepers}/{spec.session}.sock"
        listener = temporary.enter_context(_listen_after(settings.keepers, spec.session))
        undo.callback(_unlink, path)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.enter_context(ours)
        temporary.enter_context(theirs)
        order = RestoreOrder(
            keeper=settings.keeper,
            keeper_path=path,
            listener=listener.fileno(),
            connection=theirs.fileno(),
            gate_page=page,
            spec=spec,
            criu=criu,
            facts=facts,
            images=images,
            master=terminal.master,
            slave=terminal.slave,
            devpts=terminal.devpts,
            group=directory,
        )
        progress = _run(
            lambda status, verdict: help_restore(order, status, verdict),
            _restore_problem,
            RESTORE_TIMEOUT_S,
        )
        inner = {procfs.inner_pid(pid): pid for pid in cgroup.processes(directory)}
        undo.pop_all()
    place = spec.before.replace(
        pid=progress.pid, shell_pid=inner.get(spec.tree.shell, 0), cgroup=directory
    )
    gate = () if progress.gate < 0 else (progress.gate, page)
    reply = {
        "place": place.pack(),
        "keeper_pid": progress.keeper_pid,
        "skipped": {},
        **progress.restored,
    }
    return reply, [terminal.master, progress.pidfd, ours.detach(), *gate]


def _restore_problem(progress: _Progress) -> HoldfastError | None:
    if progress.failure is None:
        if progress.pid and progress.pidfd >= 0 and progress.restored:
            return None
        return RestoreFailed("the process that restores it ended before it reported anything")
    number, _, text = progress.failure
    if number == errno.ETIMEDOUT:
        return RestoreFailed(f"it was not restored within {RESTORE_TIMEOUT_S:.0f} s")
    return RestoreFailed(f"CRIU cannot restore it: {text}")


def _launch(
    settings: Settings, spec: LaunchSpec, inside: tuple[int, ...], outside: tuple[int, ...]
) -> tuple[dict[str, object], list[int]]:
    contained = spec.level is not Level.PLAIN
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as temporary:
        terminal = (pty.open_private if contained else pty.open_plain)(spec.size, spec.uid)
        undo.callback(os.close, terminal.master)
        for fd in {terminal.slave, terminal.devpts} - {-1}:
            temporary.callback(os.close, fd)
        directory, group = "", -1
        if contained:
            directory = _make_group(settings.instance, spec.session)
            undo.callback(_end_group, directory)
            group = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            temporary.callback(os.close, group)
        page = -1
        if contained and spec.gate:
            page = gate_page.make()
            undo.callback(os.close, page)
        path = f"{settings.keepers}/{spec.session}.sock"
        listener = temporary.enter_context(_listen(settings.keepers, spec.session))
        undo.callback(_unlink, path)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.enter_context(ours)
        temporary.enter_context(theirs)
        order = LaunchOrder(
            spec=spec,
            init=settings.init,
            keeper=settings.keeper,
            keeper_path=path,
            listener=listener.fileno(),
            connection=theirs.fileno(),
            slave=terminal.slave,
            devpts=terminal.devpts,
            cgroup=group,
            gate_page=page,
            mounts=namespaces.current_mounts() if contained else (),
            inside=inside,
            outside=outside,
        )
        master = terminal.master

        def help_it(status: socket.socket, verdict: int) -> NoReturn:
            os.close(master)
            help_launch(order, status, verdict)

        progress = _run(help_it, lambda found: _problem(order, found), LAUNCH_TIMEOUT_S)
        undo.pop_all()
    place = Place(
        pid=progress.pid,
        shell_pid=progress.program_pid,
        tty=terminal.path,
        cgroup=directory,
        mounts=tuple(path for path in order.mounts if path not in progress.skipped),
        hidden=tuple(os.path.realpath(path) for path in spec.hidden) if contained else (),
        kept=spec.kept if contained else (),
    )
    gate = () if progress.gate < 0 else (progress.gate, page)
    if page >= 0 and not gate:
        os.close(page)
    reply = {
        "place": place.pack(),
        "keeper_pid": progress.keeper_pid,
        "skipped": progress.skipped,
    }
    return reply, [terminal.master, progress.pidfd, ours.detach(), *gate]


def _listen(directory: str, session: SessionId) -> socket.socket:
    """The keeper's socket. By descriptor: the path of a socket is short, that of a home may be
    long."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{place}/{session}.sock")
        listener.listen(_KEEPER_BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener


def _listen_after(directory: str, session: SessionId) -> socket.socket:
    """The same, where a keeper of this session was until a moment ago: it removes its socket last,
    after the host has learnt of the end."""
    deadline = time.monotonic() + _KEEPER_LEAVES_S
    while True:
        try:
            return _listen(directory, session)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
            time.sleep(_KEEPER_LOOK_S)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # the helper may have done so
        os.unlink(path)


def _end_group(directory: str) -> None:
    cgroup.kill(directory)
    cgroup.remove(directory)


def _make_group(instance: str, session: SessionId) -> str:
    home = cgroup.home(instance)
    if home is None:
        raise LevelUnavailable("no cgroup v2 hierarchy is mounted")
    return cgroup.create(home, session)


def _run(
    help_it: Callable[[socket.socket, int], NoReturn],
    problem_of: Callable[[_Progress], HoldfastError | None],
    timeout_s: float,
) -> _Progress:
    """Fork the helper and follow the reports. Gives the session as it was started, or raises with
    nothing of it left. `help_it`: what the helper does, with its end of the reports and where it
    hears the verdict."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # The kernel then names the sender of each report, in our numbering: how the pid of a program
    # in another pid namespace is learnt without a race.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    verdict_out, verdict_in = os.pipe()
    progress = _Progress()
    helper = os.fork()
    if helper == 0:
        try:
            ours.close()
            os.close(verdict_in)
            help_it(theirs, verdict_out)
        finally:
            os._exit(70)
    theirs.close()
    os.close(verdict_out)
    try:
        _follow(ours, progress, timeout_s)
        problem = problem_of(progress)
        if problem is None:
            os.write(verdict_in, b"k")
            progress.keeper_pid = helper
    finally:
        # Without a verdict the helper ends what it started, and is reaped here.
        os.close(verdict_in)
        ours.close()
        if not progress.keeper_pid:
            os.waitpid(helper, 0)
    if problem is not None:
        for fd in (progress.pidfd, progress.gate):
            if fd >= 0:
                os.close(fd)
        raise problem
    _children.add(helper)
    return progress


def _reap_children(*_: object) -> None:
    """On SIGCHLD: those that have exited. Never anything else, which is waited for where it is
    started."""
    for pid in list(_children):
        with contextlib.suppress(ChildProcessError):  # in a child of ours they are nobody's
            if os.waitpid(pid, os.WNOHANG)[0]:
                _children.discard(pid)


def _follow(status: socket.socket, progress: _Progress, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    space = socket.CMSG_SPACE(12) + socket.CMSG_SPACE(8)
    while True:
        left = deadline - time.monotonic()
        status.settimeout(max(left, 0.001))
        try:
            data, controls, _, _ = status.recvmsg(_REPORT_MAX_BYTES, space, _CLOEXEC)
        except TimeoutError:
            progress.failure = (errno.ETIMEDOUT, "process", "")
            return
        if not data:
            return
        _take(data, controls, progress)


def _take(data: bytes, controls: list[tuple[int, int, bytes]], progress: _Progress) -> None:
    sender = 0
    for _, kind, content in controls:
        if kind == socket.SCM_RIGHTS:
            progress.pidfd, *gate = struct.unpack(f"{len(content) // 4}i", content)
            progress.gate = next(iter(gate), -1)
        elif kind == socket.SCM_CREDENTIALS:
            sender = struct.unpack("3i", content[:12])[0]
    if len(data) == 4:  # the init's: zero before the program is executed, then errno
        (number,) = struct.unpack("i", data)
        if number == 0:
            progress.program_pid = sender
        else:
            progress.failure = (number, "program", os.strerror(number))
        return
    number = struct.unpack("i", data[1:5])[0]
    if data[:1] == REPORT_RESTORED:
        progress.restored = json.loads(data[5:])
        return
    first, _, second = data[5:].decode(errors="surrogateescape").partition("\0")
    if data[:1] == REPORT_STARTED:
        progress.pid = number
    elif data[:1] == REPORT_SKIPPED:
        progress.skipped[first] = second
    elif data[:1] == REPORT_FAILED and progress.failure is None:
        # What comes later is only what followed from it.
        progress.failure = (number, first, second)


def _problem(order: LaunchOrder, progress: _Progress) -> HoldfastError | None:
    """The error a launch ended with, in the user's words."""
    spec = order.spec
    if progress.failure is None:
        if progress.pid and progress.program_pid and progress.pidfd >= 0:
            return None
        return LaunchFailed("the new process ended before it reported anything")
    number, stage, text = progress.failure
    name = spec.argv[0]
    if number == errno.ETIMEDOUT and stage == "process":
        return LaunchFailed(f"{name} did not start within {LAUNCH_TIMEOUT_S:.0f} s")
    if stage == "command":
        return CommandNotFound(_unfound(name, number))
    if stage == "program":
        return CommandNotFound(
            f"{name}: cannot be executed: {text}",
            hint="a script needs an interpreter that exists in its first line"
            if number in (errno.ENOENT, errno.ENOEXEC)
            else "",
        )
    if stage == "cwd":
        return LaunchFailed(_unreachable(spec.cwd, number), hint="give a directory that exists")
    if stage in ("process", "namespaces") and number in (errno.EPERM, errno.ENOSYS, errno.EINVAL):
        return LevelUnavailable(f"level {spec.level} is not available: {text}")
    return LaunchFailed(f"cannot start {name}: {text} (while setting up: {stage})")


def _unfound(name: str, number: int) -> str:
    if number == errno.ENOENT and "/" not in name:
        return f"{name}: command not found"
    return f"{name}: {os.strerror(number).lower()}"


def _unreachable(cwd: str, number: int) -> str:
    why = {errno.ENOENT: "does not exist", errno.ENOTDIR: "is not a directory"}
    return f"directory {cwd} {why.get(number, f'is not accessible: {os.strerror(number)}')}"


_ANSWERS = {
    b"launch": _answer_launch,
    b"criu": _answer_criu,
    b"unread": _answer_unread,
    b"restore": _answer_restore,
}


def main(arguments: list[str]) -> int:
    fd, settings = arguments
    told = Settings.unpack(json.loads(settings))
    settle(told.nofile)
    with socket.socket(fileno=int(fd)) as daemon:
        daemon.set_inheritable(False)
        serve(daemon, told)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
