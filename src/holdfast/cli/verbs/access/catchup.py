"""`hold catchup`: what others did meanwhile."""

from __future__ import annotations

import os
import time

from holdfast.cli.arguments import Options, Parser, count, print_json, verb_parser
from holdfast.cli.text.handoff import lines
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages

SUMMARY = "show what happened since you last looked"


def parser() -> Parser:
    parser = verb_parser(
        "catchup",
        "Show what happened in the session since you last looked: commands with "
        "who ran them and their statuses, changes of the turn, what changed in the shell (PATH, "
        "variables, aliases, functions, traps), background jobs, text left at the prompt and who "
        "typed it, refused requests. Having looked counts: the next catchup begins here.",
        "  hold catchup build\n  hold catchup build --since 1 --json | jq .commands",
    )
    parser.add_value("--since", "SEQ", "from this journal record on instead", type=count)
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold catchup") as host:
        request = turn_messages.CatchUp(0, options.session, options.since, os.urandom(8).hex())
        handoff = host.ask(request, turn_messages.CaughtUp).handoff
    if options.json:
        print_json(handoff.pack())
    else:
        print(*lines(handoff, time.time()), sep="\n")
