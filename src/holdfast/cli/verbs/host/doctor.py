"""`hold doctor`: what this host can do, and what keeps it from more."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.hung_daemon import daemon_pid, supervisor_pid
from holdfast.cli.text.table import residency_text
from holdfast.model.errors import HostDown
from holdfast.model.home import Home, home_of
from holdfast.model.info import Finding, HostInfo
from holdfast.sdk.client import Host
from holdfast.sdk.connection import socket_path

SUMMARY = "show what this host can do, and what is missing"

EXIT_UNWELL = 1
# Without these, sessions cannot be started or kept. The other findings say how much more a host
# can do, and lacking them is no illness: exit status 0.
ESSENTIAL = ("host", "python", "init", "state", "socket", "descriptors")


def parser() -> Parser:
    parser = verb_parser(
        "doctor",
        "Show what this host can do: `ok` for what is there, `--` for what is not available, with "
        "what to do about it, and `!!` for what is wrong. Exits with 1 if something is wrong or no "
        "host runs; then it shows what can be known without one.",
        "  hold doctor\n  hold doctor --json | jq '.findings[] | select(.ok | not)'",
    )
    parser.add_json()
    return parser


def run(options: Options) -> int:
    host: HostInfo | None = None
    try:
        with Host(client="hold doctor") as connected:
            host = connected.host(residency=True)
    except HostDown as error:
        findings: Sequence[Finding] = local_findings(error)
    else:
        findings = host.findings
    if options.json:
        _print_json(host, findings)
    else:
        _print_text(host, findings)
    return EXIT_UNWELL if any(_wrong(finding) for finding in findings) else 0


def _wrong(finding: Finding) -> bool:
    return not finding.ok and finding.name in ESSENTIAL


def _print_json(host: HostInfo | None, findings: Sequence[Finding]) -> None:
    import json

    none = dict.fromkeys(("daemon_pid", "supervisor_pid", "relay_pid"))
    if host is None:
        none["daemon_pid"] = daemon_pid(home_of(os.environ, os.getuid()))
    shown = host.pack() if host is not None else {**none, "findings": [f.pack() for f in findings]}
    print(json.dumps({"up": host is not None, "socket": socket_path(), **shown}, indent=1))


def _print_text(host: HostInfo | None, findings: Sequence[Finding]) -> None:
    if host is not None:
        print(f"host {os.uname().nodename}, user {host.user}, version {host.version}")
        print(f"home {host.home}; level {host.level}; sessions {host.sessions}")
        if host.residency is not None:
            print(f"sessions use {residency_text(host.residency)}")
        print()
    for finding in findings:
        mark = "ok" if finding.ok else "!!" if _wrong(finding) else "--"
        print(f"{mark}  {finding.name}: {finding.detail}")
        if finding.remedy:
            print(f"      {'to do' if not finding.ok else 'better'}: {finding.remedy}")


# -- what can be found out when no host answers -------------------------------------------------


def local_findings(down: HostDown) -> list[Finding]:
    home = home_of(os.environ, os.getuid())
    pid = daemon_pid(home)
    said, todo = down.message, down.hint
    if pid is not None:
        said = f"{said}: daemon {pid} hangs; the log is {home.log}"
        todo = "`hold daemon restart` replaces the daemon; sessions carry on"
    elif (supervisor := supervisor_pid(home)) is not None:
        said = f"{said}: supervisor {supervisor} starts no daemon; the log is {home.log}"
        todo = "`hold daemon restart` replaces the supervisor; sessions carry on"
    elif os.path.exists(home.log):
        said = f"{said}; the last one's log is {home.log}"
    return [
        Finding("host", False, said, todo),
        Finding("python", True, platform.python_version()),
        Finding("kernel", True, platform.release()),
        _state(home),
        *([_socket(home)] if pid is None else []),
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
