"""Judging whether a session can be checkpointed and moved, before anything is tried.

The rules are what CRIU was seen to refuse or to break, each with a remedy. What is not in them is
taken to be movable: CRIU itself has the last word, and a refused checkpoint leaves a session as it
was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from holdfast.model.graph import OpenFile, Socket
from holdfast.model.limits import DELETED_FILE_MAX_BYTES
from holdfast.model.movability import (
    HostAbility,
    Movability,
    MoveEstimate,
    MoveFacts,
    MoveFinding,
    MoveTarget,
    MoveVerdict,
    NeededFile,
    ProcessMovability,
)
from holdfast.model.state import Level

# Measured on an idle machine of two processors (4 kB pages, images to memory): a shell and its init
# stood still for 12-14 ms, with 100 MB of Python 50-115, with 1 GB 420-790. The slope of the middle
# is 0.6 ms for a megabyte; a process without much memory adds about a millisecond.
_FROZEN_MS = 11.0
_PROCESS_MS = 1.0
_MEGABYTE_MS = 0.6
_PROCESS_BYTES = 128 << 10  # of images for each process besides its memory

_COMMAND_CHARS = 200

# Anonymous inodes that CRIU saves.
_SAVED_INODES = {"eventpoll", "eventfd", "timerfd", "signalfd", "inotify", "fanotify", "pidfd"}
_SAVED_DEVICES = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/net/tun",
    "/dev/kmsg", "/dev/ptmx", "/dev/pts/ptmx",
}  # fmt: skip
_SAVED_FAMILIES = {"inet", "inet6", "unix", "netlink"}
_SAVED_PROTOCOLS = ("TCP", "UDP", "UNIX", "NETLINK", "RAW", "PING", "PACKET", "MPTCP")
_UNCONNECTED = {"listen", "unconnected", "time-wait", "close", "bound", "unknown"}

_NESTED_WHY = {
    "pid": "it runs in a pid namespace of its own, which CRIU does not save inside another",
    "user": "it runs in a user namespace of its own, which CRIU does not save",
    "ipc": "it runs in an IPC namespace of its own, which CRIU does not save inside another",
}
_INODE_REMEDIES = {
    "io_uring": "start the program so that it does not use io_uring (node: UV_USE_IO_URING=0)",
    "perf_event": "stop the profiler",
    "userfaultfd": "stop the program that handles page faults itself",
    "landlock-ruleset": "let the program apply its ruleset and close the descriptor",
}


def judge(
    facts: Sequence[MoveFacts], host: HostAbility, needs: tuple[NeededFile, ...] = ()
) -> Movability:
    own_sockets = {socket.inode for each in facts for socket in each.process.sockets}
    own_ends = {
        (socket.local, socket.remote)
        for each in facts
        for socket in each.process.sockets
        if socket.family in ("inet", "inet6")
    }
    processes = []
    for each in facts:
        found = tuple(_of_process(each, own_sockets, own_ends))
        command = " ".join(each.process.argv)[:_COMMAND_CHARS] or each.process.name
        processes.append(ProcessMovability(each.process.pid_inside, command, _worst(found), found))
    findings = tuple(_of_level(host))
    verdicts = [_worst(findings), *(each.verdict for each in processes)]
    return Movability(
        movable=MoveVerdict.BLOCKS not in verdicts,
        level=host.level,
        processes=tuple(processes),
        estimate=estimate(facts),
        findings=findings,
        needs=needs,
    )


def estimate(facts: Sequence[MoveFacts]) -> MoveEstimate:
    memory = sum(each.anonymous_bytes for each in facts)
    frozen = _FROZEN_MS + len(facts) * _PROCESS_MS + memory / 1e6 * _MEGABYTE_MS
    return MoveEstimate(memory + len(facts) * _PROCESS_BYTES, round(frozen, 1))


def for_target(source: Movability, target: MoveTarget) -> Movability:
    """The same judged for another machine: its kind, kernel and CRIU, and which files it lacks."""
    there = target.name
    found = [*source.findings, *target.missing]
    if target.isa != source.isa:
        found.append(
            _blocks(
                f"{there}: {target.isa or 'unknown machine'}",
                f"the programs are of a machine of kind {source.isa}",
                "move it to a machine of the same kind, or end it here and start it there",
            )
        )
    if kernel_version(target.kernel) < kernel_version(source.kernel):
        found.append(
            _blocks(
                f"{there}: kernel {target.kernel}",
                f"it is older than the one the programs run on, {source.kernel}",
                "move it to a machine with this kernel or a newer one",
            )
        )
    if not target.criu:
        found.append(
            _blocks(
                f"{there}: no CRIU",
                "it cannot restore what is moved to it",
                "there, as root: python -m holdfast.adapters.criu.install",
            )
        )
    blocked = any(each.verdict is MoveVerdict.BLOCKS for each in found)
    return source.replace(movable=source.movable and not blocked, findings=tuple(found))


def lacking(file: NeededFile, there: NeededFile | None) -> MoveFinding | None:
    """What is wrong with a target's copy of a file; None when nothing is."""
    if there is None:
        return _lacks(file, "the target has no such file")
    if file.build_id and there.build_id and file.build_id != there.build_id:
        return _lacks(file, "the target's is another build of it")
    if file.size != there.size:
        return _lacks(file, f"the target's has {there.size} bytes instead of {file.size}")
    return None


def kernel_version(release: str) -> tuple[int, ...]:
    """The first two numbers."""
    numbers = release.split("-")[0].split(".")[:2]
    return tuple(int(each) for each in numbers if each.isdecimal())


def _lacks(file: NeededFile, why: str) -> MoveFinding:
    return _blocks(file.path, why, "install the same version of its package on the target")


def _worst(found: Collection[MoveFinding]) -> MoveVerdict:
    return max(
        (each.verdict for each in found), key=lambda each: each.rank, default=MoveVerdict.MOVABLE
    )


def _blocks(what: str, why: str, remedy: str) -> MoveFinding:
    return MoveFinding(what, MoveVerdict.BLOCKS, why, remedy)


def _resets(what: str, why: str, remedy: str) -> MoveFinding:
    return MoveFinding(what, MoveVerdict.RESETS, why, remedy)


# -- the session ----------------------------------------------------------------------------------


def _of_level(host: HostAbility) -> Iterator[MoveFinding]:
    if host.level is Level.MOVABLE and host.criu:
        return
    if host.level is Level.PLAIN:
        yield _blocks(
            "level plain",
            "its processes run among all others of this machine, in no group and namespace of "
            "their own; that cannot be added to a running session",
            _raise_level(host),
        )
    elif not host.criu:
        yield _blocks(
            f"level {host.level.value}, no CRIU",
            "this host has no CRIU that works, and so nothing that could save memory",
            "as root: python -m holdfast.adapters.criu.install, then hold daemon restart, and "
            "start the session again",
        )
    else:
        yield _blocks(
            f"level {host.level.value}",
            "it was started without what a checkpoint needs; that cannot be added to a running "
            "session",
            _raise_level(host),
        )


def _raise_level(host: HostAbility) -> str:
    if not host.is_root:
        return (
            "start a host as root (sudo hold up -d) with CRIU "
            "(python -m holdfast.adapters.criu.install), and the session there"
        )
    if not host.criu:
        return (
            "python -m holdfast.adapters.criu.install, then hold daemon restart, and start the "
            "session again"
        )
    return "start the session again, at level movable (hold run --level movable)"


# -- one process ----------------------------------------------------------------------------------


def _of_process(
    facts: MoveFacts,
    own_sockets: Collection[int],
    own_ends: Collection[tuple[str, str]],
) -> Iterator[MoveFinding]:
    process = facts.process
    if process.state in "ZX":
        return
    yield from _of_task(facts)
    for file in process.files:
        yield from _of_file(file)
    for socket in process.sockets:
        yield from _of_socket(socket, facts.protocols, own_sockets, own_ends)
    for queue in facts.queues:
        yield _blocks(
            queue,
            "it is a POSIX message queue, which CRIU does not save",
            "close it before the move; the program opens it again afterwards",
        )
    for deleted in facts.deleted:
        if deleted.size > DELETED_FILE_MAX_BYTES:
            yield _blocks(
                f"fd {deleted.fd}: {deleted.path} (deleted)",
                f"a deleted file is moved with the memory up to "
                f"{DELETED_FILE_MAX_BYTES >> 20} MiB; this "
                f"one has {deleted.size >> 20} MiB",
                "close it, or empty it: truncate -s 0 /proc/PID/fd/" + str(deleted.fd),
            )


def _of_task(facts: MoveFacts) -> Iterator[MoveFinding]:
    process = facts.process
    for kind in facts.nested:
        yield _blocks(
            f"{kind} namespace",
            _NESTED_WHY[kind],
            "end the container or sandbox, or run it outside of the session",
        )
    if facts.tracer:
        yield _blocks(
            f"traced by process {facts.tracer}",
            "a process has one debugger at a time, and CRIU would be the second",
            "detach the debugger (strace, gdb)",
        )
    if process.state == "D":
        yield _blocks(
            "waits in the kernel",
            "a process in state D cannot be stopped until the kernel is done for it",
            "try again; if it stays so, see what it waits for: hold graph",
        )
    if facts.maps_io_uring and not any("[io_uring]" in file.path for file in process.files):
        yield _of_inode("io_uring", "mapped: io_uring")
    if facts.inner_terminal and process.pid != process.sid:
        yield _resets(
            "terminal of another program",
            "it runs under a terminal that a program in the session provides (tmux, script, sudo); "
            "CRIU gives that back to the first process in it only, so ^C, ^Z and jobs do not work "
            "in this one",
            "end it before the move, and start it again afterwards",
        )
    if process.name == "script":
        yield _resets(
            "script",
            "it ends when it is interrupted in a wait, which every checkpoint does",
            "end it first; the session's own journal keeps what is typed and printed",
        )


def _of_file(file: OpenFile) -> Iterator[MoveFinding]:
    what = f"fd {file.fd}: {file.path}"
    if file.kind == "anon":
        name = file.path.removeprefix("anon_inode:").strip("[]")
        if name not in _SAVED_INODES:
            yield _of_inode(name, f"fd {file.fd}: {name}")
    elif file.kind == "device" and file.path not in _SAVED_DEVICES:
        yield _blocks(
            what,
            "a device keeps state of its own, which CRIU does not save",
            "end the program that uses it, and start it again afterwards",
        )


def _of_inode(name: str, what: str) -> MoveFinding:
    return _blocks(
        what,
        f"CRIU does not save {name}",
        _INODE_REMEDIES.get(name, "close it, or end the program that uses it"),
    )


def _of_socket(
    socket: Socket,
    protocols: dict[str, str],
    own_sockets: Collection[int],
    own_ends: Collection[tuple[str, str]],
) -> Iterator[MoveFinding]:
    what = f"fd {socket.fd}: "
    if socket.family not in _SAVED_FAMILIES:
        protocol = protocols.get(str(socket.fd), "")
        if not protocol.startswith(_SAVED_PROTOCOLS):
            yield _blocks(
                f"{what}{protocol or 'unknown'} socket",
                "CRIU does not save sockets of this kind",
                "close it, or end the program that uses it",
            )
    elif socket.family == "unix":
        if socket.state == "established" and socket.peer and socket.peer not in own_sockets:
            peer = f" to {socket.remote}" if socket.remote else ""
            yield _blocks(
                f"{what}unix socket{peer}",
                "its other end belongs to a process outside of the session",
                "end the program's connection (X11, ssh-agent, docker, a system service), or start "
                "it without",
            )
    elif (
        socket.kind == "tcp"
        and socket.state not in _UNCONNECTED
        and (socket.remote, socket.local) not in own_ends
    ):
        yield _resets(
            f"{what}connection {socket.local} to {socket.remote}",
            "its other end is outside of the session; it is reset, and the program gets an error",
            "nothing is needed if the program connects again by itself",
        )
