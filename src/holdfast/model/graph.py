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
    state: str  # listen, established, syn-sent, ..., unconnected
    local: str = ""
    remote: str = ""


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
    waits_for: str = ""  # tty, pipe, socket, child, file, timer, futex; "" when running or unknown
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
    """The whole of a session's live execution. `truncated` names what a permission hid."""

    root: int
    processes: tuple[Process, ...]
    terminal: Terminal
    state: SessionState
    truncated: str = ""


class Evidence(Record):
    """What the state of a session is judged from; each field is a kernel fact."""

    alive: bool  # the root process exists and is not a zombie
    frozen: bool  # the cgroup says `frozen 1`
    canonical: bool
    echo: bool
    shell_pid: int  # the session's main process
    shell_pgid: int
    foreground_pgid: int  # 0 when the terminal has none
    foreground_stopped: bool  # every process of the foreground group is stopped
    tty_waiters: tuple[int, ...]  # pids blocked reading or polling the session's terminal
    shell_is_shell: bool  # the main program is an interactive shell
    unread_input: int = 0
