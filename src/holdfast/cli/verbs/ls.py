"""`hold ls`: the sessions of this host."""

from __future__ import annotations

import json
import time

from holdfast.cli.arguments import Parser, add_json, verb_parser
from holdfast.cli.table import ago, table
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from holdfast.model.info import SessionInfo

SUMMARY = "list sessions with what each is doing"


def parser() -> Parser:
    parser = verb_parser(
        "ls",
        "List your sessions: what each is doing now, told by the kernel.",
        "  hold ls\n  hold ls --all      the recently ended too\n"
        "  hold ls --json | jq '.[] | select(.state == \"input\") | .name'",
    )
    parser.add_argument("-a", "--all", action="store_true", help="ended ones too")
    add_json(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold ls") as host:
        sessions = host.sessions(ended=options.all)
    if options.json:
        print(json.dumps([info.pack() for info in sessions], indent=1))
        return 0
    if not sessions:
        print("no sessions; start one with `hold run`")
        return 0
    rows = [_row(info, time.time()) for info in sessions]
    print(table(("NAME", "ID", "STATE", "AGE", "OPERATORS", "LAST OUTPUT", "COMMAND"), rows))
    return 0


def _row(info: SessionInfo, now: float) -> tuple[str, ...]:
    state = str(info.state)
    if info.ending is not None:
        state = f"ended: {info.ending}"
    elif info.waiting_line:
        state = f"{state}: {info.waiting_line[:40]}"
    last = ago(now - info.last_output_at) + " ago" if info.last_output_at else "-"
    return (
        info.name,
        info.id[:8],
        state,
        ago(now - info.created_at),
        str(info.operators),
        last,
        " ".join(info.argv)[:60],
    )
