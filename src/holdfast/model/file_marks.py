"""Files as they were at one moment, to be compared with another. Not in `measured`, which
verbs import: they shall not load `typing`."""

from __future__ import annotations

from typing import NamedTuple


class FileMark(NamedTuple):
    """What tells that a file is as it was. A change of its mode or times moves `changed_ns` too."""

    inode: int
    changed_ns: int  # its ctime, which programs cannot set
    size: int
    is_directory: bool


class TreeScan(NamedTuple):
    """Files under some directories at one moment. A directory is in here only if all of it was
    listed."""

    directories: dict[str, dict[str, FileMark]]  # absolute path -> name -> mark
    partial: tuple[str, ...]  # what was not looked at, and why
