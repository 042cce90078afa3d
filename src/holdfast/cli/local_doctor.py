"""What `hold doctor` can find out when no host answers."""

from __future__ import annotations

import os
import platform
import shutil

from holdfast.model.errors import HostDown
from holdfast.model.home import Home, home_of
from holdfast.model.info import Finding


def local_findings(down: HostDown) -> list[Finding]:
    home = home_of(os.environ, os.getuid())
    return [
        Finding("host", False, down.message, down.hint),
        Finding("python", True, platform.python_version()),
        Finding("kernel", True, platform.release()),
        _state(home),
        _socket(home),
        _config(home),
        *(_shell(name) for name in ("bash", "zsh", "fish")),
    ]


def _state(home: Home) -> Finding:
    """Whether a host could keep its state: the directory, or where it would be made."""
    place = home.state
    while not os.path.lexists(place) and place != "/":
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return Finding(
            "state", False, f"{place} is not a directory", "set HOLDFAST_HOME to another place"
        )
    if not os.access(place, os.W_OK | os.X_OK):
        return Finding(
            "state",
            False,
            f"{place} cannot be written",
            "make it writable, or set HOLDFAST_HOME to another place",
        )
    free = shutil.disk_usage(place).free
    return Finding("state", True, f"{home.state}, {free >> 20} MiB free")


def _socket(home: Home) -> Finding:
    if os.path.lexists(home.socket):
        return Finding(
            "socket", True, f"{home.socket}: left by a host that died; the next one replaces it"
        )
    return Finding("socket", True, f"{home.socket}: nobody listens")


def _config(home: Home) -> Finding:
    if not os.path.exists(home.config):
        return Finding("config", True, f"{home.config}: none, so the defaults")
    readable = os.access(home.config, os.R_OK)
    return Finding(
        "config", readable, home.config, "" if readable else "make it readable for this user"
    )


def _shell(name: str) -> Finding:
    path = shutil.which(name)
    return Finding(f"shell {name}", True, f"{path}, `hold exec` works" if path else "not installed")
