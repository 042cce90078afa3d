"""Scenarios that the gate has no mechanism against, and why. They still spring with the gate off;
docs/gate.md lists them too, and a test compares the two."""

from __future__ import annotations

_LINKS = (
    "Who made a symbolic link is not known: what counts is who wrote the file that it leads to."
)

UNCOVERED: dict[str, str] = {
    "link to an honest program in a directory that is on the path already": _LINKS,
    "symbolic link of one's own, turned elsewhere": _LINKS,
}
