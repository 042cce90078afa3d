"""`hold deny`: refuse what waits for approval."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.decision_options import add_decision, print_decided
from holdfast.sdk.client import Host

SUMMARY = "refuse what waits for approval"


def parser() -> Parser:
    parser = verb_parser(
        "deny",
        "Refuse what a policy holds, by its id or a unique beginning of it, for good. Whoever may "
        "approve it may deny it. A line is taken away from the prompt; whoever asked gets NOTE.",
        "  hold deny 4f2a --note 'not on a Friday'",
    )
    add_decision(parser)
    return parser


def run(options: Options) -> None:
    with Host(client="hold deny") as host:
        approval = host.deny(options.id, options.note)
    print_decided(options, approval)
