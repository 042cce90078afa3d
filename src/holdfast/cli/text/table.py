"""Columns, durations and times for people to read."""

from __future__ import annotations

import time
from collections.abc import Sequence

from holdfast.model.info import Residency


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, two blanks apart, no trailing blanks."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )


def ago(seconds: float) -> str:
    """A duration in its two largest units: 3s, 5m, 2h10m, 4d3h."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60}m"
    return f"{days}d{hours % 24}h"


def lasting(seconds: float) -> str:
    """A duration that somebody chose: in whole days or hours when it is that."""
    for unit, name in ((86400, "day"), (3600, "hour")):
        if seconds >= unit and seconds % unit == 0:
            return counted(int(seconds // unit), name)
    return ago(seconds)


def counted(number: int, one: str) -> str:
    """1 byte, 2 bytes."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def clock(at: float) -> str:
    """A moment, in this place's time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def amount(size: int) -> str:
    """Bytes, with a unit that leaves one to four digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 10_000 or unit == "GiB":
            return f"{size} {unit}"
        size >>= 10
    raise AssertionError


def residency_text(used: Residency) -> str:
    """What a session costs, or all of them."""
    return ", ".join(
        (
            f"{amount(used.memory_bytes)} of memory",
            f"{used.processes} process{'' if used.processes == 1 else 'es'}",
            counted(used.descriptors, "descriptor"),
            f"{amount(used.disk_bytes)} of disk",
        )
    )
