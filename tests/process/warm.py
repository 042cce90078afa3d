"""`hold` without the start of an interpreter: forked from a process that has it loaded.

A command takes 5 ms instead of 60, and the suite runs thousands. All else is as in a process of its
own: words, environment, directory, standard streams, exit status. What tests the start itself, or
must be the very file that people run, starts `commanding.HOLD`.

    run(packed(words, env, cwd), stdin, patience_s)    how it ended and what it printed
    python warm.py FD    the process that forks; ends with the one that started it
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache

REQUEST_MAX_BYTES = 64 << 10  # of one datagram; what is longer has to start cold
COLD_VERBS = ("relay", "sshd", "mcp", "host")  # large, and rarely run to their end
ALSO = ("holdfast.sdk.client", "holdfast.sdk.connection", "holdfast.sdk.reach.machines")


def packed(words: list[str | bytes], env: dict[str, str], cwd: str) -> bytes | None:
    """The request; None if it is too long for one."""
    names = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    request = marshal.dumps(([os.fsencode(word) for word in words], names, os.fsencode(cwd)))
    return request if len(request) <= REQUEST_MAX_BYTES else None


def run(request: bytes, stdin: bytes, patience_s: float) -> tuple[int, bytes, bytes]:
    """Status, output, errors of one command."""
    reads, writes = zip(*(os.pipe() for _ in range(4)), strict=True)
    theirs = [reads[0], *writes[1:]]  # standard streams, and the fourth for its pid and status
    ours = [writes[0], *reads[1:]]
    try:
        socket.send_fds(_server(), [request], theirs)
    finally:
        for fd in theirs:
            os.close(fd)
    try:
        return _talk(ours, stdin, time.monotonic() + patience_s)
    finally:
        for fd in ours:
            with contextlib.suppress(OSError):
                os.close(fd)


def _talk(fds: list[int], stdin: bytes, deadline: float) -> tuple[int, bytes, bytes]:
    """Feed and read until the command has ended and nobody has its output open."""
    feed, *reading = fds
    heard = dict.fromkeys(reading, b"")
    os.set_blocking(feed, False)
    unsent = memoryview(stdin)
    while reading or unsent:
        if not unsent and feed >= 0:
            os.close(feed)
            fds[0] = feed = -1
        left = max(0.0, deadline - time.monotonic())
        readable, writable, _ = select.select(reading, [feed] if unsent else [], [], left)
        if not (readable or writable):
            told = heard[fds[3]]
            if told:
                os.kill(int(told.split()[0]), signal.SIGKILL)
            raise subprocess.TimeoutExpired("hold", 0.0, heard[fds[1]], heard[fds[2]])
        for fd in readable:
            piece = os.read(fd, 1 << 16)
            heard[fd] += piece
            if not piece:
                reading.remove(fd)
        if writable:
            try:
                unsent = unsent[os.write(feed, unsent[: 1 << 16]) :]
            except BrokenPipeError:
                unsent = memoryview(b"")
    out, err, ending = (heard[fd] for fd in fds[1:])
    return int(ending.split()[1]), out, err


@cache
def _server() -> socket.socket:
    """One for each process that runs tests; not carried over a fork."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    return ours


def serve(control: socket.socket) -> Callable[[], int] | None:
    """Fork for each request. In such a fork: gives what it has to do. At the end: None."""
    running: dict[int, tuple[int, int]] = {}  # by the child's pidfd: pid, where its end is told
    while True:
        ready, _, _ = select.select([control.fileno(), *running], [], [])
        for pidfd in [fd for fd in running if fd in ready]:
            pid, told = running.pop(pidfd)
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(BrokenPipeError):
                os.write(told, b"%d" % os.waitstatus_to_exitcode(status))
            os.close(told)
            os.close(pidfd)
        if control.fileno() in ready:
            request, fds, _, _ = socket.recv_fds(control, REQUEST_MAX_BYTES + 1, 4)
            if not request:
                return None
            pid = os.fork()
            if pid == 0:
                for fd in (*running, *(told for _, told in running.values()), fds.pop()):
                    os.close(fd)
                control.close()
                return _become(request, fds)
            os.write(fds[3], b"%d " % pid)
            running[os.pidfd_open(pid)] = (pid, fds[3])
            for fd in fds[:3]:
                os.close(fd)


def _become(request: bytes, fds: list[int]) -> Callable[[], int]:
    words, names, cwd = marshal.loads(request)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environb.clear()
    os.environb.update(names)
    os.chdir(cwd)
    sys.argv = ["hold", *map(os.fsdecode, words)]
    return sys.modules["holdfast.cli"].main  # type: ignore[no-any-return]


if __name__ == "__main__":
    from holdfast.cli.dispatch import VERBS, load

    for _verb in VERBS:
        if _verb not in COLD_VERBS:
            load(_verb).parser()
    for _name in ALSO:
        importlib.import_module(_name)
    gc.freeze()
    _work = serve(socket.socket(fileno=int(sys.argv[1])))
    if _work is not None:
        _status = _work()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(_status)  # to take all modules apart would take longer than most commands
