"""`hold doctor`: what this host can do, and what keeps it from more."""

from __future__ import annotations

import os

from holdfast.cli.arguments import Parser, add_json, verb_parser
from holdfast.model.errors import HostDown
from holdfast.sdk.client import Host
from holdfast.sdk.connection import socket_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from holdfast.model.info import Finding, HostInfo

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
    add_json(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    host: HostInfo | None = None
    try:
        with Host(client="hold doctor") as connected:
            host = connected.host()
    except HostDown as error:
        from holdfast.cli.local_doctor import local_findings

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

    shown = host.pack() if host is not None else {"findings": [f.pack() for f in findings]}
    print(json.dumps({"up": host is not None, "socket": socket_path(), **shown}, indent=1))


def _print_text(host: HostInfo | None, findings: Sequence[Finding]) -> None:
    if host is not None:
        print(f"host {os.uname().nodename}, user {host.user}, version {host.version}")
        print(f"home {host.home}; level {host.level}; sessions {host.sessions}\n")
    for finding in findings:
        mark = "ok" if finding.ok else "!!" if _wrong(finding) else "--"
        print(f"{mark}  {finding.name}: {finding.detail}")
        if finding.remedy:
            print(f"      {'to do' if not finding.ok else 'better'}: {finding.remedy}")
