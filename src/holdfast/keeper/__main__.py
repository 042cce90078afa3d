"""The keeper's loop. Started by `hold up`:

    python -m holdfast.keeper --run-dir DIR [--socket-mode 0600] [--ready-fd N]

The daemon gets the keeper's own environment and its descriptors. Its standard error goes to the
same log file as the keeper's.
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
import struct
import subprocess
import sys
import time
import traceback
from collections import deque
from typing import Any

from holdfast.keeper import boottime, channel, log_file
from holdfast.keeper.custody import Custody, Status
from holdfast.keeper.deadlines import Deadlines, freeze
from holdfast.keeper.reaping import ended_children
from holdfast.keeper.relay_child import RelayChild

_PR_SET_CHILD_SUBREAPER = 36
_BACKOFF_FIRST_S = 0.05
_BACKOFF_MAX_S = 2.0  # a daemon that never becomes ready is restarted at least this often
_DESCRIPTORS_WANTED = 65536  # 7 per session, twice 2048 sessions, with room
_LISTEN_BACKLOG = 128  # clients that wait while no daemon runs
_HEARD_FIRST = 4096  # messages of the daemon read before a deadline is acted on


class Keeper:
    """State of the loop: the daemon's process and channel, the custody, the listening socket."""

    def __init__(self, run_dir: str, socket_mode: int, ready_fd: int | None) -> None:
        self.run_dir = run_dir
        self.ready_fd = ready_fd
        self.custody = Custody()
        self.deadlines = Deadlines()
        self.alarm = boottime.Alarm()
        self.selector = selectors.DefaultSelector()
        self.listener = _listen(f"{run_dir}/hold.sock", socket_mode)
        self.daemon: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        self.outgoing: deque[dict[str, Any]] = deque()
        self.starts = 0
        self.was_ready = False
        self.backoff = _BACKOFF_FIRST_S
        self.start_at: float | None = time.monotonic()
        self.relay = RelayChild(self.selector, self.tell, _log)
        self.stopping = False
        self.terminating = False
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
            "HOLDFAST_KEEPER_FD": str(fds[0]),
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

    def on_daemon(self) -> None:
        """A message from the daemon, or it closed its end of the channel (SIGCHLD handles the
        rest)."""
        if self.channel is None:
            return
        try:
            parcel = channel.receive(self.channel)
        except BlockingIOError:
            return
        except ConnectionError:
            parcel = None
        except (OSError, ValueError, struct.error) as error:
            _log(f"custody message refused: {error}")
            return
        if parcel is None:
            self.close_channel()
            return
        try:
            self.obey(parcel)
        except Exception:
            # A bug in the daemon must never kill a session.
            _log(f"failed: {parcel.head}\n{traceback.format_exc()}")

    def close_channel(self) -> None:
        if self.channel is not None:
            self.selector.unregister(self.channel)
            self.channel.close()
            self.channel = None
            self.outgoing.clear()

    def obey(self, parcel: channel.Parcel) -> None:
        head = parcel.head
        session = head.get("session", "")
        match head["do"]:
            case "collect":
                self.hand_over(head["after"])
            case "deposit":
                fds = dict(zip(head["names"], parcel.fds, strict=True))
                deposit = self.custody.deposit(session, head["pid"], fds, parcel.blob)
                if deposit.status is not None:
                    self.tell({"news": "ended", "session": session, "status": deposit.status})
            case "update":
                self.custody.update(session, parcel.blob)
            case "release":
                self.custody.release(session)
                self.deadlines.drop(session)
            case "lease":
                self.deadlines.set(session, head["group"], head["until"])
                self.alarm.set(self.deadlines.next())
            case "relay":
                self.relay.want(head)
            case "ready":
                self.was_ready = True
                self.backoff = _BACKOFF_FIRST_S
                self.say_ready("ready")
                if self.terminating:
                    self.tell({"news": "terminate"})
            case "stop":
                self.stopping = True

    def hand_over(self, after: str | None) -> None:
        """Send the deposit that follows `after`; the daemon asks for one at a time, so that no
        more descriptors are ever in flight than one session has."""
        assert self.channel is not None
        sessions = list(self.custody.deposits)
        index = 0 if after is None else sessions.index(after) + 1
        # The daemon waits for this answer: it is never dropped because the channel is full.
        self.channel.setblocking(True)
        try:
            self.send_deposit(sessions[index] if index < len(sessions) else None)
        finally:
            self.channel.setblocking(False)

    def send_deposit(self, session: str | None) -> None:
        assert self.channel is not None
        if session is None:
            channel.send(self.channel, {"news": "all", "keeper_pid": os.getpid()})
            return
        held = self.custody.deposits[session]
        head = {
            "news": "deposit",
            "session": session,
            "pid": held.pid,
            "names": list(held.fds),
            "status": held.status,
        }
        channel.send(self.channel, head, held.blob, *held.fds.values())

    def tell(self, news: dict[str, Any]) -> None:
        """Send an event to the daemon. It is queued when the buffer is full, and dropped when there
        is no daemon (the next one collects the same facts)."""
        if self.channel is None:
            return
        if "session" not in news:  # only the latest of these matters, so few are ever queued
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

    # -- leases ---------------------------------------------------------------------------------

    def on_deadline(self) -> None:
        """Freeze sessions whose deadline the daemon did not extend. It may have done so a moment
        ago, so its messages are read first."""
        self.alarm.heard()
        for _ in range(_HEARD_FIRST):
            if self.channel is None or not _readable(self.channel):
                break
            self.on_daemon()
        for session, group in self.deadlines.passed(boottime.now()):
            why = freeze(group)
            _log(f"session {session}: its lease was not renewed in time; {why or 'frozen'}")
            self.tell({"news": "froze", "session": session})
        self.alarm.set(self.deadlines.next())

    # -- children -----------------------------------------------------------------------------

    def reap(self) -> None:
        for pid, status in ended_children():
            if self.daemon is not None and pid == self.daemon.pid:
                self.daemon.returncode = status.get("code", -1)
                self.daemon_ended(status)
                continue
            if self.relay.ended(pid, status):
                continue
            session = self.custody.ended(pid, status)
            if session is not None:
                self.tell({"news": "ended", "session": session, "status": status})

    def daemon_ended(self, status: Status) -> None:
        self.daemon = None
        # Its last messages may still be in the channel (a deposit before a crash).
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
        self.selector.register(self.alarm, selectors.EVENT_READ, self.on_deadline)
        while not (self.stopping and self.daemon is None):
            if self.start_at is not None and time.monotonic() >= self.start_at:
                self.try_daemon()
            if self.relay.start_at is not None and time.monotonic() >= self.relay.start_at:
                self.relay.start()
            for key, _ in self.selector.select(0.05 if self.outgoing else self.sleep_s()):
                if key.data is not None:
                    key.data()
                elif signal.SIGTERM in _drain(wakeup):
                    # The host is shutting down: the daemon ends the sessions cleanly, or the next
                    # daemon if it dies meanwhile.
                    self.terminating = True
                    self.tell({"news": "terminate"})
            self.flush()
            self.reap()
        self.relay.close()
        os.unlink(f"{self.run_dir}/hold.sock")

    def sleep_s(self) -> float | None:
        """Seconds until a child has to be restarted; None: no time-out."""
        starts = [at for at in (self.start_at, self.relay.start_at) if at is not None]
        return max(0.0, min(starts) - time.monotonic()) if starts else None

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
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # stale: we hold the lock, so nothing listens there
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~mode)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(_LISTEN_BACKLOG)
    return listener


def _raise_descriptor_limit() -> int:
    """Raise our soft limit as far as possible; returns the old one, which sessions get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (
        _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_WANTED)
    )
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft


def _lock(run_dir: str) -> int | None:
    """The lock that makes this the only keeper here, held until exit; None if another has it."""
    fd = os.open(f"{run_dir}/keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return None
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd


def _log(text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must only silence the log
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} keeper: {text}", file=sys.stderr, flush=True)
    log_file.bound()


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast.keeper")
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--socket-mode", type=lambda text: int(text, 8), default=0o600)
    parser.add_argument("--ready-fd", type=int)
    options = parser.parse_args()
    lock = _lock(options.run_dir)
    if lock is None:
        if options.ready_fd is not None:
            os.write(options.ready_fd, b"already up\n")
        return 75
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a child subreaper")
    keeper = Keeper(options.run_dir, options.socket_mode, options.ready_fd)
    _log(f"up, pid {os.getpid()}")
    keeper.run()
    _log("down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
