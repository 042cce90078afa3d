"""Terminals: opening a PTY pair, and asking and telling the pair through its master.

At level contained the pair is on a devpts instance of its own, reached by descriptor only: the
session's terminal is always /dev/pts/0, and index numbers of inner terminals are free again when
a checkpoint is restored elsewhere.

Deliberately does no reading or writing of what is typed or shown.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios

from holdfast.adapters.launch import syscalls
from holdfast.model.record import Record
from holdfast.model.size import Size

TIOCGPTPEER = 0x5441
TIOCSPTLCK = 0x4004_5431
TIOCGPTN = 0x8004_5430
TIOCGSID = 0x5429  # kernel session of the terminal; a master answers for its slave
_IUTF8 = 0x4000  # termios does not name it
_TTY_GID_USUAL = 5


class PtyPair(Record):
    """A fresh pair. Whoever opens it closes `slave` (else it never hangs up) and `devpts`."""

    master: int
    slave: int
    path: str  # of the slave, as its users see it
    devpts: int = -1  # the private instance, mounted nowhere yet


def open_plain(size: Size, uid: int) -> PtyPair:
    """A pair on the host's own devpts."""
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    return _prepared(master, -1, size, uid)


def open_private(size: Size, uid: int) -> PtyPair:
    """A pair on a devpts instance of its own. Needs root."""
    options = {"ptmxmode": "0666", "mode": "0620", "gid": str(tty_gid())}
    devpts = syscalls.mount_by_descriptor("devpts", options)
    try:
        flags = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
        master = os.open("ptmx", flags, dir_fd=devpts)
    except OSError:
        os.close(devpts)
        raise
    return _prepared(master, devpts, size, uid)


def _prepared(master: int, devpts: int, size: Size, uid: int) -> PtyPair:
    try:
        fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
        index = ask(master, TIOCGPTN)
        slave = open_slave(master)
        try:
            set_size(master, size)
            _expect_utf8(slave)
            if uid != os.geteuid():
                os.fchown(slave, uid, tty_gid())
                os.fchmod(slave, 0o620)
            os.set_blocking(master, False)
        except OSError:
            os.close(slave)
            raise
    except OSError:
        os.close(master)
        if devpts >= 0:
            os.close(devpts)
        raise
    return PtyPair(master, slave, f"/dev/pts/{index}", devpts)


def open_slave(master: int, flags: int = 0) -> int:
    """The other end, reached without its path: that may lie in another mount namespace."""
    return fcntl.ioctl(master, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | flags)


def tty_gid() -> int:
    """The group that may write to terminals (`wall`, `write`)."""
    import grp  # here: only root launching for others asks

    try:
        return grp.getgrnam("tty").gr_gid
    except KeyError:
        return _TTY_GID_USUAL


def _expect_utf8(slave: int) -> None:
    """Erasing one character of a line then takes all of its bytes. What sshd and tmux do."""
    settings = termios.tcgetattr(slave)
    settings[0] |= _IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, settings)


def set_size(master: int, size: Size) -> None:
    """The kernel sends SIGWINCH to the foreground group when this changes anything."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))


def size(master: int) -> Size:
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(master, termios.TIOCGWINSZ, bytes(8)))
    return Size(cols, rows)


def foreground_pgid(master: int) -> int:
    """Process group in the foreground, in the caller's numbering; 0 when there is none."""
    return _process_id(master, termios.TIOCGPGRP)


def foreground_program(master: int) -> tuple[str, int]:
    """Name and pid of the first process of that group; "" when it is gone."""
    pgid = foreground_pgid(master)
    try:
        with open(f"/proc/{pgid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip(), pgid
    except OSError:
        return "", pgid


def kernel_session(master: int) -> int:
    """The kernel session that has the terminal; 0 when there is none."""
    return _process_id(master, TIOCGSID)


def _process_id(master: int, request: int) -> int:
    try:
        return ask(master, request)
    except OSError:  # no session has this terminal (yet, or any longer)
        return 0


def ask(fd: int, request: int) -> int:
    """The answer to a request whose answer is one number."""
    return int(struct.unpack("i", fcntl.ioctl(fd, request, bytes(4)))[0])


def settings(master: int) -> list[int | list[bytes | int]]:
    """The termios of the pair, as `termios.tcgetattr` gives it."""
    return termios.tcgetattr(master)


_termios = bytearray(64)  # the kernel's structure, with room to spare
_local_flags = memoryview(_termios)[12:16].cast("I")


def reads_secretly(local: int) -> bool:
    """Whether a program reads lines with echo off: what is typed now is a secret. A line editor has
    echo off too, and no lines."""
    return local & (termios.ICANON | termios.ECHO) == termios.ICANON


def reads_lines(local: int) -> bool:
    """Whether it is in line mode: readers get what was typed after Enter."""
    return bool(local & termios.ICANON)


def forgets_on_signals(local: int) -> bool:
    """Whether a key for a signal also takes away what was typed and nobody has read."""
    return local & (termios.ISIG | termios.NOFLSH) == termios.ISIG


def local_modes(master: int) -> int:
    """How the terminal treats what is typed (`c_lflag`). Asked at every key press, so it reads the
    one word that is needed."""
    try:
        fcntl.ioctl(master, termios.TCGETS, _termios)
    except OSError:
        return 0
    return _local_flags[0]


def unread_input(master: int) -> int | None:
    """Bytes typed that no program has read; None when the terminal is gone.

    In line mode the kernel counts finished lines only: a half-typed line shows as 0."""
    try:
        slave = open_slave(master, os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return ask(slave, termios.FIONREAD)
    finally:
        os.close(slave)


# -- input that was typed and not read, across a checkpoint -------------------------------------

_READ_BYTES = 64 << 10
# Taken from what was typed and not read, a byte has been through the terminal's input rules once.
_INPUT_RULES = (
    termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP | termios.IXON | termios.IXOFF
)
_LOCAL_RULES = termios.ECHO | termios.ECHONL | termios.ISIG | termios.IEXTEN
_EDITING = (termios.VERASE, termios.VKILL)  # of line mode, without those of IEXTEN
_CC = 6
_DISABLED = b"\0"


def take_unread(master: int) -> bytes:
    """What was typed and no program has read, half a line too; it is in the terminal no more. While
    nothing in the session runs."""
    slave = open_slave(master, os.O_NONBLOCK)
    try:
        before = termios.tcgetattr(slave)
        lines = _in_whole_lines(slave) if before[3] & termios.ICANON else -1
        raw = termios.tcgetattr(slave)
        raw[3] &= ~(termios.ICANON | termios.ECHO)
        raw[_CC][termios.VMIN], raw[_CC][termios.VTIME] = 0, 0
        termios.tcsetattr(slave, termios.TCSANOW, raw)
        taken = b""
        try:
            while more := _read_now(slave):
                taken += more
        finally:
            termios.tcsetattr(slave, termios.TCSANOW, before)
        return _with_ends_of_input(taken, lines, before[_CC][termios.VEOF])
    finally:
        os.close(slave)


def _in_whole_lines(slave: int) -> int:
    """In line mode: bytes that a program could read now, without what ends the input (^D)."""
    (count,) = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))
    return int(count)


def _with_ends_of_input(taken: bytes, lines: int, key: bytes) -> bytes:
    """Where input was ended (^D), the kernel keeps a zero byte and a mark, and outside line mode
    gives the byte alone: typed again it would be a character. The zero bytes are such ends if what
    is in whole lines is longer by their number than the kernel counts."""
    ends = taken.count(b"\0")
    whole = max(taken.rfind(b"\n"), taken.rfind(b"\0")) + 1
    if lines < 0 or key == _DISABLED or whole - ends != lines:
        return taken
    return taken.replace(b"\0", key)


def _read_now(slave: int) -> bytes:
    try:
        return os.read(slave, _READ_BYTES)
    except BlockingIOError:
        return b""


def put_unread(master: int, data: bytes) -> None:
    """Back what `take_unread` gave, byte for byte, shown to nobody. While nothing runs."""
    if not data:
        return
    slave = open_slave(master, os.O_NONBLOCK)
    try:
        before = termios.tcgetattr(slave)
        quiet = termios.tcgetattr(slave)
        quiet[0] &= ~_INPUT_RULES
        quiet[3] &= ~_LOCAL_RULES
        for each in _EDITING:
            quiet[_CC][each] = _DISABLED
        termios.tcsetattr(slave, termios.TCSANOW, quiet)
        try:
            os.write(master, data)
            # What is written goes through the rules of that moment, in a thread of the kernel.
            # Asked whether there is something to read, it waits for that thread.
            select.select([slave], [], [], 0)
        finally:
            termios.tcsetattr(slave, termios.TCSANOW, before)
    finally:
        os.close(slave)
