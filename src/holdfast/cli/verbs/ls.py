"""`hold ls`: the sessions of this host."""

from __future__ import annotations

import json
import time

from holdfast.cli.arguments import Parser, add_json, verb_parser
from holdfast.cli.harmless import harmless
from holdfast.cli.table import ago, table
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from holdfast.model.info import SessionInfo

SUMMARY = "list sessions with what each is doing"

_COMMAND_CHARS = 60


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
    now = time.time()
    columns = {
        "NAME": [info.name for info in sessions],
        "ID": [info.id[:8] for info in sessions],
        "STATE": [_state(info) for info in sessions],
        "TURN": [harmless(info.holder) for info in sessions],
        "AGE": [ago(now - info.created_at) for info in sessions],
        "OPERATORS": [str(info.operators) for info in sessions],
        "LAST OUTPUT": [_last_output(info, now) for info in sessions],
        "LABELS": [",".join(info.labels) for info in sessions],
        "COMMAND": [harmless(" ".join(info.argv), _COMMAND_CHARS) for info in sessions],
    }
    # Who has the turn, and labels, only where there are any.
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    print(table(tuple(shown), list(zip(*shown.values(), strict=True))))
    return 0


def _state(info: SessionInfo) -> str:
    if info.ending is not None:
        return f"ended: {info.ending}"
    return f"{info.state}: {harmless(info.waiting_line, 40)}" if info.waiting_line else info.state


def _last_output(info: SessionInfo, now: float) -> str:
    return f"{ago(now - info.last_output_at)} ago" if info.last_output_at else "-"
