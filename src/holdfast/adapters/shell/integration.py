"""The session's own interactive shell: how it is started so that it reports.

`integrate` turns a bare interactive bash, zsh or fish into one that sources our file (in
`holdfast.shells`) besides the user's own, which are never edited. The shell then reports each
command line over a FIFO, which it opens only for the moment of a report. Each report carries a
nonce that the shell read at its start from an inherited pipe and never exports: a program the shell
runs can write to the FIFO, but nothing that is believed. `reports.py` reads them. Before each
report of a prompt the shell writes its own state to a file beside the FIFO (`state_file.py`).

A shell that is started in an integrated one by its name, or by `su` or `env`, reports as well: our
file has functions of these names, which start it by way of `shells/nested.sh` as `integrate` would.
It gets the nonce as the first one did, and goes on with its numbers.

Deliberately absent: any defence against the user of the shell, who can read its variables. That
is the doorbell's work.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.adapters.proc import procfs
from holdfast.adapters.shell.reports import (
    RECORD_MAX_BYTES,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    Report,
    ReportReader,
    ShellBelow,
)
from holdfast.model.record import Record

__all__ = [
    "CLEAR_LINE",
    "FIFO_BYTES",
    "GATE_PROBE",
    "LINE_PROBE",
    "PASTE_PROBE",
    "RECORD_MAX_BYTES",
    "SHELLS",
    "CommandBegin",
    "CommandEnd",
    "Integration",
    "LineShown",
    "PromptShown",
    "Report",
    "ReportReader",
    "ShellBelow",
    "exact_line_key_of",
    "integrate",
    "is_replaced",
    "make_fifo",
    "make_state_file",
    "may_probe",
    "nonce_pipe",
    "state_path",
]

_OURS = b"HOLD_SHELL_"  # so begins what a shell is told in its environment
SHELLS = Path(__file__).resolve().parents[2] / "shells"

FIFO_BYTES = 64 << 10  # reports of some hundred commands while no daemon reads; then they are lost
# Typed by the host, and only when the kernel says that the shell is at its prompt: no terminal has
# such a key. Our file has bound it to what reports the line editor's text and leaves it as it is.
LINE_PROBE = b"\x1b[5099~"
# The same at the gate: before an Enter, where the line alone is wanted; before a paste of several
# lines, where the shell also says whether it is text to it; and to empty a line that was refused.
GATE_PROBE = b"\x1b[5095~"
PASTE_PROBE = b"\x1b[5093~"
CLEAR_LINE = b"\x1b[5091~"
# Typed in front of a command line, to bash and zsh: that one line is taken as it is, without
# history expansion. fish has none.
_EXACT_LINE_KEY = b"\x1b[5097~"
# Keys after which a line editor takes what comes next for part of them, or for plain text: ^Q, ^V,
# ^X and a lone Escape.
_UNFINISHED_KEYS = (b"\x11", b"\x16", b"\x18", b"\x1b")


class Integration(Record):
    """How to start the shell so that it reports."""

    argv: tuple[str, ...]
    env: dict[str, str]  # to set on top of the session's environment; the shell removes ours
    kind: str  # "bash", "zsh" or "fish"
    edits_lines: bool = True  # it has a line editor: keys, not lines, are read at the prompt
    exact_line_key: bytes = b""  # to be typed in front of a line that it is not to expand


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
    ours["HOLD_SHELL_STATE"] = state_path(fifo)
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
    key = _EXACT_LINE_KEY if edits else b""
    return Integration(started, ours | {"HOLD_SHELL_FILES": files}, "bash", edits, key)


def _zsh(
    argv: tuple[str, ...], env: dict[str, str], ours: dict[str, str], login: bool
) -> Integration | None:
    started = [argv[0]]
    for option in argv[1:]:
        if option != "--login" and not re.fullmatch("-[lif]+", option):
            return None
        if option != "--login" and "f" in option:
            # With -f zsh would not read our file. It sets that option itself, after reading it.
            ours["HOLD_SHELL_FILES"] = "none"
            option = option.replace("f", "")
        started += [option] if option != "-" else []
    if "ZDOTDIR" in env:
        ours["HOLD_SHELL_ZDOTDIR"] = env["ZDOTDIR"]
    ours["ZDOTDIR"] = str(SHELLS / "zsh")
    started += ["-l"] if login else []
    return Integration(tuple(started), ours, "zsh", exact_line_key=_EXACT_LINE_KEY)


_FISH_OPTIONS = frozenset(
    ("-l", "--login", "-i", "--interactive", "-P", "--private", "-N", "--no-config")
)


def _fish(argv: tuple[str, ...], ours: dict[str, str], login: bool) -> Integration | None:
    if not _FISH_OPTIONS.issuperset(argv[1:]):
        return None
    script = str(SHELLS / "fish.fish").replace("\\", "\\\\").replace("'", "\\'")
    started = (*argv, *(("-l",) if login else ()), "--init-command", f"source '{script}'")
    return Integration(started, ours, "fish")


def exact_line_key_of(kind: str) -> bytes:
    """What a shell of this kind is to be typed in front of a line that it is not to expand."""
    return b"" if kind == "fish" else _EXACT_LINE_KEY


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


def state_path(fifo: str) -> str:
    """Where the shell that reports on `fifo` writes its state."""
    return f"{fifo}.state"


def make_state_file(path: str, uid: int, gid: int) -> None:
    """The file for the shell's state, made or (by a restarted daemon) found; 0600, `uid`'s.

    The shell only ever writes to a file that is there. It will hold the values of the environment,
    for exactly those who can read them in /proc/PID/environ: the session's user, and root."""
    with suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)  # whatever the umask
            os.fchown(fd, uid, gid)
        finally:
            os.close(fd)
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
        raise FileExistsError(f"{path} is not this session's state file")


def is_replaced(pid: int) -> bool:
    """Whether the process that was started as an integrated shell has begun another program
    (`exec bash`). A process keeps what was in its environment when its program began, and ours is
    exported to nothing that a shell starts. False where that cannot be read."""
    with suppress(OSError):
        began_with = procfs.read(f"/proc/{pid}/environ").split(b"\0")
        return bool(began_with[0]) and not any(each.startswith(_OURS) for each in began_with)
    return False


def may_probe(typed: bytes) -> bool:
    """Whether LINE_PROBE can be typed after these last keys and still be one. In vi's command mode
    an operator without its motion is not seen here; then the probe may be lost, or change case."""
    return not typed.endswith(_UNFINISHED_KEYS)


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
