"""The live graph (S6): what the kernel says a session is made of, at one moment."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import SessionState


class Lock(Record):
    """A file lock."""

    kind: str  # `posix`, `flock`, `ofd` or `lease`
    mode: str  # `read` or `write`
    start: int  # first byte
    end: int | None  # last byte; null is the end of the file


class OpenFile(Record):
    """An open descriptor that is a file, directory, device or other named thing."""

    fd: int  # descriptor
    path: str  # path
    kind: str  # `file`, `dir`, `tty`, `device`, `memfd`, `anon` or `deleted`
    mode: str  # `r`, `w` or `rw`
    offset: int  # file position
    locks: tuple[Lock, ...] = ()  # locks held through it


class Pipe(Record):
    """One end of a pipe."""

    fd: int  # descriptor
    inode: int  # ends with the same inode are the same pipe
    end: str  # `read`, `write` or `both`
    path: str = ""  # of a named pipe


class Socket(Record):
    """A socket as the kernel's sock_diag sees it."""

    fd: int  # descriptor
    inode: int  # its inode
    family: str  # `inet`, `inet6`, `unix`, `netlink` or `other`
    kind: str  # `tcp`, `udp`, `stream`, `dgram`, `seqpacket`, `raw` or `other`
    state: str  # `listen`, `established`, `syn-sent`, ..., `unconnected` or `unknown`
    local: str = ""  # own address: `host:port` or a unix path
    remote: str = ""  # the peer's address
    peer: int = 0  # inode of the other end of a connected unix socket; 0 when unknown


class Process(Record):
    """One process."""

    pid: int  # in the host's numbering
    pid_inside: int  # in the session's own
    ppid: int  # parent, in the host's numbering
    pgid: int  # process group
    sid: int  # kernel session
    name: str  # the kernel's short name
    argv: tuple[str, ...]  # command line
    cwd: str  # working directory
    uid: int  # effective user
    state: str  # the kernel's letter: R S D T t Z I
    started: float  # seconds since 1970
    cpu_seconds: float  # user and system time
    rss_bytes: int  # resident memory
    threads: int  # number of threads
    foreground: bool  # in the terminal's foreground process group
    # `tty`, `output`, `pipe`, `socket`, `child`, `file`, `timer`, `futex`, `signal`, `event`; empty
    # when running or unknown
    waits_for: str = ""
    files: tuple[OpenFile, ...] = ()  # open files
    pipes: tuple[Pipe, ...] = ()  # open pipe ends
    sockets: tuple[Socket, ...] = ()  # open sockets
    command: int = 0  # the shell's number for the command that started it; 0: none, or not known
    trigger: str = ""  # who set that command off, by name
    originators: tuple[str, ...] = ()  # everybody behind it, by name, the one who set it off first


class Terminal(Record):
    """The session's PTY as the kernel holds it."""

    name: str  # path of the slave as the session sees it
    size: Size  # window size
    foreground_pgid: int  # foreground process group
    canonical: bool  # the kernel edits lines (ICANON)
    echo: bool  # what is typed is shown (ECHO)
    signals: bool  # ^C and ^Z become signals (ISIG)
    unread_input: int  # bytes typed and not yet read
    unread_output: int  # bytes printed and not yet read


class Graph(Record):
    """A session's whole live execution, from the kernel."""

    root: int  # pid of the session's first process
    processes: tuple[Process, ...]  # every process of it
    terminal: Terminal  # its PTY
    state: SessionState  # what it does
    truncated: str = ""  # what permissions or limits hid; empty when nothing


class Evidence(Record):
    """What a session's state is derived from; each field is a kernel fact.

    It is consistent: the terminal's settings were the same before and after the processes were
    read.
    """

    alive: bool  # the main process exists and is not a zombie
    frozen: bool  # the cgroup says `frozen 1`
    canonical: bool
    echo: bool
    shell_pid: int  # the session's main process, or the shell below it that reads command lines
    shell_pgid: int
    foreground_pgid: int  # 0 when the terminal has none
    foreground_stopped: bool  # every process of the foreground group is stopped
    tty_waiters: tuple[int, ...]  # pids blocked reading or polling the session's terminal
    # The session was started as a shell and its main process still runs a shell's executable:
    # after `exec vim` it is no longer one.
    shell_is_shell: bool
    # The terminal is set as line editors set it: raw, no echo, Return distinct from newline. A
    # one-key `read -n1` does not change Return, which tells it from a prompt.
    line_editor: bool = False
    # False for shells that let the kernel edit their command line (dash).
    shell_edits_lines: bool = True
    # The shell asks for one byte at a time, as POSIX wants of the `read` builtin.
    shell_reads_bytes: bool = False
    # Foreground pids that sleep, in a way the kernel does not show us (setuid programs, Yama).
    unseen: tuple[int, ...] = ()
