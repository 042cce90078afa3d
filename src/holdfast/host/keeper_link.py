"""The daemon's end of the keepers: one link for each session, and the directory of their sockets.

A keeper that does not read (it was stopped) must hold up nobody: what cannot be sent waits here,
the latest of each kind, and goes when there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable

from holdfast.keeper import protocol
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.state import Ending

log = logging.getLogger(__name__)

COLLECT_TIMEOUT_S = 2.0  # a keeper answers within its loop's turn; one that was stopped does not
_SUFFIX = ".sock"


class KeeperGone(Exception):
    """Nobody listens at a keeper's socket: it died, and its session is lost."""


class Collected(Record):
    """A session an earlier daemon left in custody."""

    tag: SessionId  # under which its processes were started
    fds: dict[str, int]
    blob: bytes
    ending: Ending | None


class KeeperLink:
    """To the keeper of one session."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        sock.setblocking(False)
        self._sock: socket.socket | None = sock
        self.pid = pid
        self._early: list[protocol.News] = []  # came while collecting
        self._waiting: dict[bytes, tuple[bytes, list[int]]] = {}  # by kind; descriptors are ours
        self._knows_group = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def collect(self, tag: SessionId) -> Collected | None:
        """What it holds; None: nothing was deposited. Before `listen`; news that comes meanwhile is
        kept for it. Raises TimeoutError, and KeeperGone."""
        sock = self._sock
        assert sock is not None
        sock.settimeout(COLLECT_TIMEOUT_S)
        try:
            protocol.send(sock, protocol.COLLECT)
            while (news := protocol.receive(sock)) is not None:
                if news.kind in "DN":
                    return self._collected(tag, news)
                self._early.append(news)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise KeeperGone from error
        finally:
            sock.setblocking(False)
        raise KeeperGone

    def _collected(self, tag: SessionId, news: protocol.News) -> Collected | None:
        self.pid = news.keeper_pid
        if news.kind == "N":
            return None
        fds = dict(zip(news.names, news.fds, strict=True))
        return Collected(tag, fds, news.blob, _ending(news))

    def listen(
        self,
        ended: Callable[[Ending], None],
        froze: Callable[[], None],
        lost: Callable[[], None],
        left_gate: Callable[[], None],
    ) -> None:
        """News from now on."""
        loop, sock = asyncio.get_running_loop(), self._sock
        assert sock is not None
        self._loop = loop

        def on_news(news: protocol.News) -> None:
            ending = _ending(news)
            if news.kind == "E" and ending is not None:
                ended(ending)
            elif news.kind == "F":
                froze()
            elif news.kind == "G":
                left_gate()

        def on_readable() -> None:
            try:
                news = protocol.receive(sock)
            except BlockingIOError:
                return
            if news is None:
                self.close()
                lost()
            else:
                on_news(news)

        loop.add_reader(sock, on_readable)
        for news in self._early:
            loop.call_soon(on_news, news)
        self._early.clear()

    def close(self) -> None:
        """From here on the keeper moves the session's output; without a deposit it ends it."""
        if self._sock is None:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
        self._flush()
        for _, fds in self._waiting.values():
            _close_all(fds)
        self._waiting.clear()
        self._sock.close()
        self._sock = None

    def deposit(
        self, fds: dict[str, int], blob: bytes, place: protocol.RingPlace, output: int
    ) -> None:
        message = protocol.deposit(fds, blob, place, output)
        self._send(message, [os.dup(fd) for fd in fds.values()])

    def update(self, blob: bytes) -> None:
        self._send(protocol.update(blob))

    def output(self, mode: int) -> None:
        """What becomes of output while no daemon is connected (protocol.KEEP_OUTPUT and so on)."""
        self._send(protocol.output(mode))

    def leave_gate(self) -> None:
        """The exec gate's page has changed: the keeper must let nothing pass from now on, and say
        so."""
        self._send(protocol.GATE)

    def lease(self, group: str, until: float | None) -> None:
        """Freeze this control group at that moment of CLOCK_BOOTTIME unless another is said before;
        None: no longer."""
        fds = []
        if until is not None and not self._knows_group:
            try:
                fds = [os.open(f"{group}/cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)]
                self._knows_group = True
            except OSError as error:
                log.error("the keeper cannot freeze %s: %s", group, error)
        self._send(protocol.lease(until), fds)

    def dump(self, *, under_way: bool) -> None:
        """Around a checkpoint: what CRIU has stopped must not be frozen, or CRIU waits for it."""
        self._send(protocol.dump(under_way))

    def release(self) -> None:
        """Give the custody up; the keeper exits."""
        self._send(protocol.RELEASE)
        self.close()

    def _send(self, message: bytes, fds: list[int] | None = None) -> None:
        """Now, or when there is room. A keeper that is gone is seen when its link is read."""
        if self._sock is None:
            _close_all(fds or [])
            return
        kind = message[:1]
        _, before = self._waiting.pop(kind, (b"", []))
        if fds:
            _close_all(before)
        self._waiting[kind] = message, fds or before
        self._flush()

    def _flush(self) -> None:
        sock = self._sock
        while self._waiting and sock is not None:
            kind = next(iter(self._waiting))
            message, fds = self._waiting[kind]
            try:
                protocol.send(sock, message, fds)
            except BlockingIOError:
                if self._loop is not None:
                    self._loop.add_writer(sock, self._flush)
                return
            except OSError:
                pass
            _close_all(fds)
            del self._waiting[kind]
        if self._loop is not None and sock is not None:
            self._loop.remove_writer(sock)


class Keepers:
    """The sockets of this host's keepers, each named for the identity its processes were started
    under."""

    def __init__(self, run: str) -> None:
        self.directory = f"{run}/keepers"
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        os.chmod(self.directory, 0o700)

    def tags(self) -> list[SessionId]:
        found = []
        for name in sorted(os.listdir(self.directory)):
            with contextlib.suppress(ValueError):
                found.append(SessionId(name.removesuffix(_SUFFIX)))
        return found

    def connect(self, tag: SessionId) -> KeeperLink:
        """Raises KeeperGone."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory = os.open(self.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # By descriptor: the path of a socket is short, that of a home may be long.
            sock.settimeout(COLLECT_TIMEOUT_S)
            sock.connect(f"/proc/self/fd/{directory}/{tag}{_SUFFIX}")
        except BaseException as error:
            sock.close()
            if isinstance(error, ConnectionRefusedError | FileNotFoundError):
                raise KeeperGone from error
            raise
        finally:
            os.close(directory)
        return KeeperLink(sock, 0)

    def forget(self, tag: SessionId) -> None:
        """A keeper that was killed leaves its socket behind."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/{tag}{_SUFFIX}")


def _ending(news: protocol.News) -> Ending | None:
    if news.status is None:
        return None
    return Ending(code=news.status.get("code"), signal=news.status.get("signal"))


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
