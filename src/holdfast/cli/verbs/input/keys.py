"""`hold keys`: named keys into a session."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_session, utf8, verb_parser
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "press keys by name: C-c, Enter, Up, F5"


def parser() -> Parser:
    parser = verb_parser(
        "keys",
        "Press keys in the session, in order. A key is a character or a name (Enter Tab Esc Space "
        "Backspace Delete Insert Up Down Left Right Home End PageUp PageDown F1 to F12), with C- "
        "(control), M- (alt) or S- (shift) before it.",
        "  hold keys build C-c\n  hold keys editor Esc : w q Enter\n"
        "  hold keys menu Down Down Enter",
    )
    add_session(parser)
    parser.add_argument("keys", nargs="+", metavar="KEY", type=utf8, help="key names, in order")
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold keys") as host:
        host.keys(options.session, options.keys)
    return 0
