"""`hold end`: end a session."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_json, add_session, verb_parser
from holdfast.cli.text.halt_receipt import tell_unrecorded
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "end a session, and print how it ended"


def parser() -> Parser:
    parser = verb_parser(
        "end",
        "End the session: hang up its terminal, and three seconds later kill what is still there. "
        "Returns when it has ended, and prints how: its true exit status or signal.",
        "  hold end build\n  hold end build --json | jq .ending",
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold end") as host:
        info = host.end(options.session)
    tell_unrecorded(info.unrecorded)
    if options.json:
        import json

        print(json.dumps(info.pack(), indent=1))
    else:
        print(f"{info.name} ({info.id[:8]}) ended: {info.ending}")
    return 0
