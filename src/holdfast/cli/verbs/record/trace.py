"""`hold trace`: everything about one structured action."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.action import trace_text
from holdfast.sdk.client import Host
from holdfast.wire.messages.gate_actions import GetTrace, TraceShown

SUMMARY = "show one action: declared, decided, done, measured, scored"


def parser() -> Parser:
    parser = verb_parser(
        "trace",
        "Show everything about one structured action (`hold submit`) of a live session or an ended "
        "one: what was asked, what the gate decided, the result, what was measured against what "
        "was declared, retries and score.",
        "  hold trace build 5d0c1f2ab7e63490\n"
        "  hold trace build release-42 --json | jq .unexpected\n"
        "  hold trace build 17                 the session's command number 17",
    )
    parser.add_json()
    parser.add_session(reads=True)
    parser.add_value("action", "ID", "the action's id, its key, or its command's number")
    return parser


def run(options: Options) -> None:
    with Host(client="hold trace") as host:
        trace = host.ask(GetTrace(0, options.session, options.action), TraceShown).trace
    if options.json:
        print_json(trace.pack())
    else:
        print(trace_text(trace))
