"""`hold keys`: named keys into a session."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.sdk.client import Host

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
    parser.add_session()
    parser.add_value("keys", "KEY", "key names, in order", nargs="+")
    return parser


def run(options: Options) -> None:
    with Host(client="hold keys") as host:
        host.keys(options.session, options.keys)
