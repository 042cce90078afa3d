"""`hold resume`: let what was halted run on."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_json, add_session, verb_parser
from holdfast.sdk.client import Host
from holdfast.wire import authority as a
from holdfast.wire import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "let a halted session run on"


def parser() -> Parser:
    parser = verb_parser(
        "resume",
        "Let everything that was halted in the session run on, the whole tree or what one actor "
        "started. Jobs that were stopped by their own shell stay stopped.",
        "  hold resume build",
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold resume") as host:
        host.ask(a.Resume(0, options.session), m.Done)
        info = host.show(options.session)
    if options.json:
        import json

        print(json.dumps(info.pack(), indent=1))
    else:
        print(f"{info.name} runs on: {info.state}")
    return 0
