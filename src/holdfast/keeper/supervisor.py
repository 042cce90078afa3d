"""The supervisor's loop. Started by `hold up`, by any command that needs the host while sessions
wait for one, and by a daemon whose supervisor is gone:

    python -m holdfast.keeper.supervisor --run-dir DIR [--socket-mode 0600] [--ready-fd N]
        [--listen-fd N]

It restarts daemon and relay and owns the listening socket. No session depends on it, and it has
nothing that cannot be made again. The daemon gets its environment; its standard error goes to the
same log file.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator
from typing import Any

from holdfast.keeper import channel, log_file, oom
from holdfast.keeper.relay_child import RelayChild, Status

_PR_SET_CHILD_SUBREAPER = 36
_BACKOFF_FIRST_S = 0.05
_BACKOFF_MAX_S = 2.0  # a daemon that never becomes ready is restarted at least this often
_STOP_S = 15.0  # for a daemon that was asked to leave; then it is killed, and sessions are not
_DESCRIPTORS_WANTED = 65536  # of the daemon: 8 per session, twice 2048 sessions, with room
_LISTEN_BACKLOG = 128  # clients that wait while no daemon runs


class Supervisor:
    """State of the loop: the daemon's process and channel, the relay, the listening socket."""

    def __init__(
        self, run_dir: str, socket_mode: int, ready_fd: int | None, listen_fd: int | None = None
    ) -> None:
        self.run_dir = run_dir
        self.ready_fd = ready_fd
        self.selector = selectors.DefaultSelector()
        self.listener = (
            _listen(f"{run_dir}/hold.sock", socket_mode)
            if listen_fd is None
            else socket.socket(fileno=listen_fd)
        )
        self.daemon: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        self.outgoing: deque[dict[str, Any]] = deque()
        # One that takes over from another supervisor is not the host's first.
        self.starts = 0 if listen_fd is None else 1
        self.was_ready = False
        self.backoff = _BACKOFF_FIRST_S
        self.start_at: float | None = time.monotonic()
        self.relay = RelayChild(self.selector, self.tell, _log)
        self.stopping = False
        self.kill_at: float | None = None
        self.soft_limit = _raise_descriptor_limit()

    # -- the daemon ---------------------------------------------------------------------------

    def try_daemon(self) -> None:
        """Start one. A failure (no memory, an upgrade in progress) may be temporary, so it is
        retried."""
        try:
            self.start_daemon()
        except OSError as error:
            _log(f"cannot start the daemon: {error}; trying again in {self.backoff:.2f} s")
            self.start_at = time.monotonic() + self.backoff
            self.backoff = min(self.backoff * 2, _BACKOFF_MAX_S)

    def start_daemon(self) -> None:
        ours, theirs = channel.pair()
        ours.setblocking(False)
        fds = (theirs.fileno(), self.listener.fileno())
        environment = {
            **os.environ,
            "HOLDFAST_SUPERVISOR_FD": str(fds[0]),
            "HOLDFAST_SUPERVISOR_PID": str(os.getpid()),
            "HOLDFAST_LISTEN_FD": str(fds[1]),
            "HOLDFAST_STARTS": str(self.starts),
            "HOLDFAST_NOFILE_SOFT": str(self.soft_limit),
        }
        try:
            self.daemon = subprocess.Popen(
                [sys.executable, "-m", "holdfast.host"],
                stdin=subprocess.DEVNULL,
                pass_fds=fds,
                env=environment,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.channel = ours
        self.selector.register(ours, selectors.EVENT_READ, self.on_daemon)
        self.starts += 1
        self.start_at = None
        self.was_ready = False
        if self.stopping:
            self.ask_daemon_to_leave()

    def on_daemon(self) -> None:
        """A message from the daemon, or it closed its end of the channel (SIGCHLD handles the
        rest)."""
        if self.channel is None:
            return
        try:
            order = channel.receive(self.channel)
        except BlockingIOError:
            return
        except ConnectionError:
            order = None
        except (OSError, ValueError) as error:
            _log(f"message refused: {error}")
            return
        if order is None:
            self.close_channel()
            return
        try:
            self.obey(order)
        except Exception:
            _log(f"failed: {order}\n{traceback.format_exc()}")

    def close_channel(self) -> None:
        if self.channel is not None:
            self.selector.unregister(self.channel)
            self.channel.close()
            self.channel = None
            self.outgoing.clear()

    def obey(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "relay":
                self.relay.want(order)
            case "ready":
                self.was_ready = True
                self.backoff = _BACKOFF_FIRST_S
                self.say_ready("ready")
            case "stop":
                self.stopping = True

    def tell(self, news: dict[str, Any]) -> None:
        """Send an event to the daemon. It is queued when the buffer is full, and dropped when there
        is no daemon (the next one asks)."""
        if self.channel is None:
            return
        # Only the latest of each matters, so few are ever queued.
        self.outgoing = deque(each for each in self.outgoing if each["news"] != news["news"])
        self.outgoing.append(news)
        self.flush()

    def flush(self) -> None:
        while self.outgoing and self.channel is not None:
            try:
                channel.send(self.channel, self.outgoing[0])
            except BlockingIOError:
                return
            except OSError:
                self.outgoing.clear()
                return
            self.outgoing.popleft()

    def ask_daemon_to_leave(self) -> None:
        """Sessions run on without it. One that does not leave in time is killed."""
        self.stopping = True
        if self.daemon is None:
            self.start_at = None
            return
        self.kill_at = time.monotonic() + _STOP_S
        self.tell({"news": "terminate"})

    # -- children -----------------------------------------------------------------------------

    def reap(self) -> None:
        """Keepers and launchers whose parent is gone are children of this process too."""
        for pid, status in _ended_children():
            if self.daemon is not None and pid == self.daemon.pid:
                self.daemon.returncode = status.get("code", -1)
                self.daemon_ended(status)
            else:
                self.relay.ended(pid, status)

    def daemon_ended(self, status: Status) -> None:
        self.daemon = None
        # Its last messages may still be in the channel.
        while self.channel is not None and _readable(self.channel):
            self.on_daemon()
        # A child it had just forked may hold the other end a little longer, but sends nothing.
        self.close_channel()
        if self.stopping:
            return
        wait = 0.0 if self.was_ready else self.backoff
        if not self.was_ready:
            self.backoff = min(self.backoff * 2, _BACKOFF_MAX_S)
            if self.ready_fd is not None:
                # No client was ever served and `hold up` is about to report that: staying would
                # leave a broken host that nobody knows of.
                self.say_ready(f"the daemon ended before it was ready ({status}); see the log")
                self.stopping = True
                return
        _log(f"daemon ended {status}; starting it again in {wait:.2f} s")
        self.start_at = time.monotonic() + wait

    # -- the loop -----------------------------------------------------------------------------

    def run(self) -> None:
        wakeup, woken = socket.socketpair()
        for end in (wakeup, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self.selector.register(wakeup, selectors.EVENT_READ, None)
        while not (self.stopping and self.daemon is None):
            now = time.monotonic()
            if self.start_at is not None and now >= self.start_at:
                self.try_daemon()
            if self.relay.start_at is not None and now >= self.relay.start_at:
                self.relay.start()
            if self.kill_at is not None and now >= self.kill_at and self.daemon is not None:
                self.kill_at = None
                self.daemon.kill()
            for key, _ in self.selector.select(0.05 if self.outgoing else self.sleep_s()):
                if key.data is not None:
                    key.data()
                elif signal.SIGTERM in _drain(wakeup):
                    self.ask_daemon_to_leave()
            self.flush()
            self.reap()
        self.relay.close()
        os.unlink(f"{self.run_dir}/hold.sock")

    def sleep_s(self) -> float | None:
        """Seconds until there is something to do; None: no time-out."""
        times = [at for at in (self.start_at, self.relay.start_at, self.kill_at) if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def say_ready(self, line: str) -> None:
        if self.ready_fd is not None:
            with contextlib.suppress(OSError):
                os.write(self.ready_fd, line.encode() + b"\n")
            os.close(self.ready_fd)
            self.ready_fd = None


def _readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _drain(sock: socket.socket) -> bytes:
    try:
        return sock.recv(4096)
    except BlockingIOError:
        return b""


def _listen(path: str, mode: int) -> socket.socket:
    """The clients' socket, created here so that it outlives any daemon: a client that connects
    while none runs waits in the backlog instead of being refused."""
    # Renamed over a stale one: a client that dials meanwhile must not find that there is no host.
    beside = f"{os.path.dirname(path)}/new.sock"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~mode)
    try:
        listener.bind(beside)
    finally:
        os.umask(before)
    listener.listen(_LISTEN_BACKLOG)
    os.rename(beside, path)
    return listener


def _raise_descriptor_limit() -> int:
    """Raise our soft limit as far as possible; returns the old one, which sessions get. A
    supervisor that a daemon starts has inherited the raised one; the environment has the
    other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (
        _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_WANTED)
    )
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return int(os.environ.get("HOLDFAST_NOFILE_SOFT") or soft)


def _ended_children() -> Iterator[tuple[int, Status]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        code = os.waitstatus_to_exitcode(status)
        yield pid, {"code": code} if code >= 0 else {"signal": -code}


def _lock(run_dir: str) -> int | None:
    """Makes this the only supervisor here, until it exits; None if there is another."""
    fd = os.open(f"{run_dir}/supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return None
    line = f"{os.getpid()}\n".encode()
    os.pwrite(fd, line, 0)
    os.ftruncate(fd, len(line))  # last: who reads it meanwhile finds a number
    return fd


def _log(text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must only silence the log
        print(
            f"{time.strftime('%Y-%m-%d %H:%M:%S')} supervisor: {text}", file=sys.stderr, flush=True
        )
    log_file.bound()


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast.keeper.supervisor")
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--socket-mode", type=lambda text: int(text, 8), default=0o600)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--listen-fd", type=int)
    options = parser.parse_args()
    lock = _lock(options.run_dir)
    if lock is None:
        if options.ready_fd is not None:
            os.write(options.ready_fd, b"already up\n")
        return 75
    # What a launcher leaves when it ends with its daemon, keepers among it, is reaped here: the
    # first process of a container may not do that.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    oom.protect()
    supervisor = Supervisor(
        options.run_dir, options.socket_mode, options.ready_fd, options.listen_fd
    )
    _log(f"up, pid {os.getpid()}")
    supervisor.run()
    _log("down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
