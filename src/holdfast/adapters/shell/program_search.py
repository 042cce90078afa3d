"""Where a shell's PATH finds a program, as the shell's own processes see the files."""

from __future__ import annotations

import os
import stat


def directory_of(program: str, path: str, pid: int, cwd: str) -> str:
    """The first entry of PATH with an executable file of that name; "" when there is none, or it
    cannot be looked at. `pid`: a process that sees the files as the shell does."""
    root = f"/proc/{pid}/root"
    for entry in path.split(":"):
        where = entry or "."
        full = where if where.startswith("/") else f"{cwd}/{where}"
        found = f"{root}{full}/{program}"
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return where
    return ""


def file_of(word: str, pid: int, cwd: str) -> tuple[int, int] | None:
    """Device and inode of the regular file or fifo that a word of a command line names; None if it
    names none."""
    full = word if word.startswith("/") else f"{cwd}/{word}"
    try:
        found = os.stat(f"/proc/{pid}/root{full}")
    except (OSError, ValueError):  # not there, or not a name
        return None
    reads = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
    return (found.st_dev, found.st_ino) if reads else None


def descriptors_of(pid: int) -> dict[str, str]:
    """What the descriptors 3 to 9 of bash or zsh lead to: those that a command line can name.
    Its own have higher numbers; while it reports, its first three lead elsewhere."""
    found = {}
    for number in map(str, range(3, 10)):
        try:
            found[number] = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
    return found
