"""One ssh channel: bytes between an ssh client and the `hold` process behind it.

Neither side is read faster than the other accepts data: a client that does not read stops its own
child, which the host then treats as any slow operator, and a child that does not read stops its
client. A request for a terminal runs `hold attach`, a command `hold exec`. There is no other
program, no subsystem and no forwarding.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import TYPE_CHECKING

import asyncssh

from holdfast.model.errors import HoldfastError
from holdfast.model.limits import SSH_READ_BYTES, SSH_UNSENT_BYTES
from holdfast.ssh import child
from holdfast.ssh.authorized import check_actor

if TYPE_CHECKING:
    from holdfast.ssh.authorized import Authorized
    from holdfast.ssh.login import Login

log = logging.getLogger("ssh")

_EXIT_USAGE = 64
_EXIT_FAILED = 71
_EXIT_SENT_AWAY = 69
_REKEY_LOOK_S = 0.05  # a rekey takes a few milliseconds, once an hour or gigabyte
_SIGNALS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "HUP": signal.SIGHUP}


class SshChannel(asyncssh.SSHServerSession[bytes]):
    """From the request to the exit status."""

    def __init__(self, login: Login, entry: Authorized) -> None:
        self._login = login
        self._entry = entry
        self._loop = asyncio.get_running_loop()
        self._chan: asyncssh.SSHServerChannel[bytes]
        self._term: str | None = None  # None: no terminal was requested
        self._size = (0, 0)
        self._command: str | None = None
        self._child: child.Child | None = None
        self._open: dict[int, bool] = {}  # streams that have not ended
        self._listening = False
        self._looking = False  # waiting for a rekey to finish
        self._unwritten = bytearray()  # typed, not yet read by the child
        self._stuck = False
        self._full = False  # the client does not read
        self._status: int | None = None
        self._last_words = ""  # message to a client that is disconnected

    # -- what is asked for --------------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._chan = chan
        chan.set_write_buffer_limits(SSH_UNSENT_BYTES)
        self._login.channels.add(self)

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: object
    ) -> bool:
        self._term, self._size = term_type, term_size[:2]
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        try:
            words = self._words()
            check_actor(self._entry)
            self._start(words)
        except HoldfastError as error:
            hint = f"; {error.hint}" if error.hint else ""
            self._refuse(f"{error.message} ({error.code}){hint}", error.exit_status)
        except _BadRequestError as error:
            self._refuse(str(error), _EXIT_USAGE)
        except (OSError, ValueError) as error:
            log.error("cannot start a client: %s", error)
            self._refuse(f"the gateway cannot start a client: {error}", _EXIT_FAILED)

    def _words(self) -> tuple[str, ...]:
        session = self._login.session
        if not session or session.startswith("-"):
            raise _BadRequestError(f"not a valid session name: {session[:80]!r} (usage)")
        if self._command is not None:
            # One argument: the session's shell parses it, as a login shell would.
            return "exec", session, "--", self._command
        if self._term is None:
            raise _BadRequestError(
                "attaching needs a terminal (usage); `ssh -t`, or give a command to run"
            )
        return "attach", "--", session

    def _start(self, words: tuple[str, ...]) -> None:
        acting = self._entry.acting
        if self._term is not None:
            made = child.in_terminal(self._loop, words, acting, self._term, self._size)
        else:
            made = child.on_pipes(self._loop, words, acting)
        self._child = made
        self._open = dict(made.streams)
        self._login.gateway.keep(made)
        made.when_ended(self._on_ended)
        log.info("%s: %s %.80r as %s", self._login.address, words[0], self._login.session, acting)
        self.listen()

    def _refuse(self, sentence: str, status: int) -> None:
        """One line, in the form that every verb uses."""
        log.info("%s: %s", self._login.address, sentence)
        end = "\r\n" if self._term is not None else "\n"
        self._chan.write_stderr(f"hold: {sentence}{end}".encode())
        self._chan.exit(status)

    # -- from the client ----------------------------------------------------------------------

    def data_received(self, data: bytes, datatype: object) -> None:
        if self._child is None or self._child.terminal is None or self._last_words:
            return  # `hold exec` reads no input; a client being disconnected cannot type
        self._unwritten += data
        if not self._stuck:
            self._write()

    def _write(self) -> None:
        """Write as much as the terminal accepts; meanwhile the client is not read."""
        assert self._child is not None and self._child.terminal is not None
        terminal = self._child.terminal
        try:
            del self._unwritten[: os.write(terminal, self._unwritten)]
        except BlockingIOError:
            pass
        except OSError:
            self._unwritten.clear()  # the child has ended
        if bool(self._unwritten) == self._stuck:
            return
        self._stuck = bool(self._unwritten)
        if self._stuck:
            self._chan.pause_reading()
            self._loop.add_writer(terminal, self._write)
        else:
            self._loop.remove_writer(terminal)
            self._chan.resume_reading()

    def eof_received(self) -> bool:
        return True  # no more keys, but output continues

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._size = (width, height)
        if self._child is not None:
            self._child.resize(width, height)

    def signal_received(self, signal: str) -> None:
        """For a command without a terminal; at a terminal a ^C is a key."""
        if self._child is not None and self._child.terminal is None and signal in _SIGNALS:
            self._child.signal(_SIGNALS[signal])

    # -- to the client ------------------------------------------------------------------------

    def pause_writing(self) -> None:
        self._full = True
        self.listen()

    def resume_writing(self) -> None:
        self._full = False
        self.listen()

    def listen(self) -> None:
        """Read the child only while the client and its connection accept data."""
        wanted = not (self._full or self._login.full or self._login.rekeying)
        if wanted != self._listening:
            self._listening = wanted
            for fd in self._open:
                if wanted:
                    self._loop.add_reader(fd, self._readable, fd)
                else:
                    self._loop.remove_reader(fd)
        if self._login.rekeying and not self._looking:
            self._looking = True
            self._loop.call_later(_REKEY_LOOK_S, self._poll_rekey)
        if wanted and self._status is not None:
            self._read_rest()

    def _readable(self, fd: int) -> None:
        if self._login.rekeying:
            self.listen()
            return
        data, over = _read(fd)
        if data:
            self._send(data, self._open[fd])
        if over:
            self._over(fd)

    def _poll_rekey(self) -> None:
        """There is no event for the end of a rekey: poll until it is done, or the client is
        gone."""
        self._looking = False
        if self._open:
            self.listen()

    def _read_rest(self) -> None:
        """The child has ended: read what is left."""
        while self._open and self._listening:
            fd = next(iter(self._open))
            data, _ = _read(fd)
            if data:
                self._send(data, self._open[fd])
            else:
                self._over(fd)

    def _send(self, data: bytes, is_error: bool) -> None:
        with contextlib.suppress(BrokenPipeError):  # closed by the client: connection_lost follows
            if is_error:
                self._chan.write_stderr(data)
            else:
                self._chan.write(data)

    def _over(self, fd: int) -> None:
        if self._listening:
            self._loop.remove_reader(fd)
        del self._open[fd]
        self._finish()

    def _on_ended(self, status: int) -> None:
        self._status = status
        self.listen()
        self._finish()

    def _finish(self) -> None:
        if self._status is None or self._open or self._chan.is_closing():
            return
        if self._last_words:
            self._chan.write_stderr(f"[{self._last_words}]\r\n".encode())
        self._chan.exit(_EXIT_SENT_AWAY if self._last_words else self._status)

    # -- the end ------------------------------------------------------------------------------

    def leave(self, why: str) -> None:
        """Let the child detach by itself and restore the client's terminal."""
        self._last_words = why
        if self._child is not None:
            self._child.signal(signal.SIGHUP)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client or the child is gone; the session continues."""
        self._release()
        self._login.closed(self)

    def _release(self) -> None:
        if self._child is None:
            return
        if self._listening:
            for fd in self._open:
                self._loop.remove_reader(fd)
        if self._stuck and self._child.terminal is not None:
            self._loop.remove_writer(self._child.terminal)
        self._open, self._listening, self._stuck = {}, False, False
        self._child.hang_up()


class _BadRequestError(Exception):
    """The client requested something that does not exist here; the message is one line."""


def _read(fd: int) -> tuple[bytes, bool]:
    """The available data, up to the limit, and whether it is the end. A terminal gives 4 KiB at a
    time; collecting them makes fewer packets."""
    pieces: list[bytes] = []
    left = SSH_READ_BYTES
    while left > 0:
        try:
            piece = os.read(fd, left)
        except BlockingIOError:
            return b"".join(pieces), False
        except OSError:  # EIO: the other end of the terminal is closed
            piece = b""
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces), False
