"""What a host left behind that belongs to no live session."""

from __future__ import annotations

import os
import time

from faults.hosting import (
    FaultHost,
    command_line,
    end_marked_processes,
    environments,
)
from holdfast.sdk.client import Host


def leftovers(host: FaultHost, client: Host) -> list[str]:
    """Everything that should not be there. Empty when the host is in order."""
    live = {str(info.id) for info in client.sessions()}
    found = [
        f"a control group of {group.name}" for group in host.groups() if group.name not in live
    ]
    bells = host.home / "run/bells"
    if bells.is_dir():
        whose = {name.removesuffix(".state") for name in os.listdir(bells)}
        found += [f"a bell of {name}" for name in whose - live]
    for directory in (host.home / "sessions").iterdir():
        try:
            names = {path.name for path in directory.iterdir()}
        except FileNotFoundError:
            continue  # cleared away while we looked
        if not names & {"spec.json", "tombstone.json"}:
            found.append(f"a directory of {directory.name} with {sorted(names)}")
        elif "tombstone.json" not in names and directory.name not in live:
            found.append(f"an unburied session that is not listed: {directory.name}")
        found += [f"an unfinished file {name}" for name in names if name.endswith(".new")]
    found += stray_processes(host, live)
    return found


def assert_in_order(host: FaultHost, client: Host, timeout_s: float = 8.0) -> None:
    """Nothing is left behind, or soon will not be. Strays are ended either way, so that the next
    test starts clean."""
    deadline = time.monotonic() + timeout_s
    while found := leftovers(host, client):
        if time.monotonic() >= deadline:
            end_marked_processes(host.home, spared={str(info.id) for info in client.sessions()})
            raise AssertionError(f"left behind: {found}")
        time.sleep(0.05)


def stray_processes(host: FaultHost, live: set[str]) -> list[str]:
    """Processes started by this host for sessions that are not `live`, by what the kernel has of
    their environment; and keepers of sessions that are not `live`."""
    found = []
    for pid, environment in environments():
        session = environment.get(b"HOLDFAST_SESSION", b"").decode()
        home = environment.get(b"HOLDFAST_TEST_HOME", b"").decode()
        if home == str(host.home) and session not in live:
            found.append(f"process {pid} of {session}: {command_line(pid)[:80]}")
    keepers = host.keepers()
    if len(keepers) != len(live):
        texts = [f"{pid} {command_line(pid)}" for pid in keepers]
        found.append(f"{len(live)} live sessions, but the keepers are {texts}")
    return found
