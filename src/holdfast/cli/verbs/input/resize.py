"""`hold resize`: the size of a session's terminal."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_session, size, verb_parser
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "set the size of a session's terminal"


def parser() -> Parser:
    parser = verb_parser(
        "resize",
        "Set the size of the session's terminal. It is the session's own: everybody attached sees "
        "that size. A terminal that attaches later sets it again, unless it only observes.",
        "  hold resize build 120x40",
    )
    add_session(parser)
    parser.add_argument("size", metavar="COLSxROWS", type=size, help="columns and rows")
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold resize") as host:
        host.resize(options.session, options.size)
    return 0
