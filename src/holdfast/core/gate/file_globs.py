"""Which paths a declared glob means.

`*`, `?` and `[abc]` stay within one name, `**` matches any number of names. A glob that names a
directory includes its contents only if it says so (`out/**`); `out/**` includes `out` itself,
because making it is part of filling it. Paths are compared as text: links are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

_WILD = re.compile(r"[*?\[]")


def absolute(glob: str, directory: str) -> str:
    """The glob with a slash at its beginning, `.` and `..` taken away."""
    names: list[str] = []
    for name in f"{'' if glob.startswith('/') else directory}/{glob}".split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def fixed_part(glob: str) -> str:
    """Of an absolute glob: the directory that holds everything it can mean."""
    names = glob.split("/")
    first = next((at for at, name in enumerate(names) if _WILD.search(name)), len(names) - 1)
    return "/".join(names[:first]) or "/"


def reaches_down(glob: str) -> bool:
    """Whether it means files below other directories than its fixed part."""
    return "/" in glob[len(fixed_part(glob).rstrip("/")) + 1 :] or "**" in glob


class Glob:
    """One absolute glob."""

    def __init__(self, text: str) -> None:
        self.text = text
        names = text.split("/")[1:]
        self._names = [None if name == "**" else _name(name) for name in names]

    def matches(self, path: str) -> bool:
        """`path`: absolute; a directory's may have a slash at its end."""
        return _fits(self._names, path.strip("/").split("/"))


def _name(text: str) -> Callable[[str], bool]:
    """The pattern of one name: characters, sets of them, and None for any number of any."""
    parts: list[Callable[[str], bool] | None] = []
    at = 0
    while at < len(text):
        char, end = text[at], text.find("]", at + 2) if text[at] == "[" else -1
        if char == "*":
            parts.append(None)
        elif char == "?":
            parts.append(lambda _: True)
        elif end > 0:
            parts.append(_among(text[at + 1 : end]))
            at = end
        else:
            parts.append(partial(str.__eq__, char))
        at += 1
    return lambda name: _fits(parts, name)


def _among(inside: str) -> Callable[[str], bool]:
    """`abc`, `a-z`, and with `!` or `^` first everything else."""
    negated = inside[0] in "!^" and len(inside) > 1
    rest = inside[1:] if negated else inside

    def holds(char: str) -> bool:
        at, found = 0, False
        while at < len(rest):
            if rest[at + 1 : at + 2] == "-" and at + 2 < len(rest):
                found = found or rest[at] <= char <= rest[at + 2]
                at += 3
            else:
                found = found or rest[at] == char
                at += 1
        return found is not negated

    return holds


T = TypeVar("T")


def _fits(pattern: Sequence[Callable[[T], bool] | None], text: Sequence[T]) -> bool:
    """Whether the text matches the pattern, where None matches any number of anything. It
    backtracks only to the latest of these, so it takes at most length times length steps: globs
    come from those whose actions are measured, and a regular expression can be made to run
    forever."""
    at = start = place = 0
    anything = -1
    while place < len(text):
        part = pattern[at] if at < len(pattern) else None
        if at < len(pattern) and part is None:
            anything, start, at = at, place, at + 1
        elif part is not None and part(text[place]):
            at, place = at + 1, place + 1
        elif anything >= 0:
            start += 1
            at, place = anything + 1, start
        else:
            return False
    return all(part is None for part in pattern[at:])
