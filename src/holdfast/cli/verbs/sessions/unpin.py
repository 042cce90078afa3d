"""`hold unpin`: let a session be reaped again."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.verbs.sessions.pin import set_pinned

SUMMARY = "let a pinned session be reaped again"


def parser() -> Parser:
    parser = verb_parser(
        "unpin",
        "Let a session that was pinned be reaped again when nobody has used it for long enough. "
        "This needs the right to write.",
        "  hold unpin build\n  hold reap --dry-run   which sessions are idle for too long now",
    )
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    set_pinned(options, False, "hold unpin")
