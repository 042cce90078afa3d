"""The best level this host can give, and what the next one would need."""

from __future__ import annotations

import os

from holdfast.adapters.criu import checkpoint
from holdfast.adapters.halt import cgroup
from holdfast.model.state import Level


def best() -> tuple[Level, str]:
    """The level, and why not the next ("" at the highest). Runs CRIU's check: up to a second."""
    if os.geteuid() != 0:
        return Level.PLAIN, "level contained needs root"
    why = cgroup.unavailable()
    if why:
        return Level.PLAIN, f"level contained needs cgroup v2: {why}"
    found = checkpoint.find()
    if isinstance(found, str):
        return Level.CONTAINED, f"level movable needs CRIU: {found}"
    return Level.MOVABLE, ""
