"""Whether the process at the other end of a unix socket runs inside a session of this host.

Asked when a connection is accepted, while a pidfd of the peer shows that it lives, so that a pid
used again is not mistaken for it. Three signs, each of which is enough:

    cgroup          a process and all it starts stay in the group they were born in. It also names
                    the actors behind the process (halt/cgroup.py). A root program can move itself
                    within its session's groups, and out of them with help from outside.
    descent         a session's init adopts what loses its parent, so double forks and setsid do
                    not lead out; in a pid namespace the kernel sees to that.
    pid namespace   no process can leave its own.

At level plain there is the descent, and as a second sign the variable HOLDFAST_SESSION in the
peer's environment. A program that tries can avoid both (SECURITY.md).

A session that is being started has processes before the daemon knows it, and one whose keeper does
not answer has them as well. These are not outside: they are told by the host's own group, and by
their descent from its daemon, supervisor or a keeper of it.

Deliberately judges nothing: what a connection from inside may do is in core.access.inside_rules.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Protocol

from holdfast.adapters.halt import cgroup
from holdfast.adapters.halt.escapes import is_below
from holdfast.adapters.proc import procfs
from holdfast.model.errors import NotPermitted
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.spec import Place

_SO_PEERPIDFD = 77  # Linux 6.5; not in Python's socket module yet
_WALKS_MAX = 16  # of the descent: a parent may end while it is read, then it is read again
_VARIABLE = b"HOLDFAST_SESSION="
_KEEPER = "hold-keeper"  # the beginning of its name; it gives itself all of it
_DEPTH_MAX = 4096  # processes in one line of descent; the kernel's bound on pids is far higher


class RunningSession(Protocol):
    """A live session, as far as a process is looked for in it."""

    @property
    def id(self) -> SessionId: ...

    @property
    def process_tag(self) -> SessionId:
        """In the environment of its processes."""

    @property
    def place(self) -> Place: ...


class Found(Record):
    """The session that a process runs in."""

    session: SessionId
    # The actors of its leaf; empty when it is in none, or is not where it was born.
    actors: tuple[str, ...] = ()


class OwnTraces(Record):
    """By what a process is known that this host started, whether its session is served or not."""

    parents: frozenset[int]  # daemon and supervisor
    keepers: str  # the directory of their sockets, which their command lines name
    group: str  # the one that has a group for each session; its name


class NotServedError(Exception):
    """The peer runs in a session of this host that is not among those served."""


def inside(sock: socket.socket, sessions: Sequence[RunningSession], own: OwnTraces) -> Found | None:
    """The session that the peer runs in; None when it runs outside. Raises NotPermitted when the
    peer has ended: then nobody can tell."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if pid == 0:
        return None  # not in our pid namespace, so in none below it
    try:
        pidfd = _pidfd(sock, pid, uid)
    except OSError as error:
        raise _ended() from error
    try:
        found = _locate(pid, sessions, own)
        if not _lives(pidfd):
            raise _ended()
        return found
    except OSError as error:
        if os.geteuid() != 0 and _lives(pidfd):
            return None  # another user's, and this machine hides those: then not our session's
        raise _ended() from error
    finally:
        os.close(pidfd)


def _lives(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return not poll.poll(0)


def _ended() -> NotPermitted:
    return NotPermitted("the process that connected has ended", hint="connect again")


def _pidfd(sock: socket.socket, pid: int, uid: int) -> int:
    with contextlib.suppress(OSError):
        return sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    # An older kernel: a process of the same number and user, which is the peer unless it ended and
    # the number came round within the moment since it connected.
    pidfd = os.pidfd_open(pid)
    if os.stat(f"/proc/{pid}").st_uid not in (uid, 0):
        os.close(pidfd)
        raise ProcessLookupError(f"{pid} is another process by now")
    return pidfd


def _locate(pid: int, sessions: Sequence[RunningSession], own: OwnTraces) -> Found | None:
    born = _by_descent(pid, sessions) or _by_namespace(pid, sessions)
    membership = procfs.read(f"/proc/{pid}/cgroup").decode("utf-8", "replace")
    # Most come from outside: then nothing is compared with each session.
    for each in sessions if cgroup.PREFIX in membership else ():
        actors = cgroup.actors_in(membership, each.place.cgroup) if each.place.cgroup else None
        if actors is None:
            continue
        if born not in (None, each.id):
            break  # in another session's group: it moved
        return Found(each.id, actors)
    found = born or _by_environment(pid, sessions)
    if found is not None:
        return Found(found)
    if f"/{own.group}/" in membership or _descends_from(pid, own):
        raise NotServedError
    return None


def _by_descent(pid: int, sessions: Sequence[RunningSession]) -> SessionId | None:
    inits = {each.place.pid: each.id for each in sessions}
    return next((inits[each] for each, _ in _line_of(pid) if each in inits), None)


def _descends_from(pid: int, own: OwnTraces) -> bool:
    return any(
        each in own.parents or (name.startswith(_KEEPER) and _is_keeper_of(each, own.keepers))
        for each, name in _line_of(pid)
    )


def _is_keeper_of(pid: int, directory: str) -> bool:
    """By its command line, which whatever it keeps cannot write to, but could imitate: so this says
    that a process is inside, and never in which session."""
    words = procfs.read(f"/proc/{pid}/cmdline").split(b"\0")
    return any(word.startswith(os.fsencode(directory) + b"/") for word in words)


def _line_of(pid: int) -> list[tuple[int, str]]:
    """The process and its ancestors, the nearest first: their pids and names."""
    for _ in range(_WALKS_MAX):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            return list(_ancestors(pid))
    raise ProcessLookupError("its parents end faster than they can be read")


def _ancestors(pid: int) -> Iterator[tuple[int, str]]:
    """Raises when a process on the way is no longer the parent."""
    stat = procfs.stat_of(pid)
    for _ in range(_DEPTH_MAX):
        yield pid, stat.name
        if stat.ppid == 0:
            return
        below, pid, child = pid, stat.ppid, stat
        try:
            stat = procfs.stat_of(pid)
        except FileNotFoundError:
            if procfs.stat_of(below).ppid != pid:
                raise
            return  # there, and hidden from us: another user's, so not of our session
        if stat.start_ticks > child.start_ticks:
            raise ProcessLookupError(f"{pid} is another process by now")
    raise ProcessLookupError("it has too many ancestors")


def _by_namespace(pid: int, sessions: Sequence[RunningSession]) -> SessionId | None:
    try:
        path = f"/proc/{pid}/ns/pid"
        own = os.readlink(path)
        if own == os.readlink("/proc/self/ns/pid"):
            return None
    except PermissionError:
        return None  # another user's, and we are not root: then no session of ours has namespaces
    for each in sessions:
        with contextlib.suppress(OSError):  # its init has ended, and with it all of its namespace
            session = os.readlink(f"/proc/{each.place.pid}/ns/pid") if each.place.cgroup else ""
            if session and (session == own or is_below(path, session)):
                return each.id
    return None


def _by_environment(pid: int, sessions: Sequence[RunningSession]) -> SessionId | None:
    """At level plain only: elsewhere the kernel knows better."""
    try:
        words = procfs.read(f"/proc/{pid}/environ").split(b"\0")
    except PermissionError:
        return None
    tags = [
        word[len(_VARIABLE) :].decode("utf-8", "replace")
        for word in words
        if word.startswith(_VARIABLE)
    ]
    marked = (each.id for each in sessions if not each.place.cgroup and each.process_tag in tags)
    return next(marked, None) if tags else None
