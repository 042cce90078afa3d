"""`hold approvals`: what waits for approval."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text.approval import approval_lines
from holdfast.sdk.client import Host

SUMMARY = "list what waits for approval"


def parser() -> Parser:
    parser = verb_parser(
        "approvals",
        "List what a policy holds until somebody approves, in the session or in all that you may "
        "see: exactly what would be done, who had a part in it, why it is held, who has approved, "
        "and what changed in the session since it was asked. The oldest comes first, and "
        "what was decided lately comes last.",
        "  hold approvals\n"
        "  hold approvals build --json | jq '.[] | select(.status == \"pending\")'",
    )
    parser.add_json()
    parser.add_session_or_all()
    return parser


def run(options: Options) -> None:
    with Host(client="hold approvals") as host:
        found = host.approvals(options.session)
    if options.json:
        import json

        print(json.dumps([each.pack() for each in found], indent=1))
        return
    if not found:
        print("nothing waits for approval")
    for each in found:
        print("\n".join(approval_lines(each)))
