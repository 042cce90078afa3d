"""A command line that runs below the session's shell, with a directory and variables of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from holdfast.model.errors import InvalidArgument

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def below_shell(command: str, cwd: str, env: Mapping[str, str], *, fish: bool) -> str:
    """One line for bash and zsh, or for fish, which has no subshells."""
    for name in env:
        if not _NAME.fullmatch(name):
            raise InvalidArgument(f"not the name of a variable: {name[:40]!r}")
    if fish:
        words = [f"{name}={_fish_quoted(value)}" for name, value in env.items()]
        where = ["-C", _fish_quoted(cwd)] if cwd else []
        return " ".join(["env", *where, *words, "fish", "-c", _fish_quoted(command)])
    steps = [f"cd -- {shlex.quote(cwd)}"] if cwd else []
    steps += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return f"({' && '.join([*steps, f'eval {shlex.quote(command)}'])})"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
