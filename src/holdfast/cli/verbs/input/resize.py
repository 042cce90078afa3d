"""`hold resize`: the size of a session's terminal."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, size, verb_parser
from holdfast.sdk.client import Host

SUMMARY = "set the size of a session's terminal"


def parser() -> Parser:
    parser = verb_parser(
        "resize",
        "Set the size of the session's terminal. It is the session's own: everybody attached sees "
        "that size. A terminal that attaches later sets it again, unless it only observes.",
        "  hold resize build 120x40",
    )
    parser.add_session()
    parser.add_value("size", "COLSxROWS", "columns and rows", type=size)
    return parser


def run(options: Options) -> None:
    with Host(client="hold resize") as host:
        host.resize(options.session, options.size)
