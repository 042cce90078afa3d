"""`hold resume`: resume what was halted."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.unrecorded import tell_unrecorded
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

SUMMARY = "resume a halted session"


def parser() -> Parser:
    parser = verb_parser(
        "resume",
        "Resume everything that was halted in the session, the whole tree or what one actor "
        "started. Jobs that were stopped by their own shell stay stopped. A re-homeable session "
        "that is fenced goes on by itself, except where the coordination point has lost every "
        "record of its lease: then --force-lease takes it again, on your word that no other host "
        "has the session.",
        "  hold resume build\n"
        "  hold resume build --force-lease 'the store was restored empty; no other host'",
    )
    parser.add_value("--force-lease", "WHY", "right: grant; kept with it", default="")
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold resume") as host:
        host.ask(turn_messages.Resume(0, options.session, options.force_lease), m.Done)
        info = host.show(options.session)
    tell_unrecorded(info.unrecorded)
    if options.json:
        print_json(info.pack())
    else:
        print(f"{info.name} is resumed: {info.state}")
