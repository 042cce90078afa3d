"""A look at the filesystem: where a path really is. Replaceable, so that facts need no disk."""

from __future__ import annotations

from typing import Protocol


class PathLook(Protocol):
    """Answers about one machine's files."""

    def real(self, path: str) -> str:
        """This absolute path without `..` and symbolic links; what does not exist stays as it is.
        The path itself when it cannot be looked at."""
        ...

    def home(self, user: str) -> str:
        """The home directory of this unix user; empty if there is none."""
        ...
