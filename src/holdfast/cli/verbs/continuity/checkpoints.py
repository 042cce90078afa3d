"""`hold checkpoints`: list the checkpoints of sessions."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, amount, table
from holdfast.sdk.client import Host
from holdfast.wire.messages.checkpoints import CheckpointList, ListCheckpoints

SUMMARY = "list checkpoints"


def parser() -> Parser:
    parser = verb_parser(
        "checkpoints",
        "List the checkpoints of one session, or of all that you may see, newest first.",
        "  hold checkpoints\n  hold checkpoints build --json | jq '.[0].id'",
    )
    parser.add_json()
    parser.add_session(reads=True, optional=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold checkpoints") as host:
        request = ListCheckpoints(0, options.session or "")
        found = host.ask(request, CheckpointList).checkpoints
    if options.json:
        print_json([each.pack() for each in found])
        return
    if not found:
        print("no checkpoints; `hold checkpoint NAME` makes one")
        return
    now = time.time()
    rows = [
        (
            each.id,
            sanitize(each.name),
            f"{ago(now - each.at)} ago",
            sanitize(each.actor),
            str(each.epoch),
            amount(each.bytes),
            f"{each.frozen_ms:.0f} ms",
            sanitize(each.note),
        )
        for each in found
    ]
    print(
        table(("CHECKPOINT", "SESSION", "MADE", "BY", "EPOCH", "SIZE", "STOOD STILL", "NOTE"), rows)
    )
