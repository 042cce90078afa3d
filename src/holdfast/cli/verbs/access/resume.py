"""`hold resume`: let what was halted run on."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_json, add_session, utf8, verb_parser
from holdfast.cli.text.halt_receipt import tell_unrecorded
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "resume a halted session"


def parser() -> Parser:
    parser = verb_parser(
        "resume",
        "Let everything that was halted in the session run on, the whole tree or what one actor "
        "started. Jobs that were stopped by their own shell stay stopped. A re-homeable session "
        "that is fenced goes on by itself, except where the coordination point has lost every "
        "record of its lease: then --force-lease takes it again, on your word that no other host "
        "has the session.",
        "  hold resume build\n"
        "  hold resume build --force-lease 'the store was restored empty; no other host'",
    )
    parser.add_argument(
        "--force-lease", type=utf8, default="", metavar="WHY", help="right: grant; kept with it"
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold resume") as host:
        host.ask(turn_messages.Resume(0, options.session, options.force_lease), m.Done)
        info = host.show(options.session)
    tell_unrecorded(info.unrecorded)
    if options.json:
        import json

        print(json.dumps(info.pack(), indent=1))
    else:
        print(f"{info.name} runs on: {info.state}")
    return 0
