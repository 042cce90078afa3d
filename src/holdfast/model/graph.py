"""The live graph (S6): what the kernel says a session is made of, at one moment."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import SessionState


class Lock(Record):
    """A file lock held by a process. `end` is None for "to the end of the file"."""

    kind: str  # posix, flock, ofd, lease
    mode: str  # read, write
    start: int
    end: int | None


class OpenFile(Record):
    """An open descriptor that is a file, directory, device or other named thing."""

    fd: int
    path: str
    kind: str  # file, dir, tty, device, memfd, anon, deleted
    mode: str  # r, w, rw
    offset: int
    locks: tuple[Lock, ...] = ()


class Pipe(Record):
    """One end of a pipe; ends with the same inode are the same pipe."""

    fd: int
    inode: int
    end: str  # read, write, both
    path: str = ""  # of a named pipe


class Socket(Record):
    """A socket as the kernel's sock_diag sees it. Addresses are `host:port` or a unix path."""

    fd: int
    inode: int
    family: str  # inet, inet6, unix, netlink, other
    kind: str  # tcp, udp, stream, dgram, seqpacket, raw, other
    state: str  # listen, established, syn-sent, ..., unconnected, unknown
    local: str = ""
    remote: str = ""
    peer: int = 0  # inode of the other end of a connected unix socket


class Process(Record):
    """One process. `pid` is the host's; `pid_inside` the session's own number for it."""

    pid: int
    pid_inside: int
    ppid: int
    pgid: int
    sid: int
    name: str
    argv: tuple[str, ...]
    cwd: str
    uid: int
    state: str  # the kernel's letter: R S D T t Z I
    started: float  # seconds since 1970
    cpu_seconds: float
    rss_bytes: int
    threads: int
    foreground: bool  # in the terminal's foreground process group
    # tty (to read it), output (to write it), pipe, socket, child, file, timer, futex, signal,
    # event; "" when running or unknown.
    waits_for: str = ""
    files: tuple[OpenFile, ...] = ()
    pipes: tuple[Pipe, ...] = ()
    sockets: tuple[Socket, ...] = ()


class Terminal(Record):
    """The session's PTY as the kernel holds it."""

    name: str  # the slave's path as the session sees it
    size: Size
    foreground_pgid: int
    canonical: bool  # ICANON: the kernel edits lines
    echo: bool
    signals: bool  # ISIG: ^C and ^Z become signals
    unread_input: int  # bytes typed and not yet read
    unread_output: int  # bytes printed and not yet taken


class Graph(Record):
    """A session's whole live execution. `truncated` names what permissions or limits hid."""

    root: int
    processes: tuple[Process, ...]
    terminal: Terminal
    state: SessionState
    truncated: str = ""


class Evidence(Record):
    """What the state of a session is judged from; each field is a kernel fact.

    Taken in one look: the terminal's settings are the same before and after the processes were
    asked, so the two belong together.
    """

    alive: bool  # the main process exists and is not a zombie
    frozen: bool  # the cgroup says `frozen 1`
    canonical: bool
    echo: bool
    shell_pid: int  # the session's main process
    shell_pgid: int
    foreground_pgid: int  # 0 when the terminal has none
    foreground_stopped: bool  # every process of the foreground group is stopped
    tty_waiters: tuple[int, ...]  # pids blocked reading or polling the session's terminal
    # The session was started as a shell and its main process still runs a shell's executable:
    # after `exec vim` it is no longer one.
    shell_is_shell: bool
    # The terminal is set as line editors set it: raw, no echo, Return told apart from newline.
    # A one-key `read -n1` leaves Return alone, which is what tells it from a prompt.
    line_editor: bool = False
    # False for shells that let the kernel edit their command line (dash).
    shell_edits_lines: bool = True
    # The shell asks for one byte at a time, as POSIX wants of the `read` builtin.
    shell_reads_bytes: bool = False
    # Foreground pids that sleep, in a way the kernel does not show us (setuid programs, Yama).
    unseen: tuple[int, ...] = ()
