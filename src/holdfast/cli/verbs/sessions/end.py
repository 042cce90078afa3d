"""`hold end`: end a session."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.unrecorded import tell_unrecorded
from holdfast.sdk.client import Host

SUMMARY = "end a session, and print how it ended"


def parser() -> Parser:
    parser = verb_parser(
        "end",
        "End the session: hang up its terminal, and three seconds later kill what is still there. "
        "Returns when it has ended, and prints how: its true exit status or signal.",
        "  hold end build\n  hold end build --json | jq .ending",
    )
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold end") as host:
        info = host.end(options.session)
    tell_unrecorded(info.unrecorded)
    if options.json:
        print_json(info.pack())
    else:
        print(
            f"{info.name} ({info.id[:8]}) {info.ending.sentence() if info.ending else info.state}"
        )
