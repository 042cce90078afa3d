"""The session's terminal as the kernel holds it, asked through the PTY master.

Which of a process's descriptors is this terminal is told by device number *and* devpts instance:
a contained session has a devpts of its own, where its terminal is /dev/pts/0 like that of the next.
Nothing here writes to the terminal or changes its settings.
"""

from __future__ import annotations

import os
import stat
import termios
from typing import NamedTuple

from holdfast.adapters import pty
from holdfast.adapters.proc.procfs import main_pid
from holdfast.model.graph import Terminal
from holdfast.model.size import Size
from holdfast.model.spec import Place

_PTS_MAJOR = 136  # of every slave; the minor is its number
_DEV_TTY = os.makedev(5, 0)  # "my controlling terminal", whichever that is


class Mode(NamedTuple):
    """How the terminal is set, and who is in front."""

    canonical: bool
    echo: bool
    signals: bool
    line_editor: bool
    foreground_pgid: int


class Tty(NamedTuple):
    """What a descriptor is compared with. `device` is 0 when the instance could not be asked."""

    number: int
    device: int
    sid: int

    def is_behind(self, pid: int, path: str) -> bool:
        """Whether /proc/PID/fd/N, given as `path`, is this terminal."""
        try:
            seen = os.stat(path)
            return self.matches(pid, seen)
        except OSError:
            return False

    def matches(self, pid: int, seen: os.stat_result) -> bool:
        if not stat.S_ISCHR(seen.st_mode):
            return False
        if seen.st_rdev == _DEV_TTY:
            return self.sid != 0 and os.getsid(pid) == self.sid
        return seen.st_rdev == self.number and self.device in (0, seen.st_dev)


def mode_of(master: int) -> Mode:
    """Raises OSError when the descriptor is no longer a terminal."""
    try:
        iflag, _, _, lflag, *_ = termios.tcgetattr(master)
    except termios.error as error:
        raise OSError(*error.args) from error
    canonical, echo = bool(lflag & termios.ICANON), bool(lflag & termios.ECHO)
    # readline and fish switch ICRNL off; zsh exchanges CR and NL (both flags on).
    return_told_apart = not iflag & termios.ICRNL or bool(iflag & termios.INLCR)
    return Mode(
        canonical=canonical,
        echo=echo,
        signals=bool(lflag & termios.ISIG),
        line_editor=not canonical and not echo and return_told_apart,
        foreground_pgid=pty.foreground_pgid(master),
    )


def identity(place: Place, master: int) -> Tty:
    """Raises OSError when the descriptor is no longer a terminal."""
    sid = pty.kernel_session(master)
    number = os.makedev(_PTS_MAJOR, pty.ask(master, pty.TIOCGPTN))
    try:
        slave = os.stat(f"/proc/{main_pid(place)}/root{place.tty}")
    except OSError:
        return Tty(number, 0, sid)
    if slave.st_rdev != number:  # the session mounted something over it: its name says nothing
        return Tty(number, 0, sid)
    return Tty(number, slave.st_dev, sid)


def terminal_of(place: Place, master: int) -> Terminal:
    """Raises OSError when the descriptor is no longer a terminal."""
    mode = mode_of(master)
    return Terminal(
        name=place.tty,
        size=pty.size(master),
        foreground_pgid=mode.foreground_pgid,
        canonical=mode.canonical,
        echo=mode.echo,
        signals=mode.signals,
        unread_input=pty.unread_input(master) or 0,
        unread_output=pty.ask(master, termios.FIONREAD),
    )


def no_terminal(place: Place) -> Terminal:
    """What is left to say of a terminal that is gone."""
    return Terminal(place.tty, Size(0, 0), 0, False, False, False, 0, 0)
