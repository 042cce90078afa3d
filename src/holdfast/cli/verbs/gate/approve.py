"""`hold approve`: approve what waits for approval."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.decision_options import add_decision, print_decided
from holdfast.sdk.client import Host

SUMMARY = "approve what waits for approval"


def parser() -> Parser:
    parser = verb_parser(
        "approve",
        "Approve what a policy holds, by its id or a unique beginning of it. You need the right "
        "`approve` in its session, must not have had a part in it, and must be among those the "
        "policy names, if it names any. When enough have approved it is judged once more, and then "
        "happens. With --seen it is refused if anything that matters changed since you read it. "
        "What you could see of it is recorded with your decision.",
        "  hold approvals\n  hold approve 4f2a --seen 9c01d2aa7b3e5f04 --note 'checked with ops'",
    )
    parser.add_value("--seen", "VERSION", "as `hold approvals` showed it to you", default="")
    parser.add_flag(
        "--try",
        help="decide nothing, and try it in a branch of the session; refused, as no level has any",
    )
    add_decision(parser)
    return parser


def run(options: Options) -> None:
    with Host(client="hold approve") as host:
        approval = host.approve(
            options.id, options.note, options.seen, try_first=getattr(options, "try")
        )
    print_decided(options, approval)
