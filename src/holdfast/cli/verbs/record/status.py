"""`hold status`: is this still the one history it claims to be?"""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.verdict import status_lines
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

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
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold status") as host:
        judged = host.ask(
            journal_messages.Verify(0, options.session), journal_messages.Verified
        ).judgement
    if options.json:
        print_json(judged.pack())
    else:
        print(*status_lines(judged), sep="\n")
