"""`hold catchup`: what others did meanwhile."""

from __future__ import annotations

import os
import time

from holdfast.cli.arguments import Parser, add_json, add_session, count, verb_parser
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "show what happened since you last looked"


def parser() -> Parser:
    parser = verb_parser(
        "catchup",
        "Show what happened in the session since you last looked: commands with "
        "who ran them and their statuses, changes of the turn, what changed in the shell (PATH, "
        "variables, aliases, functions, traps), background jobs, text left at the prompt and who "
        "typed it, refused writes. Having looked counts: the next catchup begins here.",
        "  hold catchup build\n  hold catchup build --since 1 --json | jq .commands",
    )
    parser.add_argument(
        "--since", type=count, metavar="SEQ", help="from this journal record on instead"
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold catchup") as host:
        request = turn_messages.CatchUp(0, options.session, options.since, os.urandom(8).hex())
        handoff = host.ask(request, turn_messages.CaughtUp).handoff
    if options.json:
        import json

        print(json.dumps(handoff.pack(), indent=1))
        return 0
    from holdfast.cli.text.handoff import lines

    for line in lines(handoff, time.time()):
        print(line)
    return 0
