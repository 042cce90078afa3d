"""A command line made of parts: words quoted for the shell that reads them, and a line that runs
below the session's shell, with a directory and variables of its own."""

from __future__ import annotations

import re

from holdfast.model.errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+", re.ASCII)  # what no shell reads another meaning into


def joined(words: Sequence[str], *, fish: bool) -> str:
    """These words as one line, each quoted for bash and zsh, or for fish."""
    return " ".join(quoted(word, fish=fish) for word in words)


def quoted(word: str, *, fish: bool) -> str:
    """One word, exactly as it is. A leading `=` or `~` would mean something, so it is quoted."""
    if _PLAIN.fullmatch(word) and word[0] != "=":
        return word
    if fish:
        return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + word.replace("'", "'\"'\"'") + "'"


def below_shell(command: str, cwd: str, env: Mapping[str, str], *, fish: bool) -> str:
    """One line for bash and zsh, or for fish, which has no subshells."""
    for name in env:
        if not _NAME.fullmatch(name):
            raise InvalidArgument(f"not the name of a variable: {name[:40]!r}")
    if fish:
        words = [f"{name}={_in_quotes(value)}" for name, value in env.items()]
        where = ["-C", _in_quotes(cwd)] if cwd else []
        return " ".join(["env", *where, *words, "fish", "-c", _in_quotes(command)])
    steps = [f"cd -- {quoted(cwd, fish=False)}"] if cwd else []
    steps += [f"export {name}={quoted(value, fish=False)}" for name, value in env.items()]
    return f"({' && '.join([*steps, f'eval {quoted(command, fish=False)}'])})"


def _in_quotes(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
