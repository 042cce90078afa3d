"""`hold acknowledge`: say that you know a session was lost."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.table import counted
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host

SUMMARY = "acknowledge that a session was lost"


def parser() -> Parser:
    parser = verb_parser(
        "acknowledge",
        "Acknowledge that a session was lost with its host or keeper. `hold ls` no longer lists it "
        "unasked, and it may be pruned like an ended one. The host records who acknowledged it. "
        "This needs the right to end the session.",
        "  hold acknowledge build\n  hold acknowledge --all",
    )
    parser.add_flag("--all", help="every lost session that you may end")
    parser.add_json()
    parser.add_session(optional=True)
    return parser


def run(options: Options) -> None:
    if bool(options.session) == options.all:
        raise InvalidArgument("name one session, or give --all", hint="`hold ls` shows lost ones")
    with Host(client="hold acknowledge") as host:
        known = host.acknowledge(options.session or "")
    if options.json:
        print_json([info.pack() for info in known])
    elif options.all:
        print(f"acknowledged {counted(len(known), 'lost session')}")
    else:
        (info,) = known
        print(f"{info.name} ({info.id[:8]}): its loss was acknowledged by {info.acknowledged_by}")
