"""`hold rename`: another name for a live session."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, utf8, verb_parser
from holdfast.sdk.client import Host

SUMMARY = "give a session another name"


def parser() -> Parser:
    parser = verb_parser(
        "rename",
        "Give a live session another name. Its id stays, and terminals stay attached; scripts that "
        "use the old name no longer find it. Programs in it keep the name they were started with "
        "in HOLDFAST_NAME. This needs the right to end the session.",
        "  hold rename bash build",
        usage="hold rename [OPTIONS] NAME NEW",
    )
    parser.add_json()
    parser.add_session()
    parser.add_value("name", "NEW", "its name from now on", type=utf8)
    return parser


def run(options: Options) -> None:
    with Host(client="hold rename") as host:
        info = host.rename(options.session, options.name)
    if options.json:
        print_json(info.pack())
    else:
        print(f"{options.session} is {info.name} now ({info.id[:8]})")
