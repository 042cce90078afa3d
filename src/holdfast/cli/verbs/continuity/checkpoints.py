"""`hold checkpoints`: list the checkpoints of sessions, or delete some."""

from __future__ import annotations

import time

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, amount, table
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages.checkpoints import (
    CheckpointDeleted,
    CheckpointList,
    DeleteCheckpoint,
    ListCheckpoints,
)

SUMMARY = "list checkpoints, or delete some"


def parser() -> Parser:
    parser = verb_parser(
        "checkpoints",
        "List the checkpoints of one session, or of all that you may see, newest first; or delete "
        "some, with what of their memory no other one has. One that a session is asleep in is not "
        "deleted.",
        "  hold checkpoints\n"
        "  hold checkpoints build --json | jq '.[0].id'\n"
        "  hold checkpoints rm ck-3k9xw2m7q0d5t8ha",
        kind=MixedParser,
        usage="hold checkpoints [NAME] [--json]\n       hold checkpoints rm ID... [--json]",
    )
    parser.add_json()
    parser.add_session(reads=True, optional=True)
    parser.add_value("ids", "ID", "checkpoints to delete, after the word rm", nargs="*")
    return parser


def run(options: Options) -> None:
    if options.ids and options.session != "rm":
        raise InvalidArgument(
            "checkpoints of one session are listed at a time",
            hint="`hold checkpoints rm ID` deletes one",
        )
    if options.ids:
        _delete(options)
    else:
        _list(options)


def _delete(options: Options) -> None:
    with Host(client="hold checkpoints") as host:
        gone = [host.ask(DeleteCheckpoint(0, id), CheckpointDeleted) for id in options.ids]
    if options.json:
        print_json([each.checkpoint.pack() for each in gone])
        return
    for each in gone:
        print(f"deleted {each.checkpoint.id} of {sanitize(each.checkpoint.name)}")
    print(f"checkpoints of this host use {amount(gone[-1].used_bytes)}")


def _list(options: Options) -> None:
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
    print(table(("CHECKPOINT", "SESSION", "MADE", "BY", "EPOCH", "SIZE", "FROZEN", "NOTE"), rows))
