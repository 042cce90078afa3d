"""The session's own interactive shell: how it is started so that it reports, and what it reports.

`integrate` turns a bare interactive bash, zsh or fish into one that sources our file (in
`holdfast.shells`) besides the user's own, which are never edited. The shell then reports each
command line over a FIFO, which it opens only for the moment of a report. Each report carries a
nonce that the shell read at its start from an inherited pipe and never exports: a program the
shell runs can write to the FIFO, but not what counts.

Protocol, version 1. A record is `NUL "HOLD1 " nonce " " body NUL`, at most RECORD_MAX_BYTES, in
one write. That is under PIPE_BUF, so the kernel keeps it whole, and it has a NUL on either side,
so whatever others write next to it stays outside. Bodies, where the last field goes up to the end
and has `%` and newline written as `%25` and `%0A` (bash writes line by line):

    R 0 PID KIND VERSION     the shell is set up; the user's files have been read
    T SEQ INDEX PIECE        a piece of the text of a command line, before its B
    B SEQ PIECES FLAG CWD    a command line begins; FLAG whole | cut | unknown | unparsed
    E SEQ STATUS CWD         it has ended
    P SEQ STATUS CWD         about to read a line, which will be SEQ; STATUS is `$?` now

Deliberately absent: any judgement of what a report means for the session, any waiting, any
output marks (`core.marks`), and any defence against the user of the shell, who can read its
variables. That is the doorbell's work.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.model.limits import COMMAND_TEXT_MAX_BYTES
from holdfast.model.record import Record

SHELLS = Path(__file__).resolve().parent.parent / "shells"

# Bash writes through a buffer of this size; a longer record would be torn into several writes.
RECORD_MAX_BYTES = 1024
# Pieces of one text: encoding may triple it, and fish cuts pieces at 200 characters.
PIECES_MAX = 512
FIFO_BYTES = 64 << 10  # reports of some hundred commands while no daemon reads; then they are lost

# -- starting ---------------------------------------------------------------------------------


class Integration(Record):
    """How to start the shell so that it reports."""

    argv: tuple[str, ...]
    env: dict[str, str]  # to set on top of the session's environment; the shell removes ours
    kind: str  # "bash", "zsh" or "fish"
    edits_lines: bool = True  # it has a line editor: keys, not lines, are read at the prompt


def integrate(
    argv: tuple[str, ...], env: dict[str, str], fifo: str, nonce_fd: int
) -> Integration | None:
    """The same shell, reporting; None for anything but an interactive shell started bare.

    `nonce_fd` is the number under which the shell will find the pipe of `nonce_pipe`."""
    if not argv:
        return None
    name = argv[0].rpartition("/")[2]
    login = name.startswith("-")
    if login:
        # A login shell by the name it was given. That name cannot be looked up and started.
        argv = (argv[0][: -len(name)] + name[1:], *argv[1:])
    ours = {"HOLD_SHELL_FIFO": fifo, "HOLD_SHELL_NONCE_FD": str(nonce_fd)}
    match name.removeprefix("-"):
        case "bash":
            return _bash(argv, env, ours, login)
        case "zsh":
            return _zsh(argv, env, ours, login)
        case "fish":
            return _fish(argv, ours, login)
    return None


# Letters that leave bash interactive and in need of no argument. Not c, s, r, n, t, D, O, o, p.
_BASH_LETTERS = frozenset("liabefhkmuvxBCEHT")


def _bash(
    argv: tuple[str, ...], env: dict[str, str], ours: dict[str, str], login: bool
) -> Integration | None:
    long: list[str] = []
    short: list[str] = []
    files, profile, edits = "rc", True, True
    rest = list(argv[1:])
    while rest:
        option = rest.pop(0)
        if option in ("--rcfile", "--init-file") and rest:
            files = f"file:{rest.pop(0)}"
        elif option == "--login":
            login = True
        elif option == "--noprofile":
            profile = False
        elif option == "--norc":
            files = "none"
        elif option == "--noediting":
            long.append(option)
            edits = False
        elif option[:1] == "-" and option[1:] and _BASH_LETTERS.issuperset(option[1:]):
            short.append(option)
            login = login or "l" in option
        else:
            return None
    script = str(SHELLS / "bash.sh")
    if login:
        # As bash has it: a login shell reads no rc file.
        files = "login" if profile else "none"
        short = [*short, "-l"]
    if files in ("login", "none"):
        # Only so does bash read our file and no other; it leaves posix mode there at once.
        started = (argv[0], "--posix", *long, *short)
        ours |= {"ENV": script} | ({"HOLD_SHELL_ENV": env["ENV"]} if "ENV" in env else {})
    else:
        started = (argv[0], "--init-file", script, *long, *short)
    return Integration(started, ours | {"HOLD_SHELL_FILES": files}, "bash", edits)


def _zsh(
    argv: tuple[str, ...], env: dict[str, str], ours: dict[str, str], login: bool
) -> Integration | None:
    for option in argv[1:]:
        if option != "--login" and not re.fullmatch("-[li]+", option):
            return None
    if "ZDOTDIR" in env:
        ours["HOLD_SHELL_ZDOTDIR"] = env["ZDOTDIR"]
    ours["ZDOTDIR"] = str(SHELLS / "zsh")
    return Integration((*argv, "-l") if login else argv, ours, "zsh")


_FISH_OPTIONS = frozenset({"-l", "--login", "-i", "--interactive", "-P", "--private"})


def _fish(argv: tuple[str, ...], ours: dict[str, str], login: bool) -> Integration | None:
    if not _FISH_OPTIONS.issuperset(argv[1:]):
        return None
    script = str(SHELLS / "fish.fish").replace("\\", "\\\\").replace("'", "\\'")
    started = (*argv, *(("-l",) if login else ()), "--init-command", f"source '{script}'")
    return Integration(started, ours, "fish")


def make_fifo(path: str, uid: int, gid: int) -> int:
    """The session's report FIFO, made or (by a restarted daemon) found; mode 0600, `uid`'s.

    Open for reading and writing: a shell that opens it never waits for a reader, and what it
    wrote stays while somebody, be it the keeper, holds this descriptor."""
    try:
        os.mkfifo(path, 0o600)
        os.chmod(path, 0o600)  # whatever the umask
        os.chown(path, uid, gid, follow_symlinks=False)
    except FileExistsError:
        pass
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    found = os.fstat(fd)
    if not stat.S_ISFIFO(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
        os.close(fd)
        raise FileExistsError(f"{path} is not this session's FIFO")
    if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < FIFO_BYTES:
        # A user with many pipes gets small ones; then fewer reports survive a restart.
        with suppress(PermissionError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, FIFO_BYTES)
    return fd


def nonce_pipe(nonce: str) -> int:
    """The reading end of a pipe that gives the nonce once and then ends; close-on-exec."""
    if not re.fullmatch("[0-9a-f]{16,64}", nonce):
        raise ValueError("a nonce is 16 to 64 hexadecimal digits")
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        os.write(writing, nonce.encode() + b"\n")
    finally:
        os.close(writing)
    return reading


# -- listening --------------------------------------------------------------------------------


class ShellReady(Record):
    """The shell is set up. Without this report there is no integration, whatever was asked."""

    pid: int  # as the shell sees itself; another number outside its pid namespace
    kind: str
    version: str


class CommandBegin(Record):
    """A command line has been read and is about to run."""

    seq: int
    text: str  # best effort; exact from zsh and fish, from bash's history otherwise
    cwd: str  # "" when too long to report: ask the kernel
    text_known: bool = True
    text_cut: bool = False  # longer than COMMAND_TEXT_MAX_BYTES
    parsed: bool = True  # False: the shell refused the line; an end follows, nothing ran


class CommandEnd(Record):
    """The command line has ended."""

    seq: int
    status: int
    cwd: str


class PromptShown(Record):
    """About to read a line. Also says how the last one ended, should its end have been lost."""

    seq: int  # of the line to come; an empty line uses none up
    status: int
    cwd: str


Report = ShellReady | CommandBegin | CommandEnd | PromptShown


class ReportReader:
    """Bytes of the FIFO in, reports out; what does not carry the nonce is dropped and counted.

    Takes up a stream at any point. A daemon that was killed in the middle of a record leaves the
    rest of it in the FIFO; that rest is refused, and the next prompt tells what was missed."""

    def __init__(self, nonce: str, pending: bytes = b"") -> None:
        self.refused = 0  # records without the nonce, malformed, or out of order
        self._head = b"HOLD1 " + nonce.encode() + b" "
        self._pending = pending
        self._skipping = False  # inside a record too long to be one of ours
        self._pieces: list[bytes] = []
        self._pieces_of = 0
        self._begun = 0  # highest number that has begun, or ended
        self._ended = 0

    @property
    def pending(self) -> bytes:
        """The beginning of a record whose end has not come: for a successor that takes over."""
        return self._pending

    def feed(self, data: bytes) -> list[Report]:
        *records, rest = (self._pending + data).split(b"\0")
        if self._skipping and records:
            self._skipping = False
            records = records[1:]
        self._pending = b"" if self._skipping else rest
        if len(self._pending) > RECORD_MAX_BYTES:
            self._pending, self._skipping = b"", True
            self.refused += 1
        return [report for record in records if record for report in self._take(record)]

    def _take(self, record: bytes) -> tuple[Report, ...]:
        # Compared without care for timing: a forger gets no answer to time.
        if not record.startswith(self._head) or len(record) > RECORD_MAX_BYTES:
            self.refused += 1
            return ()
        kind, _, body = record[len(self._head) :].partition(b" ")
        reader = _READERS.get(kind)
        try:
            report = reader(self, body) if reader else None
        except ValueError:
            report, reader = None, None
        if reader is None:
            self.refused += 1
        return () if report is None else (report,)

    def _ready(self, body: bytes) -> ShellReady:
        _, pid, kind, version = _fields(body, 4)
        # A shell that starts counts from one.
        self._begun = self._ended = 0
        return ShellReady(_number(pid), kind.decode("ascii"), version.decode("ascii"))

    def _piece(self, body: bytes) -> None:
        number, index, piece = _fields(body, 3)
        seq = _number(number)
        if _number(index) == 0:
            self._pieces, self._pieces_of = [], seq
        if seq != self._pieces_of or _number(index) != len(self._pieces):
            # One was lost. Without the first ones the rest is no text.
            self._pieces = []
            self._pieces_of = 0
        elif len(self._pieces) < PIECES_MAX:
            self._pieces.append(piece)

    def _begin(self, body: bytes) -> CommandBegin | None:
        number, count, flag, cwd = _fields(body, 4)
        seq, expected = _number(number), _number(count)
        whole = self._pieces if seq == self._pieces_of else []
        self._pieces, self._pieces_of = [], 0
        if seq <= self._begun:
            return None
        self._begun = seq
        text = _decode(b"".join(whole)) if len(whole) == expected else b""
        return CommandBegin(
            seq,
            _shown(text[:COMMAND_TEXT_MAX_BYTES]),
            _shown(_decode(cwd)),
            text_known=bool(text) and flag != b"unknown",
            text_cut=flag == b"cut" or len(text) > COMMAND_TEXT_MAX_BYTES,
            parsed=flag != b"unparsed",
        )

    def _end(self, body: bytes) -> CommandEnd | None:
        number, status, cwd = _fields(body, 3)
        seq = _number(number)
        if seq <= self._ended:  # ^C at the wrong moment makes a shell say it again
            return None
        self._begun, self._ended = max(self._begun, seq), seq
        return CommandEnd(seq, _number(status), _shown(_decode(cwd)))

    def _prompt(self, body: bytes) -> PromptShown:
        number, status, cwd = _fields(body, 3)
        return PromptShown(_number(number), _number(status), _shown(_decode(cwd)))


_READERS = {
    b"R": ReportReader._ready,
    b"T": ReportReader._piece,
    b"B": ReportReader._begin,
    b"E": ReportReader._end,
    b"P": ReportReader._prompt,
}


def _fields(body: bytes, count: int) -> list[bytes]:
    fields = body.split(b" ", count - 1)
    if len(fields) != count:
        raise ValueError("a field is missing")
    return fields


def _number(field: bytes) -> int:
    if not field.isdigit() or len(field) > 18:
        raise ValueError("not a number")
    return int(field)


def _decode(encoded: bytes) -> bytes:
    return encoded.replace(b"%0A", b"\n").replace(b"%25", b"%")


def _shown(text: bytes) -> str:
    # Not surrogates: the text goes on the wire, which carries UTF-8 only. A cut may have left
    # the beginning of a character at the end; that is dropped rather than shown.
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        if error.end == len(text) and error.reason == "unexpected end of data":
            text = text[: error.start]
    return text.decode(errors="backslashreplace")
