"""Which mounts of a session CRIU leaves to us: those that our launcher made, by the session's own
mount table at that moment. What a program inside mounted itself is CRIU's matter.

/proc and /sys are not among them: those are new in each pid namespace, and CRIU makes them so.
"""

from __future__ import annotations

import os

from holdfast.adapters.halt.cgroup import unescaped
from holdfast.model.restore import MountKind, MountMark
from holdfast.model.spec import Place


def of_session(place: Place) -> tuple[MountMark, ...]:
    """Parents first, as the kernel lists them."""
    with open(f"/proc/{place.pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        lines = file.read().splitlines()
    found: list[MountMark] = []
    for line in lines:
        before, _, after = line.partition(" - ")
        kind = _kind(place, unescaped(before.split(" ")[4]), after.split(" ", 1)[0])
        if kind is not None:
            path = unescaped(before.split(" ")[4])
            found.append(MountMark(f"m{len(found)}", path, kind))
    return tuple(found)


def _kind(place: Place, path: str, file_system: str) -> MountKind | None:
    if path == "/dev" and file_system == "tmpfs":
        return MountKind.DEV
    if path == "/dev/pts" and file_system == "devpts":
        return MountKind.PTS
    if path == "/dev/shm" and file_system == "tmpfs":
        return None if os.listdir(f"/proc/{place.pid}/root/dev/shm") else MountKind.SHM
    if path in place.hidden and file_system == "tmpfs":
        return MountKind.COVER
    if path in place.kept:
        return MountKind.KEPT
    if path in place.mounts:
        return MountKind.HOST
    return None


def for_dump(marks: tuple[MountMark, ...]) -> tuple[str, ...]:
    return tuple(f"mnt[{mark.path}]:{mark.cookie}" for mark in marks)
