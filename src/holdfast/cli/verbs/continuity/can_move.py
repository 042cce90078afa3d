"""`hold can-move`: could this session be checkpointed and moved now, and what stands in the way?"""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.movability import movability_lines
from holdfast.sdk.client import Host
from holdfast.sdk.moving import ask_target
from holdfast.wire.messages import preflight as m

SUMMARY = "show whether a session could be moved, and what stands in the way"


def parser() -> Parser:
    parser = verb_parser(
        "can-move",
        "Show whether the session could be checkpointed and moved now: what stands in the way in "
        "each process, why, and what would make it movable; and for how long it would be frozen. "
        "Nothing is touched. Exits with 0 whatever the answer is.",
        "  hold can-move build\n"
        "  hold can-move build --to laptop\n"
        "  hold can-move build --json | jq .movable",
    )
    parser.add_value(
        "--to", "HOST", "a machine you have joined: also compare its kernel, CRIU and programs"
    )
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold can-move") as host:
        asked = m.CanMove(0, options.session, files=options.to is not None)
        found = host.ask(asked, m.CanMoveShown).movability
        if options.to is not None:
            target = ask_target(options.to, found.needs, host.client)
            asked = m.CanMove(0, options.session, target=target)
            found = host.ask(asked, m.CanMoveShown).movability
    if options.json:
        print_json(found.pack())
    else:
        print(*movability_lines(options.session, found), sep="\n")
