"""`hold status`: is this still the one history it claims to be?"""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_json, add_session, verb_parser
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "show whether a session's history is continuous"


def parser() -> Parser:
    parser = verb_parser(
        "status",
        "Show in one word what a session's history is: continuous, forked, unverifiable (with the "
        "gap) or migrated (with the point). Then how it was closed, if it was discontinued and "
        "why, and which session it follows. Exits with 0 whatever the word is; `hold verify` "
        "exits by it.",
        "  hold status build\n  hold status build --json | jq -r .status",
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:

    with Host(client="hold status") as host:
        judged = host.ask(
            journal_messages.Verify(0, options.session), journal_messages.Verified
        ).judgement
    if options.json:
        import json

        print(json.dumps(judged.pack(), indent=1))
        return 0
    from holdfast.cli.text.verdict import status_lines

    for line in status_lines(judged):
        print(line)
    return 0
