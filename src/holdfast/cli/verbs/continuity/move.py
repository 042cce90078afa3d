"""`hold move`: a session goes to another host, as it is."""

from __future__ import annotations

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.requirement_options import add_requirements, requirements
from holdfast.cli.text.progress import progress_line
from holdfast.cli.text.table import amount
from holdfast.sdk.client import Host
from holdfast.sdk.moving import move

SUMMARY = "move a session to another host, with its memory"


def parser() -> Parser:
    parser = verb_parser(
        "move",
        "Move the session to another host: the same id and processes, with their memory, in the "
        "next epoch. It stands still meanwhile; what is typed waits, and is delivered there. "
        "Whatever fails, it runs on here, and the reason is said. Connections to programs outside "
        "of the session are reset.",
        "  hold move build laptop\n"
        "  hold move build /srv/other-host\n"
        "  hold move build --require label=gpu --require memory=8G",
        kind=MixedParser,
    )
    parser.add_json()
    parser.add_session()
    parser.add_value(
        "host",
        "HOST",
        "a machine you have joined, or another host of this machine by the path of its socket or "
        "home; default: of the machines you have joined that can take it, the one with the most "
        "free memory",
        nargs="?",
        default="",
    )
    add_requirements(parser)
    return parser


def run(options: Options) -> None:
    with progress_line() as told, Host(client="hold move", on_progress=told) as host:
        moved = move(host, options.session, options.host, requirements(options))
    if options.json:
        print_json({name: value for name, value in moved.pack().items() if name != "id"})
        return
    print(
        f"{moved.name} ({moved.session[:8]}) lives on {moved.host} now; it stood still for "
        f"{moved.downtime_s:.1f} s, {amount(moved.bytes)} were moved"
    )
