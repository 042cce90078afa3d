"""`hold halt`: freeze a session's tree, leaving the turn where it is."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_json, add_session, utf8, verb_parser
from holdfast.cli.text import halt_receipt
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "freeze everything in a session until it is resumed"


def parser() -> Parser:
    parser = verb_parser(
        "halt",
        "Freeze every process of the session, and return when the kernel says they are; no "
        "process can refuse. Input is refused meanwhile, not kept for later. A halt outlives the "
        "daemon. With --only-actor, only what that actor started is frozen (level contained and "
        "up). Fails with halt_failed when the kernel did not confirm it.",
        "  hold halt build\n  hold halt build --only-actor bot --reason 'runaway download'",
    )
    parser.add_argument(
        "--only-actor", default="", type=utf8, metavar="X", help="freeze only what X started"
    )
    parser.add_argument("--reason", default="", type=utf8, metavar="R", help="for the record")
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold halt") as host:
        request = turn_messages.Halt(0, options.session, options.only_actor, options.reason)
        receipt = host.ask(request, turn_messages.Halted).receipt
    halt_receipt.tell(receipt, options.session, seized=False, as_json=options.json)
    return 0
