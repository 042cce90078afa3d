"""The answerer of a host's exec gates: `python -m holdfast.adapters.seccomp.answerer FD`.

A process of its own, so that a daemon that is busy, stopped or replaced holds up no build: it
answers what it knows, and asks the daemon for what it does not. FD is the socket to which daemons
connect; the newest is asked. It starts with the first session in which anything is judged, and
exits when there is neither a daemon nor a session left.

What it knows of a session is in answered_session.py.

When it is killed, the calls it had taken are in the pages of their sessions (gate_page.py), and the
next answerer finds them there. It deliberately keeps nothing else, opens no file of a session, and
lets nothing pass that it could not find out about.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import time
from collections import deque

from holdfast.adapters.seccomp import gate_messages
from holdfast.adapters.seccomp.answered_session import AnsweredSession
from holdfast.adapters.seccomp.gate_messages import (
    CallAnswer,
    Gone,
    KnownFiles,
    Leave,
    Serve,
    WordChanged,
)
from holdfast.model.record import Record

_SWEEP_S = 0.5  # between looks for calls that were given up while they waited
_FRESH_LOOK_S = 0.005  # between looks whether they are there
_PRIORITY = -10
_IDLE_S = 5.0  # without session and daemon, before it leaves


def _is_outside(sock: socket.socket) -> bool:
    """A program that runs as root in a session can reach the socket too, and could give its own
    answers; but it cannot leave its pid namespace."""
    pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


class Answerer:
    """All sessions of one host."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._ready = select.epoll()
        self._ready.register(listener, select.EPOLLIN)
        self._daemon: socket.socket | None = None
        self._outgoing: deque[Record] = deque()
        self._is_full = False  # the socket to the daemon: it says when there is room
        self._sessions: dict[str, AnsweredSession] = {}
        self._by_listener: dict[int, AnsweredSession] = {}
        self._by_watch: dict[int, AnsweredSession] = {}
        self._full: set[str] = set()  # sessions whose page has no room
        self._idle_since = self._sweep_at = time.monotonic()

    def run(self) -> None:
        while not self._is_useless():
            waits = any(each.waiting for each in self._sessions.values())
            fresh = [each for each in self._sessions.values() if each.has_fresh]
            timeout = _FRESH_LOOK_S if fresh else _SWEEP_S if waits else _IDLE_S
            for fd, events in self._ready.poll(timeout):
                session = self._by_listener.get(fd)
                if session is not None:
                    self._take(session, events)
                elif fd in self._by_watch:
                    self._by_watch[fd].opened()
                elif fd == self._listener.fileno():
                    self._meet()
                elif self._daemon is not None and fd == self._daemon.fileno():
                    self._serve_daemon(events)
            for session in fresh:
                session.look_at_fresh()
            if waits and time.monotonic() >= self._sweep_at:
                self._sweep()
            if self._outgoing and not self._is_full:
                self._flush()  # what was let go on goes on before the daemon hears of it

    def _is_useless(self) -> bool:
        if self._daemon is not None or self._sessions:
            self._idle_since = time.monotonic()
        return time.monotonic() - self._idle_since >= _IDLE_S

    # -- calls ------------------------------------------------------------------------------------

    def _take(self, session: AnsweredSession, events: int) -> None:
        """One: then the other sessions have their turn, and what waits here is heard of again."""
        if events & select.EPOLLIN:
            if not session.take():
                self._full.add(session.id)
                self._ready.modify(session.listener, 0)
        elif events & select.EPOLLHUP:
            self._drop(session.id)  # nothing runs under its filter now

    def _sweep(self) -> None:
        self._sweep_at = time.monotonic() + _SWEEP_S
        for session in self._sessions.values():
            for id in session.sweep():
                self._say(Gone(session.id, id))
        self._make_room()

    def _make_room(self) -> None:
        for id in [id for id in self._full if self._sessions[id].page.has_room]:
            self._full.discard(id)
            self._ready.modify(self._sessions[id].listener, select.EPOLLIN)

    # -- the daemon -------------------------------------------------------------------------------

    def _meet(self) -> None:
        """A new daemon: it says what it wants answered, and by then what waits is asked again."""
        with contextlib.suppress(BlockingIOError):
            fresh, _ = self._listener.accept()
            if not _is_outside(fresh):
                fresh.close()
                return
            self._part()
            fresh.setblocking(False)
            self._daemon = fresh
            self._ready.register(fresh, select.EPOLLIN)

    def _part(self) -> None:
        if self._daemon is not None:
            self._ready.unregister(self._daemon)
            self._daemon.close()
            self._daemon = None
        self._outgoing.clear()
        self._is_full = False

    def _serve_daemon(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self._flush()
        if not events & ~select.EPOLLOUT or self._daemon is None:
            return
        try:
            heard = gate_messages.receive(self._daemon)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = None
        if heard is None:
            self._part()
            return
        message, fds = heard
        if isinstance(message, Serve) and len(fds) == 2:
            self._add(message, *fds)
            return
        for fd in fds:
            os.close(fd)
        session = self._sessions.get(getattr(message, "session", ""))
        if session is None:
            return
        if isinstance(message, CallAnswer):
            session.answer(message)
        elif isinstance(message, WordChanged):
            self._watch(session)
            session.word_changed()
        elif isinstance(message, KnownFiles):
            session.written(message.files)
        elif isinstance(message, Leave):
            self._drop(session.id)
        self._make_room()

    def _add(self, serve: Serve, listener: int, memfd: int) -> None:
        session = self._sessions.get(serve.session)
        if session is None:
            session = AnsweredSession(serve, listener, memfd, self._say)
            self._sessions[session.id] = self._by_listener[listener] = session
            self._ready.register(listener, select.EPOLLIN)
        else:
            os.close(listener)
            os.close(memfd)
        session.tell_again()
        if not self._watch(session):
            session.ask_written()
        session.judge_again()

    def _watch(self, session: AnsweredSession) -> bool:
        began = session.watch()
        if began:
            self._by_watch[session.watch_fd] = session
            self._ready.register(session.watch_fd, select.EPOLLIN)
            session.ask_written()
        return began

    def _drop(self, id: str) -> None:
        session = self._sessions.pop(id)
        self._full.discard(id)
        del self._by_listener[session.listener]
        self._ready.unregister(session.listener)
        if self._by_watch.pop(session.watch_fd, None) is not None:
            self._ready.unregister(session.watch_fd)
        session.close()

    def _say(self, message: Record) -> None:
        """Without a daemon it is forgotten: the next one is asked everything again."""
        if self._daemon is not None:
            self._outgoing.append(message)

    def _flush(self) -> None:
        if self._daemon is None:
            return
        was_full, self._is_full = self._is_full, False
        try:
            while self._outgoing:
                gate_messages.send(self._daemon, self._outgoing[0])
                self._outgoing.popleft()
        except BlockingIOError:
            self._is_full = True
        except OSError:
            self._outgoing.clear()  # it is gone, as its end of the connection will say
        if self._is_full is not was_full:
            room = select.EPOLLOUT if self._is_full else 0
            self._ready.modify(self._daemon, select.EPOLLIN | room)


def main(arguments: list[str]) -> int:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # everything that it answers is stuck meanwhile
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
    with socket.socket(fileno=int(arguments[0])) as listener:
        listener.set_inheritable(False)
        Answerer(listener).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
